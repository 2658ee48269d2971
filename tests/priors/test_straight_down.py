"""Sensors that say a camera looks straight down or up, on a picture that was taken level."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from geocalib import Calibration, Calibrator
from geocalib.geometry.fields import Fields, perspective_field
from geocalib.geometry.gravity import angle_between, from_roll_pitch
from geocalib.solver import FitOptions, Prior, Status, fit
from geocalib.solver.state import focal_range
from oracle_network import truth

TOWN = Path(__file__).parents[2] / "examples" / "town.jpg"
SENSOR_DEG = 1.0


def down(roll_deg: float, pitch_deg: float) -> list[float]:
    angles = (np.array(math.radians(each)) for each in (roll_deg, pitch_deg))
    gravity: list[float] = from_roll_pitch(*angles).tolist()
    return gravity


@pytest.mark.parametrize("model", ["pinhole", "auto"])
@pytest.mark.parametrize("angles", [(0, -90), (70, -89), (0, 90)])
def test_the_sensor_is_believed(
    packaged: Calibrator, tmp_path: Path, model: str, angles: tuple[int, int]
) -> None:
    photo, said = tmp_path / "town.jpg", down(*angles)
    photo.write_bytes(TOWN.read_bytes())
    beside = {"gravity": said, "frame": "camera", "sigma_deg": SENSOR_DEG}
    photo.with_suffix(".json").write_text(json.dumps(beside))
    answer = packaged.calibrate(photo, model)
    assert isinstance(answer, Calibration)
    assert answer.status == Status.CONVERGED
    off_deg = math.degrees(angle_between(answer.gravity, np.array(said)))
    assert off_deg < 3 * SENSOR_DEG
    assert 0.5 * SENSOR_DEG < answer.sigma.gravity_deg < 1.5 * SENSOR_DEG
    # Roll is as unsure as the nearness of the pole makes it.
    tilt_deg = 90 - abs(answer.pitch_deg)
    assert answer.sigma.roll_deg > min(90, 0.5 * math.degrees(SENSOR_DEG / max(tilt_deg, 0.1)))
    assert 20 < answer.vfov_deg < 90
    assert any("contradicts the picture" in warning for warning in answer.warnings)
    assert not any("gravity may be off" in warning for warning in answer.warnings)
    assert not answer.trust.gravity


@pytest.mark.parametrize("groups", [None, [0, 0]])
@pytest.mark.parametrize("gravity", [(0.0, -1.0, 0.0), (0.0, 0.05, 1.0)])
def test_a_fit_at_the_end_of_its_range_settles(
    groups: list[int] | None, gravity: tuple[float, float, float]
) -> None:
    """A gravity that the fields contradict drives the focal length as far as it may go."""
    known = truth((80, 60), vfov_deg=50, roll_deg=7)
    up, latitude, _ = perspective_field(known.camera, known.gravity)
    up, latitude = np.repeat(up, 2, 0), np.repeat(latitude, 2, 0)
    sure = np.ones((2, 60, 80))
    fields = Fields(up, latitude, sure, sure)
    options = FitOptions(confidence_scale=1.0)
    prior = Prior(np.array(gravity), 0.02)
    result = fit(fields, gravity=prior, groups=groups, options=options)
    shortest, longest = (60 * each for each in focal_range(result.camera.model))
    ends = np.minimum(abs(result.camera.f / shortest - 1), abs(result.camera.f / longest - 1))
    assert ends == pytest.approx(0, abs=1e-9)
    assert result.status == [Status.CONVERGED] * 2
