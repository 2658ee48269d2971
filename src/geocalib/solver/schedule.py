"""The order in which a fit searches: its options, a few large cells first, parameters in stages.

Far from the optimum a few hundred cells show the way as well as thousands, and next to it one step
of Newton's method is enough: its curvature is the one that the uncertainty needs anyway. So most
fits descend in a few large cells and look at all observations once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

from geocalib.arrays import Array, namespace, replace_rows
from geocalib.errors import ConfigError
from geocalib.geometry.conventions import HUBER_THRESHOLD
from geocalib.geometry.fields import Fields
from geocalib.records import map_tensors
from geocalib.solver.coupling import to_cameras
from geocalib.solver.covariance import FitUncertainty, estimate_uncertainty, uncertainty_by
from geocalib.solver.initial import Initial
from geocalib.solver.lm import DAMPING_START, LARGEST_TREND, Progress, Solution, minimise
from geocalib.solver.objective import Problem
from geocalib.solver.observations import concatenate, observe
from geocalib.solver.state import Frame, State

COARSE_CELLS = 16
"""Cells along the shorter side to begin with. Their optimum lies a few hundredths of a sigma from
that of all observations (median of crops of panoramas 0.05, at most 0.5; of photographs 0.01)."""

COARSE_ERROR = 0.05
"""The descent in large cells ends when its next step is expected to gain less than this part of a
sigma."""

CALM = 0.1
"""Factor on the first damping where no distortion varies: gravity and focal length lie in no curved
valley. And steps that damping made shorter look as if noise had, so that those after them are
stretched too far."""

NEWTON_SIGMAS = 0.25
"""Longest step of Newton's method that ends a fit, in sigmas: it leaves an error of 0.001 sigmas
(median), at most 0.06."""

NEWTON_LENGTH = 0.02
"""Longest such step in radians and log f: along a flat valley a small part of a sigma is far, and
how flat the valley is changes on the way."""

DAMPING_NEAR, FINE_ERROR = 1e-3, 0.01
"""Where one step of Newton's method is not enough: the damping of the descent that follows, and the
part of a sigma that ends it."""

STAGE_ITERATIONS, PATIENT_ITERATIONS = 2, 3
"""Iterations before the next distortion parameter is freed, where a model asks for an order: in
the first attempt, and in the second."""


@dataclass(frozen=True)
class FitOptions:
    """Options of ``fit`` beyond the problem itself. The defaults are the measured ones."""

    cells: int | None = 48
    """Pool the fields to at least this many cells along the shorter side; None: every pixel."""
    initial: Initial = "trivial"
    """Where to start."""
    huber: float | None = HUBER_THRESHOLD
    """Residual norm beyond which the cost grows linearly; None: plain squares."""
    max_iterations: int = 30
    """Most steps of Levenberg-Marquardt."""
    damping: float = DAMPING_START
    """The first one, relative to the curvature; later ones follow from how steps turn out."""
    confidence_scale: float | None = None
    """s^2, which turns confidences into information (E / s^2). None: from the residuals."""
    error: float | None = None
    """Part of a sigma: the search ends once its next step is expected to gain no more, where
    ``confidence_scale`` tells how much that is. None: as exactly as the numbers allow."""

    def __post_init__(self) -> None:
        if self.initial not in get_args(Initial):
            known = ", ".join(get_args(Initial))
            raise ConfigError(f"initial is {self.initial!r}; known: {known}")
        for name in ("cells", "huber", "max_iterations", "damping", "confidence_scale", "error"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"{name} must be positive, got {value}")


def find_optimum(
    problem: Problem, fields: Sequence[Fields], start: State, options: FitOptions
) -> tuple[Solution, FitUncertainty]:
    """Return the best state found from ``start``, and its uncertainty.

    fields: the batches that the problem's observations were made of, to make fewer of them.
    """
    most, scale = options.max_iterations, problem.scale
    in_stages = bool(problem.frame.model.release)
    if scale is None or in_stages or most == 1:
        return _find_in_all(problem, start, options)
    few = concatenate([observe(part, COARSE_CELLS) for part in fields])
    if 4 * few.count >= problem.observations.count:
        return _find_in_all(problem, start, options)
    in_few = replace(problem, observations=few)
    damping = options.damping * (1.0 if problem.frame.free.distortion else CALM)
    coarse = minimise(in_few, start, most // 2, damping, COARSE_ERROR**2 * scale)
    solution, uncertainty = _newton_step(problem, coarse)
    unfinished = ~solution.progress.converged
    if bool(unfinished.any()):
        solution, uncertainty = _descend_further(
            problem, solution, uncertainty, unfinished, most - most // 2, FINE_ERROR**2 * scale
        )
    return solution, uncertainty


def _find_in_all(
    problem: Problem, start: State, options: FitOptions
) -> tuple[Solution, FitUncertainty]:
    """Search by looking at all observations in every step."""
    solution = search(problem, start, options)
    return solution, estimate_uncertainty(problem, solution.state)


def _newton_step(problem: Problem, coarse: Solution) -> tuple[Solution, FitUncertainty]:
    """Look at all observations once, where the coarse descent ended: components that need but a
    short step of Newton's method take it and have converged, the others stay where they are."""
    coupling, state = problem.coupling, coarse.state
    evaluation, info = problem.inspect(state)
    newton = evaluation.curved(info)
    undamped = namespace(evaluation.cost).zeros_like(evaluation.cost)
    step, plain = problem.step(newton, undamped), problem.step(evaluation, undamped)
    # Where few residuals are small their density is a poor guess, and so is the step.
    sound = step.gain * (1 - LARGEST_TREND) <= plain.gain
    short = (step.length <= NEWTON_LENGTH) & (step.gain <= NEWTON_SIGMAS**2 * evaluation.scale)
    near = sound & short
    moved = problem.frame.step(state, step.time, to_cameras(step.camera, coupling))
    progress = Progress.start(evaluation.cost, DAMPING_NEAR)
    iterations = coarse.progress.iterations + near
    return (
        Solution(
            moved.where(near, state, coupling),
            evaluation.normal.cost,
            replace(progress, iterations=iterations, converged=near),
        ),
        uncertainty_by(newton, info.scatter, problem, state),
    )


def _descend_further(
    problem: Problem,
    solution: Solution,
    uncertainty: FitUncertainty,
    unfinished: Array,
    max_iterations: int,
    least_gain: float,
) -> tuple[Solution, FitUncertainty]:
    """Continue the unfinished components (K,) in all observations, and put them in their places."""
    part, images, times, cameras = problem.select(unfinished)
    components = namespace(unfinished).nonzero(unfinished)[0]
    state = solution.state.select(times, cameras)
    rest = minimise(part, state, max_iterations, DAMPING_NEAR, least_gain)
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


def search(problem: Problem, start: State, options: FitOptions) -> Solution:
    """Return the best state found from ``start`` by looking at all observations in every step: in
    one descent for most models, in stages where a model asks for an order."""
    order = problem.frame.model.release
    state, spent = _free_in_stages(problem, start, order, STAGE_ITERATIONS, options.max_iterations)
    scale, error = problem.scale, options.error
    little = None if scale is None or error is None else error**2 * scale
    solution = minimise(problem, state, options.max_iterations - spent, options.damping, little)
    progress = replace(solution.progress, iterations=solution.progress.iterations + spent)
    solution = replace(solution, progress=progress)
    if spent and not bool(progress.converged.all()):
        solution = _restart(problem, start, solution, options.max_iterations)
    return solution


def _free_in_stages(
    problem: Problem, state: State, order: tuple[int, ...], each: int, most: int
) -> tuple[State, int]:
    """Free the distortion parameters in that order, ``each`` iterations after one another; return
    the state and the iterations spent, fewer than ``most``.

    Plain squares all the way: the start is far off, where the Huber kernel only slows the steps.
    """
    spent = 0
    for frame in _stages(problem.frame, order):
        count = min(each, most - spent - 1)
        state = minimise(replace(problem, frame=frame, huber=None), state, count).state
        spent += count
    return state, spent


def _stages(frame: Frame, order: tuple[int, ...]) -> list[Frame]:
    """Frames that free ever more of the order's parameters, without its last one and those that it
    leaves out, which the final descent frees."""
    free_order = [i for i in order if i in frame.free.distortion]
    stages = []
    for count in range(len(free_order)):
        free = replace(frame.free, distortion=tuple(sorted(free_order[:count])))
        stages.append(replace(frame, free=free))
    return stages


def _restart(problem: Problem, start: State, first: Solution, most: int) -> Solution:
    """Search once more for components that did not converge, with more patience and every parameter
    freed by itself; the second end counts where it is the cheaper one."""
    unfinished = ~first.progress.converged
    part, images, times, cameras = problem.select(unfinished)
    released = problem.frame.model.release
    rest = tuple(i for i in problem.frame.free.distortion if i not in released)
    order = (*released, *rest)
    state, spent = _free_in_stages(
        part, start.select(times, cameras), order, PATIENT_ITERATIONS, most
    )
    second = minimise(part, state, most - spent)
    xp = namespace(unfinished)
    components = xp.nonzero(unfinished)[0]
    cost = first.cost[images]
    better = part.coupling.component_sum(second.cost) < part.coupling.component_sum(cost)
    state = second.state.where(better, first.state.select(times, cameras), part.coupling)
    image_better = better[part.coupling.camera_component[part.coupling.camera]]
    progress = second.progress.where(better, first.progress.select(components))
    return Solution(
        first.state.replaced(state, times, cameras),
        replace_rows(first.cost, images, xp.where(image_better, second.cost, cost)),
        first.progress.replaced(progress, components),
    )
