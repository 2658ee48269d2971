"""Answers of lenses that nobody named: fields of view between border rays, and rivals."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from geocalib.cameras import Camera
from geocalib.geometry.fields import ALONG_PITCH, ALONG_ROLL, LOG_F
from geocalib.result.calibration import Calibration
from geocalib.result.lens import Lens, LensFamily
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
    rays, _ = named.camera.unproject(np.array([[[320.0, 0.0], [320.0, 480.0]]]))
    between = math.degrees(math.acos(rays[0, 0] @ rays[0, 1]))
    assert unnamed.vfov_deg == pytest.approx(between)
    assert named.vfov_deg == pytest.approx(2 * math.degrees(math.atan(0.48)))
    assert unnamed.vfov_deg > named.vfov_deg + 1


def test_its_sigma_follows_from_the_slopes_of_the_angle() -> None:
    unnamed = calibration(-0.2).with_lens(LENS, calibration(-0.2).covariance)

    def view(log_f: float, k1: float) -> float:
        camera = unnamed.camera
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
