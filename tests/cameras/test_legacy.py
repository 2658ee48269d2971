"""The up field of the published distorted weights, from its definition, and a fit to it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from geocalib.cameras import MODELS, Camera, to_colmap
from geocalib.cameras.legacy import LegacySimpleRadial, without_legacy
from geocalib.errors import CameraError
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import (
    Free,
    cast_rays,
    latitude_field,
    latitude_jacobian,
    perspective_field,
    up_field,
    up_jacobian,
)
from geocalib.solver import FitOptions, Status, fit
from samples import pixels_in_domain, sample_camera
from views import gravity_error_deg, random_cameras, random_gravity, ray_error_deg, see

EVERY_PIXEL = FitOptions(cells=None)


def legacy(camera: Camera) -> Camera:
    return replace(camera, model=LegacySimpleRadial())


def test_up_is_the_mistaken_one_and_latitude_the_true_one() -> None:
    camera = sample_camera("simple_radial")
    g = random_gravity(len(camera), seed=0)
    pixels = pixels_in_domain(camera, count=40)
    up, latitude, valid = perspective_field(legacy(camera), g, pixels)
    m = camera.normalise(pixels).numpy()
    for i, (k, (gx, gy, gz)) in enumerate(
        zip(camera.distortion[:, 0].numpy(), g.numpy(), strict=True)
    ):
        for j, (x, y) in enumerate(m[i]):
            s = x * x + y * y
            derivative = (1 + k * s) * np.eye(2) + 2 * k * np.outer([x, y], [x, y])
            moved = derivative @ [gz * x - gx, gz * y - gy]
            expected = np.diag([float(camera.aspect[i]), 1.0]) @ moved
            expected = expected / np.linalg.norm(expected)
            np.testing.assert_allclose(up[i, j].numpy(), expected, atol=1e-12)
    exact_up, exact_latitude, exact_valid = perspective_field(camera, g, pixels)
    assert latitude.equal(exact_latitude)
    assert valid.equal(exact_valid)
    # The same at the centre and without distortion, clearly another elsewhere.
    torch.testing.assert_close(up[:, 0], exact_up[:, 0])
    torch.testing.assert_close(up[2], exact_up[2])
    assert float((up[:2] - exact_up[:2]).norm(dim=-1).max()) > 0.02


class Steps:
    """One point per camera, and its field after small steps of all parameters."""

    def __init__(self) -> None:
        samples = legacy(sample_camera("simple_radial"))
        points = pixels_in_domain(samples, count=25, part=0.8)
        rows = torch.arange(len(samples)).repeat_interleave(points.shape[1])
        self.camera = samples[rows]
        self.x, self.y = (value.reshape(-1, 1) for value in points.unbind(-1))
        self.gravity = random_gravity(len(rows), seed=3)
        self.basis = sphere.tangent_basis(self.gravity)
        self.rays = cast_rays(self.camera, self.gravity, self.x, self.y)
        self.up = up_field(self.rays, self.camera, self.gravity)
        # Gravity, log f, k1, the principal point in units of the focal length, log aspect.
        self.unit = torch.tensor([1, 1, 1, 1, samples.f[0], samples.f[0], 1], dtype=torch.float64)

    def observed(self, step: Tensor) -> Tensor:
        """(B, 2): up along its normal at step 0, and sin(latitude)."""
        step = step * self.unit
        g = sphere.move(self.gravity, step[:, :2], self.basis)
        camera = replace(
            self.camera,
            f=self.camera.f * torch.exp(step[:, 2]),
            distortion=self.camera.distortion + step[:, 3:4],
            c=self.camera.c + step[:, 4:6],
            aspect=self.camera.aspect * torch.exp(step[:, 6]),
        )
        rays = cast_rays(camera, g, self.x, self.y)
        up = up_field(rays, camera, g)
        along = up.y * self.up.x - up.x * self.up.y
        return torch.cat([along, latitude_field(rays, g).sine], -1)

    def analytic(self) -> Tensor:
        """(B, 2, 7)."""
        free = Free(distortion=(0,), principal_point=True, aspect=True)
        rest = (self.camera, self.gravity, self.basis, free)
        up = up_jacobian(self.rays, self.up, *rest)
        latitude = latitude_jacobian(self.rays, latitude_field(self.rays, self.gravity), *rest)
        return torch.stack([torch.cat(up, -1), torch.cat(latitude, -1)], 1) * self.unit


def test_jacobians_against_autograd() -> None:
    steps = Steps()
    step = torch.zeros(len(steps.camera), 7, dtype=torch.float64, requires_grad=True)
    expected = [
        torch.autograd.grad(column.sum(), step, retain_graph=True)[0]
        for column in steps.observed(step).T
    ]
    torch.testing.assert_close(steps.analytic(), torch.stack(expected, 1), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("i", range(7))
def test_jacobians_against_central_differences(i: int) -> None:
    steps = Steps()
    step = torch.zeros(len(steps.camera), 7, dtype=torch.float64)
    step[:, i] = 1e-4
    near, far = (steps.observed(n * step) - steps.observed(-n * step) for n in (1, 2))
    expected = (8 * near - far) / (12 * 1e-4)
    torch.testing.assert_close(steps.analytic()[..., i], expected, rtol=1e-6, atol=1e-8)


def test_a_run_of_points_has_the_same_field() -> None:
    camera = legacy(sample_camera("simple_radial"))
    g = random_gravity(len(camera), seed=4)
    pixels = pixels_in_domain(camera, count=9)
    whole = cast_rays(camera, g, pixels[..., 0], pixels[..., 1])
    part = up_field(whole.part(2, 4), camera, g)
    assert part.x.equal(up_field(whole, camera, g).x[:, 2:6])
    assert part.q.equal(up_field(whole, camera, g).q[:, 2:6])


def test_outside_the_domain_it_is_invalid_and_finite() -> None:
    camera = legacy(Camera.create("simple_radial", 100.0, (64, 64), [-0.3], dtype=torch.float64))
    # Where 1 + 3 k s vanishes, and far beyond.
    radii = torch.tensor([(1 / 0.9) ** 0.5, 50.0], dtype=torch.float64)
    pixels = camera.c[:, None] + 100 * radii[None, :, None] * torch.tensor([0.0, 1.0])
    up, latitude, valid = perspective_field(camera, random_gravity(1, seed=1), pixels)
    assert not valid.any()
    assert bool(torch.isfinite(up).all() & torch.isfinite(latitude).all())


def test_a_fit_recovers_the_camera_from_its_legacy_field() -> None:
    truth = random_cameras("simple_radial", 12, seed=1)
    gravity = random_gravity(12, seed=2)
    fields = see(legacy(truth), gravity, torch.float32)
    result = fit(fields, LegacySimpleRadial(), options=EVERY_PIXEL)
    assert result.status == [Status.CONVERGED] * 12
    assert gravity_error_deg(result.gravity, gravity).max() < 1e-3
    camera = without_legacy(result.camera)
    torch.testing.assert_close(camera.f.double(), truth.f, rtol=1e-5, atol=0)
    assert ray_error_deg(camera, truth).max() < 1e-3
    # The exact field does not explain it.
    plain = fit(fields, "simple_radial", options=EVERY_PIXEL)
    assert ray_error_deg(plain.camera, truth).max() > 0.1


def test_the_fitted_camera_serves_as_simple_radial() -> None:
    truth, gravity = random_cameras("simple_radial", 1, seed=5), random_gravity(1, seed=6)
    result = fit(see(legacy(truth), gravity), LegacySimpleRadial(), options=EVERY_PIXEL)
    camera = without_legacy(result.camera)
    assert camera.model.name == "simple_radial"
    assert to_colmap(camera)[0].name == "SIMPLE_RADIAL"
    up, _, _ = perspective_field(camera, result.gravity)
    exact, _, _ = perspective_field(truth, gravity)
    torch.testing.assert_close(up, exact, rtol=0, atol=1e-5)


def test_it_is_in_no_list() -> None:
    assert not any(isinstance(model, LegacySimpleRadial) for model in MODELS.values())
    with pytest.raises(CameraError, match="unknown camera model"):
        Camera.create("legacy", 100.0, (64, 64), dtype=torch.float32)
