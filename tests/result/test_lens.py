"""Answers of lenses that nobody named: fields of view between border rays, and rivals."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from geocalib.cameras import Camera
from geocalib.errors import FormatError
from geocalib.geometry.fields import ALONG_PITCH, ALONG_ROLL, LOG_F
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.result.calibration import Calibration
from geocalib.result.evidence import Lens, LensFamily
from geocalib.result.uncertainty import Uncertainty

LENS = Lens(
    (
        LensFamily("simple_radial", 0.7, 60.0, 75.0, 1.0, 2.0),
        LensFamily("pinhole", 0.3, 64.0, 79.0, 1.5, 2.5),
    )
)
NAMES = (ALONG_ROLL, ALONG_PITCH, LOG_F, "k1")


def calibration(k1: float) -> Calibration:
    camera = Camera.create("simple_radial", 500.0, (640, 480), [k1])
    covariance = np.diag([0.01, 0.01, 0.05, 0.02]) ** 2
    gravity = np.array([0.0, 1.0, 0.0])
    sigma = Uncertainty.of(camera, gravity, covariance, NAMES)
    return Calibration(None, camera, gravity, sigma, covariance, NAMES, "converged")


def test_the_field_of_view_is_between_border_rays() -> None:
    named = calibration(-0.2)
    unnamed = named.with_lens(LENS, named.covariance)
    rays, _ = named.cameras.unproject(np.array([[[320.0, 0.0], [320.0, 480.0]]]))
    between = math.degrees(math.acos(rays[0, 0] @ rays[0, 1]))
    assert unnamed.vfov_deg == pytest.approx(between)
    assert named.vfov_deg == pytest.approx(2 * math.degrees(math.atan(0.48)))
    assert unnamed.vfov_deg > named.vfov_deg + 1


def test_its_sigma_follows_from_the_slopes_of_the_angle() -> None:
    unnamed = calibration(-0.2).with_lens(LENS, calibration(-0.2).covariance)

    def view(log_f: float, k1: float) -> float:
        camera = unnamed.cameras
        moved = replace(camera, f=camera.f * math.exp(log_f), distortion=camera.distortion + k1)
        return math.degrees(moved.border_vfov.item())

    step = 1e-5
    slopes = [
        (view(step, 0) - view(-step, 0)) / (2 * step),
        (view(0, step) - view(0, -step)) / (2 * step),
    ]
    expected = math.hypot(slopes[0] * 0.05, slopes[1] * 0.02)
    assert unnamed.sigma.vfov_deg == pytest.approx(expected, rel=1e-5)


def test_without_distortion_both_are_the_same() -> None:
    named = calibration(0.0)
    assert named.with_lens(LENS, named.covariance).vfov_deg == pytest.approx(named.vfov_deg)


def test_families_are_said_in_a_sentence() -> None:
    assert str(LENS) == "lens: simple_radial 70%, pinhole 30%"
    assert LENS.camera_model == "simple_radial"
    assert [each.camera_model for each in LENS.rivals] == ["pinhole"]


def test_families_survive_the_record() -> None:
    unnamed = calibration(-0.2).with_lens(LENS, calibration(-0.2).covariance)
    again = Calibration.from_json(unnamed.to_json())
    assert again == unnamed
    assert again.lens == LENS
    assert again.vfov_deg == unnamed.vfov_deg
    assert Calibration.from_json(calibration(-0.2).to_json()).lens is None


def test_a_record_of_impossible_families_is_refused() -> None:
    record = calibration(-0.2).with_lens(LENS, calibration(-0.2).covariance).to_dict()
    record["lens"][1]["probability"] = 1.5
    with pytest.raises(FormatError, match=r"^x: lens\[1\]\.probability must be between 0 and 1"):
        Calibration.from_dict(record, "x")


def test_older_records_named_their_lenses() -> None:
    record = calibration(-0.2).to_dict() | {"schema": "geocalib/3"}
    del record["lens"]
    again = Calibration.from_dict(record)
    assert again == calibration(-0.2)
    assert again.frame == "upright"


@pytest.mark.parametrize("orientation", [3, 6])
def test_families_turn_with_the_picture(orientation: int) -> None:
    unnamed = calibration(-0.2).with_lens(LENS, calibration(-0.2).covariance)
    upright = replace(unnamed, orientation=orientation)
    stored = upright.in_frame("stored")
    assert stored.lens is not None
    first = stored.lens.families[0]
    wide, high = (75.0, 60.0) if orientation == 3 else (60.0, 75.0)
    assert (first.hfov_deg, first.vfov_deg) == (wide, high)
    # What one family answers turns as the answer itself does.
    down = from_roll_pitch(*np.deg2rad([1.0, 2.0]))
    same = replace(upright, gravity=down).in_frame("stored")
    assert (first.roll_deg, first.pitch_deg) == pytest.approx((same.roll_deg, same.pitch_deg))
    back = stored.in_frame("upright").lens
    assert back is not None
    assert back.families[0].pitch_deg == pytest.approx(LENS.families[0].pitch_deg)
