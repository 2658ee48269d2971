"""Levenberg-Marquardt: steps, stopping, and where it ends. Sigmas mean what they say."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from geocalib.cameras import MODELS, Camera
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import Fields, Free
from geocalib.solver import FitOptions, Prior, Status, fit
from geocalib.solver.coupling import Coupling, couple
from geocalib.solver.initial import initial_state
from geocalib.solver.known import Constraint, Priors
from geocalib.solver.objective import Problem
from geocalib.solver.observations import observe
from geocalib.solver.optimum import minimise
from geocalib.solver.state import LONGEST_STEP, Frame, State
from lenses import ALL_MODELS
from views import random_cameras, random_gravity, see, with_noise, with_outliers

UNCONSTRAINED = Priors(Constraint(), Constraint(), Constraint(), Constraint())


def pose(fields: Fields, camera: Camera, huber: float | None = 0.01) -> tuple[Problem, State]:
    """The problem of fitting the camera's model, and the trivial start."""
    count = len(camera.model.parameters)
    free = Free(distortion=tuple(range(count)))
    frame = Frame.create(camera.model, camera.size, camera.aspect, free)
    coupling = couple(len(fields), None, None, torch.device("cpu"))
    observations = observe(fields, None)
    problem = Problem(observations, coupling, frame, UNCONSTRAINED, huber, None)
    start = initial_state("trivial", [fields], observations, frame, coupling, UNCONSTRAINED)
    return problem, start


def hard_fields(model: str, count: int = 6) -> tuple[Camera, Fields]:
    """Steep views with many outliers, far from the start."""
    camera = random_cameras(model, count, seed=1, size=(24, 24))
    gravity = random_gravity(count, seed=2, most_deg=80)
    return camera, with_outliers(with_noise(see(camera, gravity), 5, seed=3), 0.4, 0.5, seed=4)


@pytest.mark.parametrize("huber", [0.01, None])
@pytest.mark.parametrize("model", ["pinhole", "simple_radial", "eucm"])
def test_the_cost_never_rises(model: str, huber: float | None) -> None:
    camera, fields = hard_fields(model)
    problem, state = pose(fields, camera, huber)
    cost = problem.evaluate(state).cost
    for iterations in range(1, 12):
        solution = minimise(problem, state, iterations)
        assert bool((solution.cost <= cost * (1 + 1e-12)).all())
        # The cost returned is the cost of the state returned.
        torch.testing.assert_close(problem.evaluate(solution.state).cost, solution.cost)
        cost = solution.cost


def test_a_rejected_step_leaves_the_state_and_raises_the_damping() -> None:
    camera, fields = hard_fields("simple_radial", 40)
    problem, state = pose(fields, camera, huber=None)
    before, after = (minimise(problem, state, iterations) for iterations in (2, 3))
    running = ~after.progress.converged & ~before.progress.converged
    kept = running & (after.state.gravity == before.state.gravity).all(1)
    moved = running & ~kept
    assert int(kept.sum()) > 0
    assert int(moved.sum()) > 0
    torch.testing.assert_close(after.progress.damping[kept], 10 * before.progress.damping[kept])
    torch.testing.assert_close(after.progress.damping[moved], 0.1 * before.progress.damping[moved])
    assert torch.equal(after.state.log_f[kept], before.state.log_f[kept])


@pytest.mark.parametrize("huber", [0.01, None])
@pytest.mark.parametrize("model", ["simple_radial", "kannala_brandt"])
def test_the_gradient_vanishes_at_the_end(model: str, huber: float | None) -> None:
    camera = random_cameras(model, 6, seed=1, size=(24, 24), vfov_deg=(50, 90))
    fields = with_noise(see(camera, random_gravity(6, seed=2, most_deg=30)), 1, seed=3)
    problem, state = pose(fields, camera, huber)
    solution = minimise(problem, state, 60)
    assert bool(solution.progress.converged.all())
    normal = problem.evaluate(solution.state).normal
    # In units of the statistical uncertainty of the optimum.
    step = torch.linalg.solve(normal.hessian, normal.gradient)
    gain = (step * normal.gradient).sum(1)
    assert bool((gain < 1e-4 * solution.cost / (24 * 24)).all())


def test_every_problem_stops_by_itself() -> None:
    f = torch.tensor([0.7 * 24, 60.0], dtype=torch.float64)
    camera = Camera.create("pinhole", f, (24, 24))
    gravity = torch.cat([torch.tensor([[0.0, 1.0, 0.0]]).double(), random_gravity(1, seed=3)])
    result = fit(see(camera, gravity))
    assert result.iterations[0] <= 2
    assert result.iterations[1] >= 4
    assert result.iterations[1] == fit(see(camera[1], gravity[1:])).iterations[0]


def test_one_iteration_is_not_enough() -> None:
    camera = random_cameras("simple_radial", 3, seed=1, size=(24, 24))
    fields = see(camera, random_gravity(3, seed=2))
    result = fit(fields, "simple_radial", options=FitOptions(max_iterations=1))
    assert result.status == [Status.MAX_ITERATIONS] * 3
    assert result.iterations.tolist() == [1, 1, 1]
    assert bool(torch.isfinite(result.camera.f).all())
    assert not Status.MAX_ITERATIONS.failed


@pytest.mark.parametrize("vfov_deg", [3.0, 165.0])
def test_the_field_of_view_stays_within_its_bounds(vfov_deg: float) -> None:
    camera = random_cameras("pinhole", 2, seed=1, size=(24, 24), vfov_deg=(vfov_deg, vfov_deg))
    result = fit(see(camera, random_gravity(2, seed=2, most_deg=10)))
    assert bool((result.vfov_deg >= 5 - 1e-6).all())
    assert bool((result.vfov_deg <= 150 + 1e-6).all())
    assert not any(status.failed for status in result.status)


def test_steps_on_the_sphere_are_bounded() -> None:
    camera = random_cameras("pinhole", 1, seed=1, size=(24, 24))
    problem, state = pose(see(camera, random_gravity(1, seed=2)), camera)
    far = torch.tensor([[30.0, -40.0]], dtype=torch.float64)
    moved = problem.frame.step(state, far, torch.tensor([[9.0]], dtype=torch.float64))
    angle: Tensor = sphere.angle_between(moved.gravity, state.gravity)
    assert float(angle) == pytest.approx(LONGEST_STEP)
    assert float(moved.log_f - state.log_f) <= LONGEST_STEP + 1e-12


IMAGES = 150


@pytest.mark.parametrize(("side", "cells"), [(32, None), (48, 16), (40, 12)])
@pytest.mark.parametrize("model", ["pinhole", "simple_radial"])
def test_errors_are_as_large_as_the_sigmas(model: str, side: int, cells: int | None) -> None:
    camera = random_cameras(model, IMAGES, seed=1, size=(side, side))
    gravity = random_gravity(IMAGES, seed=2)
    fields = with_noise(see(camera, gravity, torch.float32), 5, seed=3)
    result = fit(with_outliers(fields, 0.3, 0.05, seed=4), model, options=FitOptions(cells=cells))
    truth = {
        "roll_deg": torch.rad2deg(torch.atan2(gravity[:, 0], gravity[:, 1])),
        "pitch_deg": torch.rad2deg(-torch.asin(gravity[:, 2])),
        "vfov_deg": torch.rad2deg(camera.vfov),
    }
    for name, expected in truth.items():
        normalised = (getattr(result, name) - expected) / getattr(result.sigma, name)
        assert 0.8 < float(normalised.std()) < 1.25, name
        assert float(normalised.mean().abs()) < 0.35, name


@pytest.mark.parametrize(
    ("model", "confidence_scale"), [*((name, None) for name in ALL_MODELS), ("radial", 1e-3)]
)
def test_covariances_are_symmetric_and_positive(model: str, confidence_scale: float | None) -> None:
    camera = random_cameras(model, 6, seed=1, size=(32, 32), vfov_deg=(50, 100))
    fields = with_noise(see(camera, random_gravity(6, seed=2)), 1, seed=3)
    result = fit(fields, model, options=FitOptions(confidence_scale=confidence_scale))
    covariance = result.covariance
    torch.testing.assert_close(covariance, covariance.transpose(1, 2))
    deviation = covariance.diagonal(dim1=1, dim2=2).sqrt()
    correlation = covariance / (deviation[:, :, None] * deviation[:, None])
    assert torch.linalg.eigvalsh(correlation).min() > -1e-9
    assert bool((deviation > 0).all())


def test_sigmas_are_read_off_the_covariance() -> None:
    camera = random_cameras("radial", 4, seed=1, size=(32, 32), vfov_deg=(50, 100))
    gravity = random_gravity(4, seed=2)
    result = fit(with_noise(see(camera, gravity), 1, seed=3), "radial")
    variance = result.covariance.diagonal(dim1=1, dim2=2)
    pitch = torch.deg2rad(result.pitch_deg)
    degrees = torch.rad2deg(variance[:, :2].sqrt())
    torch.testing.assert_close(result.sigma.roll_deg, degrees[:, 0] / torch.cos(pitch))
    torch.testing.assert_close(result.sigma.pitch_deg, degrees[:, 1])
    largest = torch.linalg.eigvalsh(result.covariance[:, :2, :2])[:, 1]
    torch.testing.assert_close(result.sigma.gravity_deg, torch.rad2deg(largest.sqrt()))
    torch.testing.assert_close(result.sigma.focal, result.camera.f * variance[:, 2].sqrt())
    torch.testing.assert_close(result.sigma.distortion, variance[:, 3:].sqrt())


def vfov_deg(camera: Camera, log_f: Tensor, distortion: Tensor) -> Tensor:
    moved = replace(camera, f=log_f.exp(), distortion=distortion)
    return torch.rad2deg(moved.vfov)


@pytest.mark.parametrize("model", ALL_MODELS)
def test_sigma_of_the_field_of_view_follows_by_differences(model: str) -> None:
    camera = random_cameras(model, 5, seed=1, size=(40, 40), vfov_deg=(60, 110))
    fields = with_noise(see(camera, random_gravity(5, seed=2, most_deg=30)), 0.5, seed=3)
    result = fit(fields, model)
    found, log_f = result.camera, result.camera.f.log()
    step = 1e-6
    slopes = [
        vfov_deg(found, log_f + step, found.distortion)
        - vfov_deg(found, log_f - step, found.distortion)
    ]
    for i in range(len(MODELS[model].parameters)):
        shift = torch.zeros_like(found.distortion)
        shift[:, i] = step
        slopes.append(
            vfov_deg(found, log_f, found.distortion + shift)
            - vfov_deg(found, log_f, found.distortion - shift)
        )
    slope = torch.stack(slopes, 1) / (2 * step)
    variance = (slope[:, None] @ result.covariance[:, 2:, 2:] @ slope[:, :, None])[:, 0, 0]
    torch.testing.assert_close(result.sigma.vfov_deg, variance.sqrt(), rtol=1e-4, atol=0)


def test_sigmas_follow_the_given_scale() -> None:
    camera = random_cameras("pinhole", 4, seed=1, size=(32, 32))
    fields = with_noise(see(camera, random_gravity(4, seed=2)), 1, seed=3)
    small, large = (fit(fields, options=FitOptions(confidence_scale=s)) for s in (1e-4, 9e-4))
    torch.testing.assert_close(large.covariance, 9 * small.covariance)
    assert large.confidence_scale.tolist() == [9e-4] * 4


def test_sigmas_do_not_follow_the_unit_of_the_confidences() -> None:
    camera = random_cameras("pinhole", 4, seed=1, size=(32, 32))
    fields = with_noise(see(camera, random_gravity(4, seed=2)), 1, seed=3)
    louder = replace(
        fields,
        up_confidence=100 * fields.up_confidence,
        latitude_confidence=100 * fields.latitude_confidence,
    )
    torch.testing.assert_close(
        fit(louder).covariance, fit(fields).covariance, rtol=1e-4, atol=1e-12
    )


# What the data do not tell ----------------------------------------------------------------------


@pytest.mark.parametrize("confidence_scale", [None, 1e-3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("noise_deg", [0.0, 1.0])
def test_up_vectors_of_a_level_camera_do_not_tell_its_focal_length(
    noise_deg: float, dtype: torch.dtype, confidence_scale: float | None
) -> None:
    camera = Camera.create("pinhole", torch.tensor([40.0]).double(), (32, 32))
    level = torch.tensor([[0.0, 1.0, 0.0]], dtype=torch.float64)
    fields = with_noise(see(camera, level, dtype), noise_deg, seed=3)
    blind = replace(fields, latitude_confidence=torch.zeros_like(fields.latitude_confidence))
    result = fit(blind, options=FitOptions(cells=None, confidence_scale=confidence_scale))
    assert result.sigma.vfov_deg > 180
    assert result.sigma.roll_deg < 1
    assert bool(torch.isfinite(result.covariance).all())


def test_a_single_pixel_does_not_tell_three_unknowns() -> None:
    camera = Camera.create("pinhole", torch.tensor([40.0]).double(), (32, 32))
    fields = see(camera, random_gravity(1, seed=2, most_deg=20))
    one = torch.zeros_like(fields.up_confidence)
    one[:, 5, 20] = 1
    result = fit(Fields(fields.up, fields.latitude, one, one), options=FitOptions(cells=None))
    assert bool(torch.isfinite(result.covariance).all())
    assert result.sigma.vfov_deg > 180


def test_a_vague_prior_leaves_the_principal_point_vague() -> None:
    # The up-vectors of a level camera are the same everywhere.
    camera = Camera.create("pinhole", torch.tensor([40.0]).double(), (32, 32))
    level = torch.tensor([[0.0, 1.0, 0.0]], dtype=torch.float64)
    fields = with_noise(see(camera, level), 1, seed=3)
    prior = Prior((16.0, 16.0), 1e3)
    only_up = replace(fields, latitude_confidence=torch.zeros_like(fields.latitude_confidence))
    result = fit(only_up, principal_point=prior)
    assert bool(torch.isfinite(result.covariance).all())
    assert bool((result.sigma.principal_point > 100).all())
    # With latitudes there is something to go by.
    result = fit(fields, principal_point=prior)
    error = (result.camera.c - 16).abs()
    assert bool((error < 4 * result.sigma.principal_point).all())
    assert bool((result.sigma.principal_point > 0.05).all())


@pytest.mark.parametrize("model", ["pinhole", "radial"])
def test_images_alone_are_as_sure_as_by_the_sandwich(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where s^2 is given, one small inverse takes its place; here with a soft prior, too."""
    camera = random_cameras(model, 3, seed=1, size=(32, 32))
    fields = with_noise(see(camera, random_gravity(3, seed=2)), 3, seed=3)
    given = {"focal": Prior(camera.f, 2.0), "options": FitOptions(confidence_scale=1e-3)}
    alone = fit(fields, model, **given)  # type: ignore[arg-type]
    monkeypatch.setattr(Coupling, "separate", False)
    by_sandwich = fit(fields, model, **given)  # type: ignore[arg-type]
    sigma = torch.diagonal(alone.covariance, dim1=1, dim2=2).sqrt()
    unit = sigma[:, :, None] * sigma[:, None]
    torch.testing.assert_close(
        alone.covariance / unit, by_sandwich.covariance / unit, rtol=0, atol=1e-6
    )
