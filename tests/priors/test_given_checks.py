"""What a caller gives, hard or soft, is held against the answer without it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geocalib import Calibration, Calibrator, Prior
from geocalib.geometry.gravity import from_roll_pitch
from oracle_network import knowing, picture, truth

SIZE = (480, 360)
TOWN = Path(__file__).parents[2] / "examples" / "town.jpg"


def found(options: dict[str, Any], **scene: Any) -> Calibration:
    """The answer of a network that knows the truth, and is sure of it to a few percent."""
    known = truth(SIZE, **{"vfov_deg": 50, "roll_deg": 5, "pitch_deg": 8, **scene})
    return knowing(known, confidence_scale=0.03).calibrate(picture(SIZE, 0), **options)


@pytest.mark.parametrize(
    ("options", "quantity"),
    [
        ({"vfov_deg": 50.0}, "focal"),
        ({"vfov_deg": Prior(50.0, 2.0)}, "focal"),
        ({"focal": 386.0}, "focal"),
        ({"roll_deg": 5.0, "pitch_deg": 8.0}, "gravity"),
        ({"roll_deg": Prior(5.0, 1.0)}, "gravity"),
        ({"roll_deg": Prior(5.0, 1.0), "pitch_deg": Prior(8.0, 1.0)}, "gravity"),
    ],
)
def test_what_agrees_is_said_to_agree(options: dict[str, Any], quantity: str) -> None:
    answer = found(options)
    (prior,) = answer.priors
    assert (prior.quantity, prior.source) == (quantity, "given")
    assert prior.tension < 1
    assert prior.used
    assert answer.warnings == ()


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"vfov_deg": 14.0}, "focal length"),
        ({"vfov_deg": 100.0}, "focal length"),
        ({"focal": Prior(2600.0, 50.0)}, "focal length"),
        ({"roll_deg": 30.0, "pitch_deg": 8.0}, "gravity"),
        ({"roll_deg": 0.0, "pitch_deg": 0.0}, "gravity"),
        ({"gravity": Prior([0.5, 0.86, 0.0], 0.002)}, "gravity"),
        ({"roll_deg": Prior(30.0, 0.2)}, "gravity"),
    ],
)
def test_what_the_picture_contradicts_is_kept_and_doubted(
    options: dict[str, Any], what: str
) -> None:
    answer = found(options)
    (prior,) = answer.priors
    assert prior.tension > 3
    assert any(
        one.startswith(f"{what}: given (") and one.endswith("sigma and was kept")
        for one in answer.warnings
    )
    assert not answer.trusted


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"focal": Prior(600.0, 60.0)}, "focal length"),
        ({"gravity": Prior([0.5, 0.86, 0.0], 0.02)}, "gravity"),
    ],
)
def test_what_the_picture_outweighs_is_said_to_be_so(options: dict[str, Any], what: str) -> None:
    """A picture that is much surer than a soft prior has its way; the warning does not say that
    the prior was."""
    answer = found(options)
    (prior,) = answer.priors
    assert prior.tension > 3
    assert answer.vfov_deg == pytest.approx(50, abs=2)
    assert answer.roll_deg == pytest.approx(5, abs=2)
    assert any(
        one.startswith(f"{what}: given (") and one.endswith("and was outweighed")
        for one in answer.warnings
    )


def test_a_known_lens_is_held_against_the_picture() -> None:
    scene = {"model": "simple_radial", "hat": (-0.1,)}
    wrong = found({"camera_model": "simple_radial", "distortion": [0.3]}, **scene)
    assert [prior.quantity for prior in wrong.priors] == ["distortion"]
    assert wrong.priors[0].contradicts
    right = wrong.priors[0].estimate
    again = found({"camera_model": "simple_radial", "distortion": list(right)}, **scene)
    assert not again.priors[0].contradicts


def test_the_estimate_is_that_without_what_was_given() -> None:
    given = found({"vfov_deg": 20.0})
    (prior,) = given.priors
    focal = 180 / math.tan(math.radians(25))
    assert prior.estimate[0] == pytest.approx(focal, rel=0.01)
    assert prior.prior_sigma == 0


def test_each_photo_of_a_list_is_held_against_its_own() -> None:
    truths = [truth(SIZE, vfov_deg=50), truth(SIZE, vfov_deg=30)]
    sources = [picture(SIZE, mark) for mark in range(2)]
    calibrator = knowing(*truths, confidence_scale=0.03)
    one, other = calibrator.calibrate(sources, vfov_deg=50)
    assert isinstance(one, Calibration)
    assert isinstance(other, Calibration)
    assert [each.priors[0].contradicts for each in (one, other)] == [False, True]
    for each, contradicts in zip(
        calibrator.calibrate_set(sources, gravity=np.array(from_roll_pitch(np.float64(1), 0.0))),
        (True, True),
        strict=True,
    ):
        assert isinstance(each, Calibration)
        assert each.priors[0].contradicts is contradicts


def test_a_zero_is_given(packaged: Calibrator) -> None:
    answer = packaged.calibrate(TOWN, roll_deg=0, pitch_deg=0)
    assert (answer.roll_deg, answer.pitch_deg) == pytest.approx((0, 0), abs=1e-9)
    assert "gravity: given (roll +0.0°, pitch +0.0°) contradicts the picture" in answer.warnings[0]
