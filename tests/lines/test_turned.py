"""Lines of a portrait and a landscape picture of one camera are searched for together."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibrations import one
from geocalib.arrays import Array
from geocalib.cameras import Camera
from geocalib.geometry import gravity as sphere
from geocalib.geometry.segments import Segments
from geocalib.lines.turned import refine_turned
from geocalib.result.calibration import Calibration

F = 800.0
SIZES = ((1000, 750), (750, 1000))


def street(camera: Camera, gravity: Array, seed: int) -> Segments:
    """Segments along the vertical and two level directions at a right angle."""
    generator = np.random.default_rng(seed)
    angle = np.array([0.6, 0.6 + math.pi / 2], np.float64)
    level = np.stack([np.cos(angle), np.zeros(2), np.sin(angle)], -1)
    directions = np.concatenate([gravity[None], level @ sphere.world_from_camera(gravity)])
    parts = []
    for direction in directions:
        middle = generator.random((100, 2)) * camera.size[0]
        rays = camera.unproject(middle[None])[0][0]
        ends = [camera.project((rays + s * direction)[None])[0][0] for s in (-0.03, 0.03)]
        parts.append(np.stack(ends, 1))
    return Segments(np.concatenate(parts), 0.05).longest(300)


def test_one_focal_length_for_both() -> None:
    truths, priors, segments = [], [], []
    for i, size in enumerate(SIZES):
        camera = Camera.create("pinhole", np.array(F), size)
        angles = np.deg2rad([4.0 + 3 * i, -8.0])
        gravity = sphere.from_roll_pitch(angles[0], angles[1])
        centre = (size[0] / 2, size[1] / 2)
        start = one("pinhole", f=1.15 * F, size=size, c=centre)
        off = np.deg2rad(np.array([1.0, -1.5], np.float64))
        covariance = np.diag(np.array([0.03, 0.03, 0.3], np.float64) ** 2)
        priors.append(start.moved(start.camera, sphere.move(gravity, off), covariance))
        truths.append(gravity)
        segments.append(street(camera, gravity, i))
    found = refine_turned(priors, segments, [0, 0])
    for answer, gravity, size, own in zip(found, truths, SIZES, segments, strict=True):
        assert isinstance(answer, Calibration)
        assert (answer.width, answer.height) == size
        assert (answer.cx, answer.cy) == (size[0] / 2, size[1] / 2)
        assert answer.fy == pytest.approx(F, rel=0.01)
        assert math.degrees(sphere.angle_between(answer.gravity, gravity).item()) < 0.1
        assert answer.lines is not None
        traces = answer.lines.traces
        assert traces is not None
        assert traces.segments is own
        (vertical,) = traces.directions[traces.vertical]
        assert abs(vertical @ answer.gravity) > 0.999
    assert found[0].fy == pytest.approx(found[1].fy, rel=1e-12)
