"""Perspective fields against the projection itself, and their derivatives."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from geocalib.cameras import MODELS, Camera
from geocalib.errors import FieldError
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import (
    Fields,
    Free,
    cast_rays,
    latitude_field,
    latitude_jacobian,
    perspective_field,
    pixel_grid,
    up_field,
    up_jacobian,
)
from lenses import ALL_MODELS
from samples import pixels_in_domain, sample_camera

ROLL_PITCH_DEG = [(0, 0), (10, -20), (-35, 40), (170, 15), (80, -65)]


def gravity_deg(roll: float, pitch: float, count: int = 1) -> Tensor:
    """(count, 3) of one roll and pitch in degrees."""
    angles = torch.deg2rad(torch.tensor([roll, pitch], dtype=torch.float64))
    return sphere.from_roll_pitch(angles[0], angles[1]).expand(count, 3)


# Against the projection -------------------------------------------------------------------------


@pytest.mark.parametrize("roll_pitch", ROLL_PITCH_DEG)
@pytest.mark.parametrize("name", ALL_MODELS)
def test_field_against_the_projection(name: str, roll_pitch: tuple[float, float]) -> None:
    camera = sample_camera(name)
    g = gravity_deg(*roll_pitch, count=len(camera))
    pixels = pixels_in_domain(camera, count=60, part=0.9)
    up, latitude, valid = perspective_field(camera, g, pixels)
    assert bool(valid.all())
    assert up.shape == pixels.shape
    assert latitude.shape == valid.shape == pixels.shape[:2]

    # A point on the ray that moves up a little, and down: the picture shows where it goes.
    rays, _ = camera.unproject(pixels)
    step = 1e-5 * g[:, None]
    above, seen_above = camera.project(rays - step)
    below, seen_below = camera.project(rays + step)
    assert bool((seen_above & seen_below).all())
    motion = above - below
    expected = motion / torch.linalg.vector_norm(motion, dim=-1, keepdim=True)
    sine = -(rays * g[:, None]).sum(-1)
    # Close to the zenith and the nadir the direction changes within the step.
    clear = sine.abs() < 0.999
    assert int(clear.sum()) > 50 * len(camera)
    torch.testing.assert_close(up[clear], expected[clear], rtol=0, atol=1e-6)
    torch.testing.assert_close(torch.sin(latitude), sine, rtol=0, atol=1e-12)
    torch.testing.assert_close(torch.linalg.vector_norm(up, dim=-1), torch.ones_like(sine))


@pytest.mark.parametrize("name", [name for name in ALL_MODELS if MODELS[name].wide])
def test_field_beyond_90_degrees(name: str) -> None:
    camera = sample_camera(name)
    # 100 degrees to the left, to the right and upwards.
    rays = torch.tensor([[-1.0, 0, 0], [1, 0, 0], [0, -1, 0]], dtype=torch.float64)
    rays = rays * math.sin(math.radians(100))
    rays[:, 2] = math.cos(math.radians(100))
    pixels, valid = camera.project(rays.expand(len(camera), 3, 3))
    assert bool(valid.all())
    up, latitude, valid = perspective_field(camera, gravity_deg(0, 0, len(camera)), pixels)
    assert bool(valid.all())
    expected = torch.deg2rad(torch.tensor([0.0, 0.0, 80.0], dtype=torch.float64))
    torch.testing.assert_close(latitude, expected.expand_as(latitude))
    # At the sides up is upwards; above the middle, beyond the zenith, it is back towards it.
    expected = torch.tensor([[0.0, -1.0], [0.0, -1.0], [0.0, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(up, expected.expand_as(up))


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_field_turns_with_the_image(turns: int) -> None:
    camera = sample_camera("radial")[:1].crop(300, 200, 8, 6)
    g = gravity_deg(20, -10)
    up, latitude, _ = perspective_field(camera, g)
    turned_up, turned_latitude, _ = perspective_field(
        camera.rotate90(turns), sphere.rotate90(g, turns)
    )
    torch.testing.assert_close(turned_latitude, torch.rot90(latitude, turns, (2, 3)))
    x, y = torch.rot90(up, turns, (2, 3)).unbind(1)
    for _ in range(turns):
        x, y = y, -x
    torch.testing.assert_close(turned_up, torch.stack([x, y], 1))


# Conventions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL_MODELS)
def test_level_camera(name: str) -> None:
    camera = sample_camera(name)
    g = gravity_deg(0, 0, len(camera))
    axis = pixels_in_domain(camera, count=20, part=0.5)
    axis = torch.stack([axis[..., 0], camera.c[:, 1:].expand(-1, 20)], -1)
    up, latitude, _ = perspective_field(camera, g, axis)
    torch.testing.assert_close(latitude, torch.zeros_like(latitude))
    torch.testing.assert_close(up, torch.tensor([0.0, -1.0]).double().expand_as(up))
    above = camera.c[:, None] - torch.tensor([0.0, 30.0], dtype=torch.float64)
    _, latitude, _ = perspective_field(camera, g, above)
    assert bool((latitude > 0).all())


def test_level_pinhole_camera_has_one_up_vector() -> None:
    camera = Camera.create("pinhole", f=100.0, size=(64, 48), dtype=torch.float64)
    up, latitude, valid = perspective_field(camera, gravity_deg(0, 0))
    assert up.shape == (1, 2, 48, 64)
    assert latitude.shape == (1, 1, 48, 64)
    assert valid.shape == (1, 48, 64)
    torch.testing.assert_close(up[:, 0], torch.zeros_like(up[:, 0]))
    torch.testing.assert_close(up[:, 1], -torch.ones_like(up[:, 1]))
    assert latitude[0, 0, 0, 32].item() == pytest.approx(math.atan(23.5 / 100), rel=1e-4)
    assert bool((latitude[0, 0].diff(dim=0) < 0).all())


@pytest.mark.parametrize("name", ALL_MODELS)
def test_signs_of_pitch_and_roll(name: str) -> None:
    camera = sample_camera(name)
    centre = camera.c[:, None]
    # Looking up by 20 degrees, the centre is 20 degrees above the horizon.
    _, latitude, _ = perspective_field(camera, gravity_deg(0, 20, len(camera)), centre)
    torch.testing.assert_close(latitude, torch.full_like(latitude, math.radians(20)))
    # With a roll of 30 degrees the top of a pole leans left.
    squared = replace(camera, aspect=torch.ones_like(camera.aspect))
    up, _, _ = perspective_field(squared, gravity_deg(30, 0, len(camera)), centre)
    expected = torch.tensor([-0.5, -math.sqrt(3) / 2], dtype=torch.float64)
    torch.testing.assert_close(up, expected.expand_as(up))


@pytest.mark.parametrize("name", ALL_MODELS)
def test_zenith_and_nadir_in_view(name: str) -> None:
    camera = sample_camera(name)
    for pitch in (90, -90):
        g = torch.tensor([[0.0, 0.0, -1.0 if pitch > 0 else 1.0]], dtype=torch.float64)
        g = g.expand(len(camera), 3)
        pixels = pixels_in_domain(camera, count=20)
        up, latitude, valid = perspective_field(camera, g, pixels)
        assert pixels[:, 0].equal(camera.c)
        assert bool(valid.all())
        assert bool(torch.isfinite(up).all())
        torch.testing.assert_close(
            latitude[:, 0], torch.full_like(latitude[:, 0], math.radians(pitch))
        )
        # Around the zenith everything points to it, around the nadir away from it.
        outwards = pixels[:, 1:] - camera.c[:, None]
        assert bool(((up[:, 1:] * outwards).sum(-1) * pitch < 0).all())


def test_pixels_outside_the_domain_are_invalid_and_finite() -> None:
    for name in ALL_MODELS:
        camera = sample_camera(name)
        far = torch.tensor([[[1e6, 1e6], [320.0, 240.0]]], dtype=torch.float64)
        far = far.expand(len(camera), -1, -1)
        up, latitude, valid = perspective_field(camera, gravity_deg(5, 5, len(camera)), far)
        ends = torch.isfinite(camera.limits.radius)
        assert valid[:, 0].equal(~ends)
        assert bool(valid[:, 1].all())
        assert bool(torch.isfinite(up).all())
        assert bool(torch.isfinite(latitude).all())


# Derivatives ------------------------------------------------------------------------------------


class Problem:
    """One point per camera, so that the derivative in a camera's parameters is per point."""

    def __init__(self, name: str) -> None:
        samples = sample_camera(name)
        points = pixels_in_domain(samples, count=25, part=0.8)
        rows = torch.arange(len(samples)).repeat_interleave(points.shape[1])
        self.camera = samples[rows]
        self.x, self.y = (value.reshape(-1, 1) for value in points.unbind(-1))
        roll_pitch = torch.deg2rad(torch.tensor(ROLL_PITCH_DEG, dtype=torch.float64))
        chosen = roll_pitch[torch.arange(len(rows)) % len(roll_pitch)]
        self.gravity = sphere.from_roll_pitch(chosen[:, 0], chosen[:, 1])
        self.basis = sphere.tangent_basis(self.gravity)
        self.rays = cast_rays(self.camera, self.gravity, self.x, self.y)
        self.up = up_field(self.rays, self.camera, self.gravity)
        self.scale = torch.ones(6 + samples.distortion.shape[1], dtype=torch.float64)
        self.scale[-3:-1] = samples.f[0]

    def observed(self, step: Tensor) -> Tensor:
        """(B, 2): up along t at step 0, and sin(latitude), after a step (B, P)."""
        g = sphere.move(self.gravity, step[:, :2], self.basis)
        camera = replace(
            self.camera,
            f=self.camera.f * torch.exp(step[:, 2]),
            distortion=self.camera.distortion + step[:, 3:-3],
            c=self.camera.c + step[:, -3:-1],
            aspect=self.camera.aspect * torch.exp(step[:, -1]),
        )
        rays = cast_rays(camera, g, self.x, self.y)
        up = up_field(rays, camera, g)
        along = up.y * self.up.x - up.x * self.up.y
        return torch.cat([along, latitude_field(rays, g).sine], -1)

    def analytic(self, free: Free) -> Tensor:
        """(B, 2, P)."""
        rest = (self.camera, self.gravity, self.basis, free)
        up = torch.cat(up_jacobian(self.rays, self.up, *rest), -1)
        field = latitude_field(self.rays, self.gravity)
        latitude = torch.cat(latitude_jacobian(self.rays, field, *rest), -1)
        return torch.stack([up, latitude], 1)


def everything(problem: Problem) -> Free:
    every = tuple(range(problem.camera.distortion.shape[1]))
    return Free(gravity=True, focal=True, distortion=every, principal_point=True, aspect=True)


@pytest.mark.parametrize("name", ALL_MODELS)
def test_jacobians_against_autograd(name: str) -> None:
    problem = Problem(name)
    analytic = problem.analytic(everything(problem))
    step = torch.zeros(len(problem.camera), len(problem.scale), dtype=torch.float64)
    observed = problem.observed(step.requires_grad_())
    expected = torch.stack(
        [torch.autograd.grad(column.sum(), step, retain_graph=True)[0] for column in observed.T], 1
    )
    scale = problem.scale
    torch.testing.assert_close(analytic * scale, expected * scale, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ALL_MODELS)
def test_jacobians_against_central_differences(name: str) -> None:
    problem = Problem(name)
    analytic = problem.analytic(everything(problem))
    for i, scale in enumerate(problem.scale):
        step = torch.zeros(len(problem.camera), len(problem.scale), dtype=torch.float64)
        # A step that changes the field by about 1e-4, whatever the parameter.
        size = 1e-4 / analytic[:, :, i].abs().amax(1).clamp(min=1 / scale)
        step[:, i] = size
        near, far = (problem.observed(n * step) - problem.observed(-n * step) for n in (1, 2))
        expected = (8 * near - far) / (12 * size[:, None])
        torch.testing.assert_close(
            analytic[:, :, i] * scale, expected * scale, rtol=1e-6, atol=1e-8
        )


@pytest.mark.parametrize("name", ALL_MODELS)
def test_free_chooses_columns(name: str) -> None:
    problem = Problem(name)
    free = everything(problem)
    full = problem.analytic(free)
    count = full.shape[-1]
    groups = {
        "gravity": [0, 1],
        "focal": [2],
        "distortion": list(range(3, count - 3)),
        "principal_point": [count - 3, count - 2],
        "aspect": [count - 1],
    }
    for left_out, columns in groups.items():
        kept = [i for i in range(count) if i not in columns]
        nothing = () if left_out == "distortion" else False
        found = problem.analytic(replace(free, **{left_out: nothing}))
        assert found.equal(full[..., kept])


# Grids and observed fields ----------------------------------------------------------------------


def test_pixel_grid() -> None:
    grid = pixel_grid(3, 2, torch.zeros(1, dtype=torch.float64))
    assert grid.dtype == torch.float64
    assert grid.tolist() == [
        [[0.5, 0.5], [1.5, 0.5], [2.5, 0.5]],
        [[0.5, 1.5], [1.5, 1.5], [2.5, 1.5]],
    ]


@pytest.mark.parametrize("name", ALL_MODELS)
def test_grid_is_the_field_at_pixel_centres(name: str) -> None:
    camera = sample_camera(name).crop(300, 230, 7, 5)
    g = gravity_deg(10, 20, len(camera))
    up, latitude, valid = perspective_field(camera, g)
    points = pixel_grid(7, 5, camera.f)[3, 6].expand(len(camera), 1, 2)
    one_up, one_latitude, one_valid = perspective_field(camera, g, points)
    torch.testing.assert_close(up[:, :, 3, 6], one_up[:, 0])
    torch.testing.assert_close(latitude[:, :, 3, 6], one_latitude)
    assert valid[:, 3, 6].equal(one_valid[:, 0])


def test_sizes_must_agree_on_a_grid() -> None:
    camera = Camera.create("pinhole", f=[10.0, 10.0], size=[[8, 6], [6, 8]], dtype=torch.float32)
    with pytest.raises(FieldError, match="different sizes"):
        perspective_field(camera, gravity_deg(0, 0, 2).float())


def observed(batch: int = 2, height: int = 6, width: int = 8) -> dict[str, Tensor]:
    return {
        "up": torch.zeros(batch, 2, height, width),
        "latitude": torch.zeros(batch, 1, height, width),
        "up_confidence": torch.ones(batch, height, width),
        "latitude_confidence": torch.ones(batch, height, width),
    }


def test_fields_batches() -> None:
    fields = Fields(**observed())
    assert len(fields) == 2
    assert fields.size == (8, 6)
    assert len(fields[1:]) == 1
    assert len(Fields.concatenate([fields, fields[:1]])) == 3


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("up", torch.zeros(2, 3, 6, 8), r"up must be a \(B, 2, H, W\) tensor, got \(2, 3, 6, 8\)"),
        ("up", None, "up must be .* got NoneType"),
        ("latitude", torch.zeros(2, 6, 8), r"latitude must be a \(2, 1, 6, 8\) tensor"),
        ("up_confidence", torch.ones(2, 6, 7), r"up_confidence must be a \(2, 6, 8\) tensor"),
        ("latitude_confidence", torch.ones(1, 6, 8), "latitude_confidence must be"),
        ("latitude", torch.zeros(2, 1, 6, 8).double(), "latitude is torch.float64 on cpu, but up"),
    ],
)
def test_fields_errors(name: str, value: Tensor, message: str) -> None:
    with pytest.raises(FieldError, match=message):
        Fields(**(observed() | {name: value}))


def test_fields_must_hold_numbers() -> None:
    whole = {name: value.long() for name, value in observed().items()}
    with pytest.raises(FieldError, match=r"floating point, got torch\.int64"):
        Fields(**whole)
    with pytest.raises(FieldError, match="0 images of 8x6 pixels hold nothing"):
        Fields(**observed(batch=0))
    with pytest.raises(FieldError, match="2 images of 8x1 pixels"):
        Fields(**observed(height=1))
