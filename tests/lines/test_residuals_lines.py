"""Residuals of segments, and their derivatives against central differences and autograd."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from streets import camera_of, gravity_of, headings_of, segments_along
from torch import Tensor

from geocalib import gravity as sphere
from geocalib.cameras import Camera
from geocalib.fields import Free
from geocalib.lines.minimise import turned
from geocalib.lines.residuals import directions_of, look, moves_of
from geocalib.lines.segments import Bundle
from samples import ALL_MODELS

GRAVITY = gravity_of(-6.0, 9.0)
HEADINGS = headings_of(GRAVITY, [20.0, 63.0])
DIRECTIONS = directions_of(GRAVITY[None], HEADINGS[None])


@pytest.mark.parametrize("model", ALL_MODELS)
def test_lines_of_the_world_have_no_residual(model: str) -> None:
    camera = camera_of(model)
    for k, direction in enumerate(DIRECTIONS[0]):
        segments = segments_along(camera, direction[None], each=20, length=1.0)
        sight = look(camera, Bundle.create([segments]), DIRECTIONS)
        assert sight.residual[0, k].abs().max() < 1e-5


def test_the_residual_is_the_angle_in_the_picture() -> None:
    """Against the sine between a segment and the line to the vanishing point, by hand."""
    camera = camera_of("pinhole")
    segments = segments_along(camera, DIRECTIONS[0, :0], clutter=50)
    sight = look(camera, Bundle.create([segments]), DIRECTIONS)
    first, last = segments.ends.unbind(1)
    along = (last - first) / segments.length[:, None]
    for k, d in enumerate(DIRECTIONS[0]):
        point = camera.c[0] + camera.f * d[:2] / d[2]
        towards = point - 0.5 * (first + last)
        distance = torch.linalg.vector_norm(towards, dim=-1)
        sine = (along[:, 0] * towards[:, 1] - along[:, 1] * towards[:, 0]).abs() / distance
        assert torch.allclose(sight.residual[0, k].abs(), sine, atol=1e-10)
        assert torch.allclose(sight.nearness[0, k], 1 / distance, rtol=1e-9)


def _parameters(camera: Camera) -> Tensor:
    """Steps of gravity, headings, log f, distortion and principal point."""
    return torch.zeros(2 + 2 + 1 + len(camera.model.parameters) + 2, dtype=torch.float64)


def _residuals(camera: Camera, bundle: Bundle, step: Tensor) -> Tensor:
    count = len(camera.model.parameters)
    gravity = sphere.move(GRAVITY[None], step[None, :2])
    headings = turned(HEADINGS[None], GRAVITY[None], gravity, step[None, 2:4])
    moved = replace(
        camera,
        f=camera.f * step[4].exp(),
        distortion=camera.distortion + step[5 : 5 + count],
        c=camera.c + step[5 + count :],
    )
    return look(moved, bundle, directions_of(gravity, headings)).residual[0]


@pytest.mark.parametrize("model", ALL_MODELS)
def test_jacobian(model: str) -> None:
    camera = camera_of(model)
    segments = segments_along(camera, DIRECTIONS[0], each=4, clutter=6)
    bundle = Bundle.create([segments])
    sight = look(camera, bundle, DIRECTIONS)
    basis = sphere.tangent_basis(GRAVITY[None])
    free = Free(True, True, tuple(range(len(camera.model.parameters))), True)
    analytic = sight.jacobian(moves_of(DIRECTIONS, basis), free)[0]
    at = _parameters(camera)
    for i in range(len(at)):
        h = 1e-6 if i < len(at) - 2 else 1e-3
        step = torch.zeros_like(at)
        step[i] = h
        central = (_residuals(camera, bundle, step) - _residuals(camera, bundle, -step)) / (2 * h)
        assert torch.allclose(analytic[i], central, atol=2e-6), i
    automatic = torch.autograd.functional.jacobian(lambda x: _residuals(camera, bundle, x), at)
    assert torch.allclose(analytic, automatic.movedim(-1, 0), atol=1e-9)


def test_headings_stay_level() -> None:
    after = gravity_of(20.0, -30.0)
    moved = turned(HEADINGS[None], GRAVITY[None], after[None], torch.zeros(1, 2).double())[0]
    assert torch.allclose(moved @ after, torch.zeros(2, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(moved @ moved.T, HEADINGS @ HEADINGS.T, atol=1e-12)
