"""Which of sensor and picture is believed about gravity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from calibrations import one
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.priors.gravity_reading import GravityReading
from geocalib.priors.judge import LEAST_WEIGHT, Odds
from geocalib.result.calibration import Calibration


def seen(sigma_deg: float) -> Calibration:
    """A level picture with this sigma."""
    calibration = one()
    covariance = np.zeros_like(np.asarray(calibration.covariance))
    covariance[:2, :2] = np.radians(sigma_deg) ** 2 * np.eye(2)
    return replace(calibration, gravity=np.array([0.0, 1.0, 0.0]), covariance=covariance)


def said(roll_deg: float, pitch_deg: float, edited: bool = False) -> GravityReading:
    x, y, z = from_roll_pitch(*np.radians([roll_deg, pitch_deg])).tolist()
    return GravityReading((x, y, z), 1.0, "accelerometer in EXIF", edited)


def test_a_picture_that_agrees_keeps_its_weight() -> None:
    odds = Odds.create(said(1, 1), seen(1.0))
    assert odds.sensor_believed
    assert odds.picture_weight > 0.95
    assert not odds.picture_lost_likelier


def test_the_further_off_a_picture_is_the_less_it_weighs() -> None:
    weights = [Odds.create(said(0, pitch), seen(2.0)).picture_weight for pitch in (0, 8, 12, 30)]
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] == LEAST_WEIGHT


def test_of_a_steep_view_the_picture_is_lost_sooner() -> None:
    level, steep = said(9, 29), said(9, 31)
    weight = [Odds.create(each, seen(10.0)).picture_weight for each in (level, steep)]
    assert weight[1] < weight[0]


@pytest.mark.parametrize("pitch", [-40, -60, -85, 80])
def test_an_untouched_file_is_believed_however_steep(pitch: float) -> None:
    odds = Odds.create(said(0, pitch), seen(2.0))
    assert odds.sensor_believed
    assert odds.picture_lost_likelier


def test_an_edited_file_is_not_believed_if_far_off() -> None:
    assert Odds.create(said(5, 5, edited=True), seen(2.0)).sensor_believed
    assert not Odds.create(said(90, 0, edited=True), seen(2.0)).sensor_believed
    assert not Odds.create(said(175, 0, edited=True), seen(2.0)).sensor_believed


def test_densities_add_up_to_one() -> None:
    """Over the angles between the two, as far as these matter."""
    grid = np.linspace(-30, 30, 121)
    total = 0.0
    for x in grid:
        for y in grid:
            odds = Odds.create(said(0, 0), seen(3.0)) if x == y == 0 else _apart(x, y)
            total += odds.both_right + odds.picture_lost
    assert total * 0.5**2 == pytest.approx(1, abs=0.03)


def _apart(x: float, y: float) -> Odds:
    """A sensor so many degrees off, along roll and along pitch."""
    step = np.radians([x, y])
    angle = np.hypot(*step)
    direction = step / angle * np.sin(angle)
    gravity = (float(direction[0]), float(np.cos(angle)), float(-direction[1]))
    pitch = abs(np.degrees(np.arcsin(gravity[2])))
    assert pitch <= 30.01
    return Odds.create(GravityReading(gravity, 1.0, "gauge"), seen(3.0))
