"""Lines of a portrait and a landscape picture of one camera are searched for together."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from calibrations import one
from geocalib.cameras import Camera
from geocalib.geometry import gravity as sphere
from geocalib.geometry.segments import Segments
from geocalib.lines.turned import refine_turned
from geocalib.result.calibration import Calibration

F = 800.0
SIZES = ((1000, 750), (750, 1000))


def street(camera: Camera, gravity: Tensor, seed: int) -> Segments:
    """Segments along the vertical and two level directions at a right angle."""
    generator = torch.Generator().manual_seed(seed)
    angle = torch.tensor([0.6, 0.6 + math.pi / 2], dtype=torch.float64)
    level = torch.stack([torch.cos(angle), torch.zeros(2), torch.sin(angle)], -1).double()
    directions = torch.cat([gravity[None], level @ sphere.world_from_camera(gravity)])
    parts = []
    for direction in directions:
        middle = torch.rand(100, 2, generator=generator, dtype=torch.float64) * camera.size[0]
        rays = camera.unproject(middle[None])[0][0]
        ends = [camera.project((rays + s * direction)[None])[0][0] for s in (-0.03, 0.03)]
        parts.append(torch.stack(ends, 1))
    return Segments(torch.cat(parts), 0.05).longest(300)


def test_one_focal_length_for_both() -> None:
    truths, priors, segments = [], [], []
    for i, size in enumerate(SIZES):
        camera = Camera.create("pinhole", torch.tensor(F).double(), size)
        angles = torch.tensor([4.0 + 3 * i, -8.0], dtype=torch.float64).deg2rad()
        gravity = sphere.from_roll_pitch(angles[0], angles[1])
        centre = (size[0] / 2, size[1] / 2)
        start = one("pinhole", f=1.15 * F, size=size, c=centre)
        off = torch.deg2rad(torch.tensor([1.0, -1.5], dtype=torch.float64))
        covariance = torch.diag(torch.tensor([0.03, 0.03, 0.3], dtype=torch.float64) ** 2)
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
        assert (vertical * answer.gravity).sum().abs() > 0.999
    assert found[0].fy == pytest.approx(found[1].fy, rel=1e-12)
