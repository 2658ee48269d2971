"""Derivatives of the answer in the fields against central differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from geocalib.geometry.fields import Fields
from geocalib.solver import FitOptions, FitResult, Prior, Rig, Status, fit, lm
from geocalib.solver.options import Gradient
from views import random_cameras, random_gravity, see, turned, with_noise

Run = Callable[[Fields, FitOptions], FitResult]
BOTH: list[Gradient] = ["implicit", "unrolled"]


@pytest.fixture(autouse=True)
def _run_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A derivative through the iterations converges with them, where a fit would stop early."""
    monkeypatch.setattr(lm, "GAIN_TOLERANCE", 1e-12)


def answers(result: FitResult) -> Tensor:
    """(B, 3 + D) roll, pitch, log f and distortion; and the log aspect where it is free."""
    angles = torch.stack([result.roll_deg, result.pitch_deg], 1).deg2rad()
    log_aspect = result.camera.aspect.log()[:, None]
    free = [log_aspect] if "log aspect" in result.parameters else []
    log_f = result.camera.f.log()[:, None]
    return torch.cat([angles, log_f, result.camera.distortion, *free], 1)


class Directions:
    """Random changes of every up-vector, latitude and confidence."""

    def __init__(self, fields: Fields, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)

        def draw(like: Tensor) -> Tensor:
            return torch.randn(like.shape, generator=generator, dtype=torch.float64)

        self.fields = fields
        self.steps = [
            draw(fields.latitude),
            draw(fields.latitude),
            draw(fields.up_confidence),
            draw(fields.latitude_confidence),
        ]

    def moved(self, amounts: list[Any]) -> Fields:
        angle, latitude, up_confidence, latitude_confidence = (
            amount * step for amount, step in zip(amounts, self.steps, strict=True)
        )
        return Fields(
            turned(self.fields.up, angle),
            self.fields.latitude + latitude,
            self.fields.up_confidence * torch.exp(up_confidence),
            self.fields.latitude_confidence * torch.exp(latitude_confidence),
        )


def derivatives(run: Run, directions: Directions, options: FitOptions) -> Tensor:
    """(4, B, P) along the four directions, by automatic differentiation."""
    amounts = [torch.zeros((), dtype=torch.float64, requires_grad=True) for _ in range(4)]
    result = run(directions.moved(amounts), options)
    found = answers(result)
    # All answers go back at once.
    each = torch.eye(found.numel(), dtype=torch.float64).reshape(-1, *found.shape)
    rows = torch.autograd.grad(found, amounts, each, is_grads_batched=True)
    return torch.stack(rows).reshape(4, *found.shape)


def differences(
    run: Run, directions: Directions, options: FitOptions, step: float, coupled: bool = False
) -> Tensor:
    """The same by central differences. coupled: images are fitted together, so that each change is
    a run of its own; else one run takes all changes."""
    changes = [[sign * step * (i == j) for j in range(4)] for i in range(4) for sign in (1, -1)]
    moved = [directions.moved(amounts) for amounts in changes]
    # The last Newton step of the implicit derivative makes the optimum exact.
    exact = replace(options, gradient="implicit")
    runs = moved if coupled else [Fields.concatenate(moved)]
    found = torch.cat([answers(run(fields, exact)).detach() for fields in runs])
    ends = found.reshape(4, 2, -1, found.shape[1])
    return (ends[:, 0] - ends[:, 1]) / (2 * step)


def assert_derivatives(found: Tensor, expected: Tensor, tolerance: float = 1e-4) -> None:
    """Close, in units of the largest derivative of each answer."""
    scale = expected.abs().amax(0, keepdim=True)
    assert bool((scale > 0).all())
    torch.testing.assert_close(found / scale, expected / scale, rtol=0, atol=tolerance)


def assert_both(
    run: Run, directions: Directions, options: FitOptions, step: float, coupled: bool = False
) -> None:
    """Both ways to derivatives give those of differences, which are the same for both."""
    expected = differences(run, directions, options, step, coupled)
    for gradient in BOTH:
        found = derivatives(run, directions, replace(options, gradient=gradient))
        assert_derivatives(found, expected)


def noisy_views(
    model: str, count: int, size: tuple[int, int] = (12, 12), noise_deg: float = 1.0
) -> Fields:
    vfov = (70.0, 110.0) if model == "eucm" else (50.0, 80.0)
    camera = random_cameras(model, count, seed=1, size=size, vfov_deg=vfov)
    return with_noise(see(camera, random_gravity(count, seed=2, most_deg=25)), noise_deg, seed=3)


def alone(model: str) -> Run:
    return lambda fields, options: fit(fields, model, options=options)


PLAIN = FitOptions(cells=None, huber=None, max_iterations=60)


def test_a_free_aspect() -> None:
    def run(fields: Fields, options: FitOptions) -> FitResult:
        return fit(fields, "simple_radial", aspect=Prior(1.0, 0.1), options=options)

    directions = Directions(noisy_views("simple_radial", 2), seed=4)
    assert_both(run, directions, replace(PLAIN, confidence_scale=1e-3), 1e-5)


@pytest.mark.parametrize("cells", [None, 6])
@pytest.mark.parametrize("model", ["pinhole", "simple_radial"])
def test_plain_squares(model: str, cells: int | None) -> None:
    directions = Directions(noisy_views(model, 2), seed=4)
    assert_both(alone(model), directions, replace(PLAIN, cells=cells), 1e-5)


def test_huber() -> None:
    directions = Directions(noisy_views("simple_radial", 2, noise_deg=0.5), seed=4)
    options = FitOptions(cells=None, max_iterations=100)
    assert_both(alone("simple_radial"), directions, options, 1e-7)


def test_a_wide_model() -> None:
    directions = Directions(noisy_views("eucm", 2, size=(16, 16), noise_deg=0.3), seed=4)
    options = replace(PLAIN, gradient="implicit")
    expected = differences(alone("eucm"), directions, options, 1e-6)
    assert_derivatives(derivatives(alone("eucm"), directions, options), expected)


def test_shared_cameras() -> None:
    camera = random_cameras("simple_radial", 1, seed=1, size=(12, 12), vfov_deg=(60, 70))
    fields = with_noise(see(camera[[0] * 4], random_gravity(4, seed=2, most_deg=25)), 1, seed=3)

    def run(fields: Fields, options: FitOptions) -> FitResult:
        return fit(fields, "simple_radial", groups=[1, 1, 0, 1], options=options)

    assert_both(run, Directions(fields, seed=4), PLAIN, 1e-5, coupled=True)
    # What another image of the group shows matters.
    for gradient in BOTH:
        up = fields.up.clone().requires_grad_()
        result = run(replace(fields, up=up), replace(PLAIN, gradient=gradient))
        (slope,) = torch.autograd.grad(result.camera.f[0], up)
        assert slope[1].abs().max() > 0
        assert slope[2].abs().max() == 0


def test_a_rig() -> None:
    rotation = torch.linalg.matrix_exp(
        torch.tensor([[[0.0, 0, 0], [0, 0, 0], [0, 0, 0]], [[0, -0.1, 1], [0.1, 0, 0], [-1, 0, 0]]])
    ).double()
    camera = random_cameras("pinhole", 2, seed=1, size=(12, 12), vfov_deg=(50, 80))
    gravity = rotation @ random_gravity(1, seed=2, most_deg=20)[0]
    fields = with_noise(see(camera, gravity), 1, seed=3)

    def run(fields: Fields, options: FitOptions) -> FitResult:
        return fit(fields, rig=Rig(rotation, [0, 1], [0, 0]), options=options)

    directions = Directions(fields, seed=4)
    options = replace(PLAIN, gradient="implicit")
    expected = differences(run, directions, options, 1e-5, coupled=True)
    assert_derivatives(derivatives(run, directions, options), expected)


def test_soft_priors() -> None:
    fields = noisy_views("simple_radial", 2)
    gravity = random_gravity(2, seed=2, most_deg=25)

    def run(fields: Fields, options: FitOptions) -> FitResult:
        return fit(
            fields,
            "simple_radial",
            focal=Prior(12.0, 1.0),
            gravity=Prior(gravity.repeat(len(fields.up) // 2, 1), 0.02),
            distortion=Prior(0.0, 0.1),
            options=options,
        )

    assert_both(run, Directions(fields, seed=4), replace(PLAIN, confidence_scale=3e-4), 1e-5)


def test_both_agree_at_convergence() -> None:
    fields = noisy_views("radial", 3, size=(20, 20), noise_deg=0.5)
    directions = Directions(fields, seed=4)
    implicit, unrolled = (
        derivatives(alone("radial"), directions, replace(PLAIN, gradient=g)) for g in BOTH
    )
    assert_derivatives(unrolled, implicit)


def test_the_value_is_that_without_gradients() -> None:
    fields = noisy_views("simple_radial", 3)
    plain, *others = (
        answers(fit(fields, "simple_radial", options=FitOptions(gradient=gradient)))
        for gradient in ("none", *BOTH)
    )
    for other in others:
        torch.testing.assert_close(other, plain, rtol=1e-4, atol=1e-4)
    assert not plain.requires_grad


@pytest.mark.parametrize("gradient", BOTH)
def test_gradients_are_finite_next_to_what_cannot_be_used(gradient: Gradient) -> None:
    # A failed image, and a corner without confidence, pooled to empty cells.
    fields = noisy_views("pinhole", 3, size=(90, 90))
    up = fields.up.clone()
    up[1, :, 44, 44] = torch.nan
    confidence = fields.up_confidence.clone()
    confidence[:, :20, :20] = 0
    inputs = [t.requires_grad_() for t in (up, fields.latitude.clone(), confidence)]
    result = fit(Fields(*inputs, inputs[2]), options=FitOptions(gradient=gradient))
    assert result.status[1] is Status.NOT_FINITE
    slopes = torch.autograd.grad(answers(result)[[0, 2]].sum(), inputs)
    for slope in slopes:
        assert bool(torch.isfinite(slope).all())
        assert slope[0].abs().max() > 0
