"""Fields, gravity and horizons on NumPy give the numbers that they give on torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from geocalib.cameras import Camera
from geocalib.errors import FieldError
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import (
    Fields,
    Free,
    cast_rays,
    latitude_field,
    latitude_jacobian,
    perspective_field,
    up_field,
    up_jacobian,
)
from geocalib.geometry.horizon import horizon, horizon_line
from geocalib.geometry.segments import Segments
from lenses import ALL_MODELS
from libraries import assert_same, numpy_of
from samples import pixels_in_domain, sample_camera
from views import random_gravity

GRAVITY = torch.cat(
    [random_gravity(5, seed=0, most_deg=80), torch.tensor([[0.0, 0, 1], [0, 1, 0]]).double()]
)
STEP = torch.linspace(-0.5, 0.5, 14, dtype=torch.float64).reshape(7, 2)


@pytest.mark.parametrize(
    "function",
    [
        sphere.to_roll_pitch,
        sphere.tangent_basis,
        lambda g: sphere.move(g, STEP if isinstance(g, torch.Tensor) else STEP.numpy()),
        lambda g: sphere.turn(g, STEP if isinstance(g, torch.Tensor) else STEP.numpy()),
        lambda g: sphere.difference(
            g, g[::-1] if isinstance(g, np.ndarray) else g.flip(0), sphere.tangent_basis(g)
        ),
        lambda g: sphere.angle_between(g, g[:1]),
        lambda g: sphere.rotate90(g, 3),
        sphere.world_from_camera,
        lambda g: sphere.world_from_camera(g, g[:, 0]),
        lambda g: sphere.from_roll_pitch(g[:, 0], g[0, 1]),
    ],
)
def test_gravity(function: Callable[[Any], Any]) -> None:
    assert_same(function(GRAVITY), function(GRAVITY.numpy()))


@pytest.mark.parametrize("name", ALL_MODELS)
def test_fields(name: str) -> None:
    camera = sample_camera(name)
    gravity = random_gravity(len(camera), seed=1)
    points = pixels_in_domain(camera, part=1.1)
    assert_same(
        perspective_field(camera, gravity, points),
        perspective_field(*numpy_of([camera, gravity, points])),
    )
    small = camera.resize(12, 10)
    assert_same(perspective_field(small, gravity), perspective_field(*numpy_of([small, gravity])))


@pytest.mark.parametrize("name", ALL_MODELS)
def test_jacobians(name: str) -> None:
    camera = sample_camera(name)
    every = tuple(range(len(camera.model.parameters)))
    free = Free(distortion=every, principal_point=True, aspect=True)

    def jacobians(camera: Camera, gravity: Any, points: Any) -> list[Any]:
        rays = cast_rays(camera, gravity, points[..., 0], points[..., 1])
        basis = sphere.tangent_basis(gravity)
        up, latitude = up_field(rays, camera, gravity), latitude_field(rays, gravity)
        return [
            up_jacobian(rays, up, camera, gravity, basis, free),
            latitude_jacobian(rays, latitude, camera, gravity, basis, free),
        ]

    arguments = [camera, random_gravity(len(camera), seed=1), pixels_in_domain(camera)]
    columns = jacobians(*arguments)
    assert len(columns[0]) == 6 + len(every)
    assert_same(columns, jacobians(*numpy_of(arguments)))


@pytest.mark.parametrize("name", ALL_MODELS)
def test_horizon(name: str) -> None:
    camera = sample_camera(name)
    gravity = random_gravity(len(camera), seed=2, most_deg=10)
    pixels, valid = horizon(camera, gravity, 32)
    same, same_valid = horizon(*numpy_of([camera, gravity]), 32)
    assert valid.any()
    # The ends are found by bisection on the image border, where rounding decides.
    assert_same(pixels, same, 1e-8)
    assert (valid.numpy() == same_valid)[:, 1:-1].all()


def test_horizon_line() -> None:
    camera = sample_camera("pinhole")
    gravity = random_gravity(1, seed=2)
    assert_same(horizon_line(camera, gravity), horizon_line(*numpy_of([camera, gravity])))


def test_segments() -> None:
    ends = torch.tensor([[[0.0, 0], [1, 0]], [[0, 0], [3, 4]], [[5, 5], [5, 4]]]).double()
    segments, same = Segments(ends, 0.5), Segments(ends.numpy(), 0.5)
    assert_same(segments.longest(3).ends, same.longest(3).ends)
    assert_same(segments.length, same.length)
    assert_same(segments.turned(20).ends, same.turned(20).ends)


class TestFieldsOfNumPy:
    @staticmethod
    def fields(**others: Any) -> Fields:
        parts = {"up": np.zeros((1, 2, 4, 5)), "latitude": np.zeros((1, 1, 4, 5))}
        parts |= {f"{name}_confidence": np.ones((1, 4, 5)) for name in parts}
        return Fields(**(parts | others))

    def test_are_held(self) -> None:
        fields = self.fields()
        assert fields.size == (5, 4)
        assert len(Fields.concatenate([fields, fields])) == 2
        assert isinstance(fields[[0]].up, np.ndarray)

    def test_numbers_must_be_floating(self) -> None:
        whole = {name: getattr(self.fields(), name).astype(int) for name in ("up", "latitude")}
        whole |= {f"{name}_confidence": np.ones((1, 4, 5), int) for name in ("up", "latitude")}
        with pytest.raises(FieldError, match="floating point, got int64"):
            self.fields(**whole)

    def test_libraries_must_not_mix(self) -> None:
        with pytest.raises(FieldError, match=r"latitude is torch\.float64.* but up is float64"):
            self.fields(latitude=torch.zeros(1, 1, 4, 5, dtype=torch.float64))
        assert math.isclose(self.fields().up.sum(), 0)
