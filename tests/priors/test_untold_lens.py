"""Pictures that tell nothing of their lens have a usual one, as unsure as lenses differ."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from geocalib import Calibration, Calibrator
from geocalib.cameras import get_model
from maker_notes import by_phone
from oracle_network import knowing, picture, truth

SIZE = (480, 360)
TOWN = Path(__file__).parents[2] / "examples" / "town.jpg"
BENDING = ["simple_radial", "radial", "radial3", "division", "ucm", "kannala_brandt"]


def bend_of(answer: Calibration, focal: float) -> float:
    """How many times as far from the middle the corner is as without distortion."""
    edge = math.hypot(answer.width, answer.height) / (2 * focal)
    tangents, ahead = np.array([1e-3, edge]), np.ones(2)
    k = tuple(np.array(each) for each in answer.distortion)
    near, far = answer.cameras.model.radius(tangents, ahead, k)[0].tolist()
    return float(far / edge / (near / 1e-3))


@pytest.mark.parametrize("model", BENDING)
@pytest.mark.parametrize("shared", [False, True])
def test_a_network_that_knows_nothing(tmp_path: Path, model: str, shared: bool) -> None:
    photos = []
    for mark in range(2):
        photos.append(str(tmp_path / f"{mark}.png"))
        Image.fromarray(picture(SIZE, mark)).save(photos[-1])
        down = {"gravity": [0.0, 0.7, 0.7], "frame": "camera", "sigma_deg": 1.0}
        (tmp_path / f"{mark}.json").write_text(json.dumps(down))
    truths = [truth(SIZE, vfov_deg=60), truth(SIZE, vfov_deg=60, roll_deg=3)]
    calibrator = knowing(*truths, confidence_scale=1e12)
    for answer in calibrator.calibrate(photos, model, shared_intrinsics=shared):
        assert isinstance(answer, Calibration)
        usual, start = 0.7 * max(SIZE), get_model(model).start
        assert answer.distortion == pytest.approx(start, abs=1e-3)
        # Unsure by a few hundredths of the way to the corner, of each parameter.
        (first, *_), power = answer.sigma.distortion, (300 / usual) ** 2
        assert 0.01 < first * (1 if get_model(model).wide else power) < 0.5


def test_a_lens_that_the_picture_tells_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    known = truth(SIZE, model="simple_radial", hat=(-0.1,), vfov_deg=60)
    calibrator = knowing(known, confidence_scale=0.03)
    monkeypatch.setattr("geocalib.pipeline.fit.usual_of", None)
    answer = calibrator.calibrate(picture(SIZE, 0), "simple_radial")
    assert bend_of(answer, answer.fy) < 0.99


@pytest.mark.parametrize("model", ["simple_radial", "radial", "division", "ucm"])
@pytest.mark.parametrize("angles", [(0, 0), (5, -50), (0, 80)])
def test_noise_with_a_sensor(packaged: Calibrator, model: str, angles: tuple[int, int]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (120, 160, 3), np.uint8)
    noise = Image.fromarray(pixels).resize((640, 480), Image.Resampling.NEAREST)
    answer = packaged.calibrate(by_phone(noise, *angles, 26), model)
    assert 0.5 < bend_of(answer, answer.fy) < 2


def test_what_is_beside_a_lost_picture_stays_as_it_is(packaged: Calibrator) -> None:
    noise: Any = np.random.default_rng(0).integers(0, 256, (480, 640, 3), np.uint8)
    lost = by_phone(Image.fromarray(noise), 5, -50, 26)
    (alone,) = packaged.calibrate([TOWN], "simple_radial")
    first, beside, last = packaged.calibrate([lost, TOWN, lost], "simple_radial")
    assert first.to_dict() == last.to_dict()
    assert isinstance(alone, Calibration)
    assert isinstance(beside, Calibration)
    assert beside.distortion == pytest.approx(alone.distortion, rel=1e-6)
