"""A search that begins in a few large cells and ends with one look at all observations.

Far from the optimum a few hundred cells show the way as well as thousands, and next to it one step
of Newton's method is enough: its curvature is the one that the uncertainty needs anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from geocalib.arrays import Array, namespace, no_gradients, replace_rows
from geocalib.geometry.tensors import map_tensors
from geocalib.solver.coupling import to_cameras
from geocalib.solver.covariance import Uncertainty, estimate_uncertainty, uncertainty_by
from geocalib.solver.lm import LARGEST_TREND, Progress, Solution, minimise
from geocalib.solver.objective import Problem
from geocalib.solver.observations import Observations
from geocalib.solver.options import FitOptions
from geocalib.solver.search import differentiable, search
from geocalib.solver.state import State

COARSE_CELLS = 16
"""Cells along the shorter side to begin with. Their optimum lies a few hundredths of a sigma from
that of all observations (median of crops of panoramas 0.05, at most 0.5; of photographs 0.01)."""

ROUGH = 0.05
"""Part of a sigma to which it is found."""

CALM = 0.1
"""Of the first damping, where no distortion varies: gravity and focal length lie in no curved
valley. And steps that damping made shorter look as if noise had, so that those after them are
stretched too far."""

NEAR = 0.25
"""Sigmas that Newton's step may lead: it leaves 0.001 of them (median), at most 0.06."""

SHORT = 0.02
"""Length of that step, in radians and log f: along a flat valley a small part of a sigma is far,
and how flat the valley is changes on the way."""

DAMPING_NEAR, CLOSE = 1e-3, 0.01
"""Where one step is not enough: damping of the next, and part of a sigma that ends them."""


def find(
    problem: Problem, start: State, options: FitOptions, coarse: Callable[[], Observations]
) -> tuple[Solution, Uncertainty]:
    """The best state found from ``start``, with the gradients the options ask for, and how sure it
    is. coarse: makes the observations in ``COARSE_CELLS``."""
    most, scale = options.max_iterations, problem.scale
    by_stages = bool(problem.frame.model.release)
    if scale is None or by_stages or most == 1 or options.gradient == "unrolled":
        return _in_all(problem, start, options)
    with no_gradients():
        few = coarse()
    if 4 * few.count >= problem.observations.count:
        return _in_all(problem, start, options)
    with no_gradients():
        in_few = replace(problem, observations=few)
        damping = options.damping if problem.frame.free.distortion else CALM * options.damping
        rough = minimise(in_few, start, most // 2, damping, ROUGH**2 * scale)
        solution, uncertainty = _settled(problem, rough)
        left = ~solution.progress.converged
        if bool(left.any()):
            solution, uncertainty = _go_on(
                problem, solution, uncertainty, left, most - most // 2, CLOSE**2 * scale
            )
    return differentiable(problem, solution, options), uncertainty


def _in_all(problem: Problem, start: State, options: FitOptions) -> tuple[Solution, Uncertainty]:
    """By looking at all observations in every step."""
    solution = search(problem, start, options)
    return solution, estimate_uncertainty(problem, solution.state.detach())


def _settled(problem: Problem, rough: Solution) -> tuple[Solution, Uncertainty]:
    """After one look at all observations: converged, a step of Newton's method further, where that
    is short; elsewhere as before."""
    coupling, state = problem.coupling, rough.state
    evaluation, info = problem.inspect(state)
    newton = evaluation.curved(info)
    undamped = namespace(evaluation.cost).zeros_like(evaluation.cost)
    step, plain = problem.step(newton, undamped), problem.step(evaluation, undamped)
    # Where few residuals are small their density is a poor guess, and so is the step.
    sound = step.gain * (1 - LARGEST_TREND) <= plain.gain
    near = sound & (step.length <= SHORT) & (step.gain <= NEAR**2 * evaluation.scale)
    moved = problem.frame.step(state, step.time, to_cameras(step.camera, coupling))
    progress = Progress.start(evaluation.cost, DAMPING_NEAR)
    iterations = rough.progress.iterations + near
    return (
        Solution(
            moved.where(near, state, coupling),
            evaluation.normal.cost,
            replace(progress, iterations=iterations, converged=near),
        ),
        uncertainty_by(newton, info.scatter, problem, state),
    )


def _go_on(
    problem: Problem,
    solution: Solution,
    uncertainty: Uncertainty,
    left: Array,
    max_iterations: int,
    little: float,
) -> tuple[Solution, Uncertainty]:
    """With the components that are left (K,) iterated further."""
    part, images, times, cameras = problem.select(left)
    components = namespace(left).nonzero(left)[0]
    state = solution.state.select(times, cameras)
    rest = minimise(part, state, max_iterations, DAMPING_NEAR, little)
    spent = solution.progress.iterations[components]
    progress = replace(rest.progress, iterations=rest.progress.iterations + spent)
    sure = estimate_uncertainty(part, rest.state)
    return (
        Solution(
            solution.state.replaced(rest.state, times, cameras),
            replace_rows(solution.cost, images, rest.cost),
            solution.progress.replaced(progress, components),
        ),
        map_tensors(lambda all_, few: replace_rows(all_, images, few), uncertainty, sure),
    )
