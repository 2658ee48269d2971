"""Rendered pictures with simulated readings: both together are better than either alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from PIL import Image

from geocalib import Calibrator
from geocalib.arrays import Array
from geocalib.cameras import Camera
from geocalib.geometry.gravity import from_roll_pitch, tangent_basis
from geocalib.priors.readings import MOTION_DEG_PER_G, PHONE_SIGMA_DEG
from geocalib.result.calibration import Calibration
from maker_notes import apple, photo

torch = pytest.importorskip("torch")

SIZE = (320, 240)
PICTURES = 10
MOTION_G = 0.02
SIGMA_DEG = math.hypot(PHONE_SIGMA_DEG, MOTION_DEG_PER_G * MOTION_G)


def taken(seed: int) -> tuple[bytes, Array, Array]:
    """A photo of a town, gravity (3,), and what its phone felt of it, (3,) of length 1."""
    from geocalib.synthetic import render_scene

    chance = np.random.default_rng(seed)
    gravity = from_roll_pitch(*np.deg2rad(chance.uniform(-20, 20, (2, 1))))
    camera = Camera.create("pinhole", f=chance.uniform(0.8, 1.1) * SIZE[0], size=SIZE)
    pixels = (
        (255 * render_scene(camera, gravity, seed, subpixels=1)[0].numpy()).round().astype(np.uint8)
    )
    off = np.deg2rad(chance.normal(0, SIGMA_DEG, 2))
    said = gravity[0] + tangent_basis(gravity[0]) @ off
    said /= np.linalg.norm(said)
    x, y, z = said.tolist()
    # Of a phone that lies on its side, which a picture is stored as.
    felt = [-(1 + MOTION_G) * value for value in (y, x, z)]
    return photo(apple(felt), picture=Image.fromarray(pixels)), gravity[0], said


def test_together_they_are_better_than_either() -> None:
    calibrator = Calibrator("lean", device="cpu")
    errors, lengths = [], []
    for seed in range(PICTURES):
        file, gravity, said = taken(seed)
        alone, both = (
            calibrator.calibrate(file, exif=False, lines="off", sensors=sensors)
            for sensors in (False, True)
        )
        errors.append([off_deg(each, gravity) for each in (alone.gravity, said, both.gravity)])
        lengths.append(errors[-1][2] / sigma_deg(both))
        assert both.sigma.gravity_deg <= SIGMA_DEG * 1.001
    picture, sensor, together = np.sqrt(np.mean(np.square(errors), 0)).tolist()
    assert together < min(picture, sensor)
    assert np.median(lengths) < 1.5


def off_deg(found: Array, gravity: Array) -> float:
    return math.degrees(math.acos(min(1.0, float(found @ gravity))))


def sigma_deg(answer: Calibration) -> float:
    """Of the length of an error in both directions."""
    return math.degrees(math.sqrt(np.trace(answer.covariance[:2, :2])))
