"""The training's optimum against the solver's own: values, and derivatives to a few percent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from geocalib.cameras import Camera
from geocalib.geometry.fields import Fields
from geocalib.solver import FitOptions, fit
from geocalib.solver.result import FitResult
from geocalib_lab.training.optimum import UNIFIED, Estimate, find_optimum
from views import random_cameras, random_gravity, see, with_noise, with_outliers

COUNT, BENT = 8, 4


def scene(sigma_deg: float = 4.0) -> tuple[Camera, Tensor, Fields, Tensor]:
    """Cameras, the first ones distorted, gravity, noisy fields and who is distorted."""
    camera = random_cameras("simple_radial", COUNT, 3, (32, 24), (35, 100))
    bends = torch.arange(COUNT) < BENT
    camera = replace(camera, distortion=camera.distortion * bends[:, None])
    gravity = random_gravity(COUNT, 4)
    fields = with_noise(see(camera, gravity), sigma_deg, 5)
    return camera, gravity, with_outliers(fields, 0.05, 0.2, 6), bends


def solved(fields: Fields) -> tuple[FitResult, FitResult]:
    options = FitOptions(cells=12, huber=None, max_iterations=60)
    bent = fit(fields[:BENT], "simple_radial", options=options)
    return bent, fit(fields[BENT:], "pinhole", options=options)


def found_in(results: tuple[FitResult, FitResult]) -> Estimate:
    bent, straight = results
    none = torch.zeros_like(straight.camera.f)
    return Estimate(
        torch.cat([bent.gravity, straight.gravity]),
        torch.cat([bent.camera.f, straight.camera.f]).log(),
        torch.cat([bent.camera.distortion[:, 0], none]),
    )


def test_optimum_is_the_solvers() -> None:
    camera, gravity, fields, bends = scene()
    expected = found_in(solved(fields))
    found = find_optimum(fields, camera, gravity, bends, 12, 20, None)
    for name, value in vars(expected).items():
        torch.testing.assert_close(getattr(found, name), value, rtol=1e-5, atol=1e-6)


def test_a_few_steps_in_single_precision_are_enough() -> None:
    camera, gravity, fields, bends = scene(2.0)
    expected = found_in(solved(fields))
    found = find_optimum(
        fields.to(torch.float32),
        camera.to(torch.float32),
        gravity.float(),
        bends,
        cells=12,
        iterations=6,
        huber=None,
    )
    torch.testing.assert_close(found.gravity, expected.gravity, rtol=0, atol=1e-3)
    torch.testing.assert_close(found.log_f, expected.log_f, rtol=0, atol=2e-3)
    assert torch.equal(found.distortion[BENT:], torch.zeros(COUNT - BENT, dtype=torch.float64))


def test_derivatives_are_those_of_the_solver() -> None:
    camera, gravity, fields, bends = scene(2.0)
    generator = torch.Generator().manual_seed(1)
    mix = [torch.randn(COUNT, n, generator=generator, dtype=torch.float64) for n in (3, 1, 1)]

    def mixed(found: Estimate) -> Tensor:
        k1 = found.distortion * (24 / camera.f) ** 2
        parts = (found.gravity, found.log_f[:, None], k1[:, None])
        return torch.stack([(m * p).sum(1) for m, p in zip(mix, parts, strict=True)]).sum(0)

    values = [value.clone().requires_grad_() for value in vars(fields).values()]
    found = mixed(find_optimum(Fields(*values), camera, gravity, bends, 12, 20, None))
    gradients = torch.autograd.grad(found.sum(), values)

    def moved(directions: Sequence[Tensor], by: float) -> Tensor:
        pairs = zip(vars(fields).values(), directions, strict=True)
        return mixed(found_in(solved(Fields(*[value + by * way for value, way in pairs]))))

    # Along the steepest way, and along any.
    for ways in (gradients, [torch.rand_like(value) for value in values]):
        by = 1e-4 / max(float(way.abs().max()) for way in ways)
        expected = (moved(ways, by) - moved(ways, -by)) / (2 * by)
        pairs = zip(gradients, ways, strict=True)
        actual = torch.stack([(g * way).flatten(1).sum(1) for g, way in pairs]).sum(0)
        torch.testing.assert_close(
            actual, expected, rtol=0.1, atol=0.05 * float(expected.abs().max())
        )


def test_an_image_that_is_not_finite_is_told() -> None:
    camera, gravity, fields, bends = scene()
    broken = fields.latitude.clone()
    broken[2, 0, 3, 3] = torch.nan
    found = find_optimum(replace(fields, latitude=broken), camera, gravity, bends, 12, 6, None)
    assert torch.isfinite(found.log_f).tolist() == [i != 2 for i in range(COUNT)]


def test_images_do_not_depend_on_each_other() -> None:
    camera, gravity, fields, bends = scene()
    together = find_optimum(fields, camera, gravity, bends, 12, 6, None)
    some = torch.tensor([1, 6])
    apart = find_optimum(fields[some], camera[some], gravity[some], bends[some], 12, 6, None)
    for name, value in vars(apart).items():
        torch.testing.assert_close(value, getattr(together, name)[some])


def test_the_optimum_of_fisheyes_is_the_solvers() -> None:
    camera = random_cameras("ucm", COUNT, 3, (32, 24), (70, 160))
    gravity = random_gravity(COUNT, 4)
    fields = with_noise(see(camera, gravity), 2.0, 5)
    expected = fit(fields, "ucm", options=FitOptions(cells=12, huber=None, max_iterations=60))
    free = torch.ones(COUNT, dtype=torch.bool)
    found = find_optimum(fields, camera, gravity, free, 12, 20, None, UNIFIED)
    torch.testing.assert_close(found.gravity, expected.gravity, rtol=0, atol=1e-4)
    torch.testing.assert_close(found.log_f, expected.camera.f.log(), rtol=0, atol=1e-3)
    torch.testing.assert_close(
        found.distortion, expected.camera.distortion[:, 0], rtol=0, atol=2e-3
    )


def test_huber_resists_outliers() -> None:
    camera, gravity, _, bends = scene()
    fields = with_outliers(see(camera, gravity), 0.2, 1.0, 7)
    off = [
        (find_optimum(fields, camera, gravity, bends, 24, 30, kernel).gravity - gravity).abs().max()
        for kernel in (None, 0.05)
    ]
    assert off[1] < 0.2 * off[0]
