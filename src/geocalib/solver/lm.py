"""Levenberg-Marquardt on coupled images: steps that raise the cost are rejected, and every
component stops by itself."""

from __future__ import annotations

from dataclasses import dataclass, replace

from geocalib.arrays import (
    Array,
    cast,
    clip,
    double,
    namespace,
    no_gradients,
    records_gradients,
    replace_rows,
    row_max,
)
from geocalib.geometry.tensors import map_tensors
from geocalib.solver.coupling import to_cameras
from geocalib.solver.objective import Evaluation, Problem
from geocalib.solver.observations import Observations
from geocalib.solver.state import State

DAMPING_START, DAMPING_FACTOR = 0.1, 10.0
DAMPING_MOST = 1e2
DAMPING_LEAST = {32: 1e-6, 64: 1e-9}
"""By the bits of the fields' numbers. Single precision needs the larger floor; in double, strongly
correlated distortion parameters converge faster with less."""

STEP_TOLERANCE = {32: 2e-6, 64: 1e-9}
"""By the same bits. Converged when no unknown would move by more (radians, log f, units of the
distortion) in the next step, judged by how much shorter the last step was than the one before."""

GAIN_TOLERANCE = 1e-6
"""Or when a step is expected to gain less than this part of one residual's mean cost."""

LARGEST_TREND = 0.75
"""Steps are stretched by at most 1 / (1 - this)."""


@dataclass(frozen=True)
class Progress:
    """Where each component stands, all (K,)."""

    damping: Array
    step: Array
    """Longest component of the last step, 0 where that was rejected."""
    trend: Array
    """Length of the last step over that of the one before; 1 where either was rejected."""
    iterations: Array
    converged: Array
    stalled: Array

    @classmethod
    def start(cls, like: Array) -> Progress:
        xp = namespace(like)
        none = xp.zeros_like(like, dtype=xp.bool)
        damping = xp.full_like(like, DAMPING_START)
        zero, one = xp.zeros_like(like), xp.ones_like(like)
        return cls(
            damping=damping,
            step=zero,
            trend=one,
            iterations=cast(zero, xp.int64),
            converged=none,
            stalled=none,
        )

    @property
    def done(self) -> Array:
        return self.converged | self.stalled

    def select(self, index: Array) -> Progress:
        return map_tensors(lambda value: value[index], self)

    def where(self, keep: Array, other: Progress) -> Progress:
        """This progress in the components (K,) to keep, the other one elsewhere."""
        return map_tensors(lambda value, old: namespace(keep).where(keep, value, old), self, other)

    def replaced(self, part: Progress, index: Array) -> Progress:
        """With the selected rows taken from ``part``."""
        return map_tensors(lambda value, new: replace_rows(value, index, new), self, part)


@dataclass(frozen=True)
class Solution:
    """Where the iteration ended: the state, E of each image (B,), and how."""

    state: State
    cost: Array
    progress: Progress


def minimise(problem: Problem, state: State, max_iterations: int) -> Solution:
    """Run Levenberg-Marquardt until every component has converged, or ``max_iterations``."""
    evaluation = problem.evaluate(state)
    progress = Progress.start(evaluation.cost)
    if problem.gravity_size + problem.frame.intrinsics == 0:
        progress = replace(progress, converged=~progress.converged)
        return Solution(state, evaluation.normal.cost, progress)
    return _iterate(problem, state, evaluation, progress, max_iterations)


def _iterate(
    problem: Problem, state: State, evaluation: Evaluation, progress: Progress, max_iterations: int
) -> Solution:
    coupling = problem.coupling
    residuals = coupling.component_sum(_residual_count(problem.observations))
    xp = namespace(evaluation.cost)
    bits = xp.finfo(problem.observations.up_x.dtype).bits
    tolerance, least_damping = STEP_TOLERANCE[bits], DAMPING_LEAST[bits]
    for iteration in range(max_iterations):
        arrow, b_time, b_camera = problem.system(evaluation)
        damped = arrow.damped(progress.damping, coupling)
        x_time, x_camera = damped.eliminate(coupling).solve(b_time, b_camera, coupling)
        with no_gradients():
            gain = coupling.times_sum((x_time * b_time).sum(1)) + (x_camera * b_camera).sum(1)
            stretch = _stretch(progress.trend, gain, evaluation.cost)
        trial_state = problem.frame.step(
            state,
            x_time * stretch[coupling.time_component, None],
            to_cameras(x_camera * stretch[:, None], coupling),
        )
        trial = problem.evaluate(trial_state)
        with no_gradients():
            step = xp.maximum(coupling.times_max(x_time), row_max(abs(x_camera)))
            better = trial.total(evaluation.scale) <= evaluation.total(evaluation.scale)
            accept = better & ~progress.done
            little = gain <= GAIN_TOLERANCE * evaluation.cost / residuals
            progress = _advance(progress, step, better, little, tolerance, least_damping)
        if bool(accept.all()):
            state, evaluation = trial_state, trial
        elif bool(accept.any()):
            state = trial_state.where(accept, state, coupling)
            evaluation = trial.where(accept, evaluation, coupling)
        left = coupling.components - int(progress.done.sum())
        if left == 0:
            break
        if left <= coupling.components // 2 and not records_gradients(evaluation.cost):
            rest = max_iterations - iteration - 1
            return _go_on(problem, Solution(state, evaluation.normal.cost, progress), rest)
    return Solution(state, evaluation.normal.cost, progress)


def _stretch(trend: Array, gain: Array, cost: Array) -> Array:
    """How much further than the normal equations say to go, (K,).

    Under noise beyond the Huber threshold the weights of the residuals follow the solution, and
    the steps shrink by a constant factor only. The sum of that geometric series is the step to
    take; should it lead too far, it is rejected and the next one is plain.
    """
    xp = namespace(trend)
    follows_noise = (gain < 0.1 * cost) & (trend < 1)
    return xp.where(follows_noise, 1 / (1 - clip(trend, high=LARGEST_TREND)), 1.0)


def _advance(
    progress: Progress,
    step: Array,
    better: Array,
    little: Array,
    tolerance: float,
    least_damping: float,
) -> Progress:
    """One iteration further: who has settled, who is stuck, and the next damping."""
    xp = namespace(step)
    running = ~progress.done
    # Two accepted steps in a row tell how fast they shrink; the damping of a rejected one lies.
    trend = xp.where(better, clip(step / progress.step, high=1), 1.0)
    settled = little | (step * trend <= tolerance)
    stuck = ~better & ~settled & (progress.damping >= DAMPING_MOST)
    damping = xp.where(better, progress.damping / DAMPING_FACTOR, progress.damping * DAMPING_FACTOR)
    return Progress(
        damping=clip(damping, least_damping, DAMPING_MOST),
        step=xp.where(better, step, 0.0),
        trend=trend,
        iterations=progress.iterations + running,
        converged=progress.converged | (settled & running),
        stalled=progress.stalled | (stuck & running),
    )


def _go_on(problem: Problem, solution: Solution, max_iterations: int) -> Solution:
    """Continue with the components that still run, leaving the others alone."""
    running = ~solution.progress.done
    sub, images, times, cameras = problem.select(running)
    components = namespace(running).nonzero(running)[0]
    state = solution.state.select(times, cameras)
    part = _iterate(
        sub, state, sub.evaluate(state), solution.progress.select(components), max_iterations
    )
    return Solution(
        solution.state.replaced(part.state, times, cameras),
        replace_rows(solution.cost, images, part.cost),
        solution.progress.replaced(part.progress, components),
    )


def _residual_count(observations: Observations) -> Array:
    """(B,) observations that carry weight."""
    up = (observations.up_weight > 0).sum(1)
    return double(clip(up + (observations.latitude_weight > 0).sum(1), 1))
