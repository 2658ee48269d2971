"""Tension, against sampling and closed forms; and records that hold it."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from calibrations import one
from geocalib.errors import FormatError
from geocalib.geometry.gravity import move, tangent_basis
from geocalib.priors.exif import FocalReading
from geocalib.priors.gravity_reading import GravityReading
from geocalib.priors.judge import annotated, check
from geocalib.priors.readings import Readings
from geocalib.result.calibration import Calibration
from geocalib.result.evidence import PriorCheck

SIGMAS_DEG = (0.5, 2.0)


def alone(model: str = "pinhole") -> Calibration:
    """With known sigmas of roll and pitch direction, and 3% of the focal length."""
    calibration = one(model)
    covariance = np.diag(np.array([*np.radians(SIGMAS_DEG), 0.03]) ** 2)
    sigma = replace(calibration.sigma, focal=0.03 * calibration.fy, gravity_deg=SIGMAS_DEG[1])
    return replace(calibration, covariance=covariance, sigma=sigma)


def gravity_hint(step_deg: tuple[float, float], sigma_deg: float) -> GravityReading:
    """Off the estimate by a step along roll and pitch."""
    start = alone().gravity
    x, y, z = move(start, np.deg2rad(step_deg), tangent_basis(start)).tolist()
    return GravityReading((x, y, z), sigma_deg, "gimbal in XMP")


def test_focal_lengths_differ_by_their_logarithms() -> None:
    calibration = alone()
    hint = FocalReading(
        calibration.fy * math.exp(0.1), 0.04 * calibration.fy * math.exp(0.1), "tag"
    )
    (found,) = check(Readings(focal=hint), calibration)
    assert found.tension == pytest.approx(0.1 / 0.05)  # 3% and 4% make 5%.
    assert not found.contradicts
    assert (found.quantity, found.source) == ("focal", "EXIF tag")
    assert found.prior == (hint.focal_px,)
    assert found.estimate == (calibration.fy,)
    wrong = replace(hint, focal_px=2 * hint.focal_px, sigma_px=2 * hint.sigma_px)
    (found,) = check(Readings(focal=wrong), calibration)
    assert found.contradicts
    assert re.search(
        r"focal length: EXIF tag \(\d+ px\) contradicts the picture \(\d+ px\) by \d+\.\d sigma",
        str(found),
    )


def test_as_many_gravities_are_beyond_a_tension_as_of_a_normal_variable() -> None:
    generator = np.random.default_rng(0)
    sigmas = np.hypot(SIGMAS_DEG, 1.5)
    tensions = []
    for roll, pitch in generator.normal(size=(1000, 2)) * sigmas:
        (found,) = check(Readings(gravity=gravity_hint((roll, pitch), 1.5)), alone())
        tensions.append(found.tension)
    for level, share in ((1, 0.3173), (2, 0.0455)):
        assert np.mean(np.array(tensions) > level) == pytest.approx(share, rel=0.3)


def test_gravity_is_weighed_by_direction() -> None:
    across, along = (
        check(Readings(gravity=gravity_hint(step, 0.1)), alone())[0].tension
        for step in ((2.0, 0.0), (0.0, 2.0))
    )
    assert across > 3 > 1 > along


def test_any_distance_has_a_tension() -> None:
    (same,) = check(Readings(gravity=gravity_hint((0, 0), 1)), alone())
    assert same.tension == pytest.approx(0, abs=1e-6)
    (far,) = check(Readings(gravity=gravity_hint((170, 0), 0.01)), alone())
    assert 30 < far.tension < math.inf


def test_nothing_said_nothing_checked() -> None:
    assert check(Readings(), alone()) == ()


class TestRecord:
    priors = (
        PriorCheck("focal", "EXIF tag", (500.0,), 15.0, (480.0,), 20.0, 0.8),
        PriorCheck("gravity", "gimbal", (0.0, 1.0, 0.0), 1.0, (0.0, 0.6, 0.8), math.nan, math.nan),
    )

    def test_round_trip(self) -> None:
        calibration = replace(one(), priors=self.priors)
        again = Calibration.from_json(calibration.to_json())
        assert again == calibration
        assert again.priors[0] == self.priors[0]
        assert math.isnan(again.priors[1].tension)

    def test_records_without_have_none(self) -> None:
        assert one().to_dict()["priors"] == []

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            ({"priors": 3}, "priors must be a list of objects, got 3"),
            ({"priors": [3]}, r"priors\[0\] must be an object"),
            (
                {"quantity": "roll"},
                r"priors\[0\].quantity must be focal, gravity or distortion, got 'roll'",
            ),
            ({"prior": [1, 2]}, r"priors\[0\].prior must be a list of 1 numbers"),
            ({"used": 1}, r"priors\[0\].used must be true or false, got 1"),
            ({"tension": "high"}, r"priors\[0\].tension must be a number"),
        ],
    )
    def test_bad_values_are_named(self, change: dict[str, Any], says: str) -> None:
        record = json.loads(replace(one(), priors=self.priors).to_json())
        if "priors" in change:
            record |= change
        else:
            record["priors"][0] |= change
        with pytest.raises(FormatError, match=says):
            Calibration.from_dict(record)


@pytest.mark.parametrize(("off_deg", "warned"), [(1.0, False), (12.0, True)])
def test_an_answer_that_lines_drew_away_from_its_sensor_says_so(
    off_deg: float, warned: bool
) -> None:
    """Though the picture without lines agrees with the sensor."""
    unsure, reading = alone(), gravity_hint((0.0, 0.5), 1.0)
    checks = check(Readings(gravity=reading), unsure)
    assert not checks[0].contradicts
    basis = tangent_basis(unsure.gravity)
    drawn_away = move(unsure.gravity, np.deg2rad((0.0, 0.5 + off_deg)), basis)
    answer = replace(unsure, gravity=drawn_away)
    found = annotated(answer, checks, Readings(gravity=reading), (), 1)
    assert isinstance(found, Calibration)
    assert any(one.endswith("by 12.0 sigma and was outweighed") for one in found.warnings) == warned
    assert found.trusted != warned
