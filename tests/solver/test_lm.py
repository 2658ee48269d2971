"""Levenberg-Marquardt: steps, stopping, and where it ends."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from geocalib.cameras import Camera
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import Fields, Free
from geocalib.solver import FitOptions, Status, fit
from geocalib.solver.coupling import couple
from geocalib.solver.initial import initial_state
from geocalib.solver.known import Constraint, Priors
from geocalib.solver.lm import minimise
from geocalib.solver.objective import Problem
from geocalib.solver.observations import observe
from geocalib.solver.state import LONGEST_STEP, Frame, State
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
