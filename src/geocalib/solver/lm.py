"""Levenberg-Marquardt on coupled images: steps that raise the cost are rejected, and every
component stops by itself."""

from __future__ import annotations

from dataclasses import replace

from geocalib.arrays import (
    Array,
    cast,
    clip,
    double,
    namespace,
    replace_rows,
)
from geocalib.records import dataclass, map_tensors
from geocalib.solver.coupling import to_cameras
from geocalib.solver.objective import Evaluation, Problem
from geocalib.solver.observations import Observations
from geocalib.solver.state import State

DAMPING_START = 0.1
"""The first damping, relative to the curvature; later ones follow from how steps turn out."""
DAMPING_FACTOR = 10.0
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
    def start(cls, like: Array, damping: float) -> Progress:
        xp = namespace(like)
        none = xp.zeros_like(like, dtype=xp.bool)
        zero, one = xp.zeros_like(like), xp.ones_like(like)
        return cls(
            damping=xp.full_like(like, damping),
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


def minimise(
    problem: Problem,
    state: State,
    max_iterations: int,
    damping: float = DAMPING_START,
    little: float | None = None,
) -> Solution:
    """Run Levenberg-Marquardt until every component has converged, or ``max_iterations``.

    damping: the first one. little: a gain of which a component has converged, instead of that by
    ``GAIN_TOLERANCE``.
    """
    evaluation = problem.evaluate(state)
    progress = Progress.start(evaluation.cost, damping)
    if problem.gravity_size + problem.frame.intrinsics == 0:
        progress = replace(progress, converged=~progress.converged)
        return Solution(state, evaluation.normal.cost, progress)
    return _iterate(problem, state, evaluation, progress, max_iterations, little)


def _iterate(
    problem: Problem,
    state: State,
    evaluation: Evaluation,
    progress: Progress,
    max_iterations: int,
    little: float | None,
) -> Solution:
    coupling = problem.coupling
    if little is None:
        share = GAIN_TOLERANCE / coupling.component_sum(_residual_count(problem.observations))
    bits = namespace(evaluation.cost).finfo(problem.observations.up_x.dtype).bits
    tolerance, least_damping = STEP_TOLERANCE[bits], DAMPING_LEAST[bits]
    for iteration in range(max_iterations):
        step = problem.step(evaluation, progress.damping)
        stretch = _stretch(progress.trend, step.gain, evaluation.cost)
        least = share * evaluation.cost if little is None else little
        running, ends = ~progress.done, step.gain <= least
        trial_state = problem.frame.step(
            state,
            step.time * stretch[coupling.time_component, None],
            to_cameras(step.camera * stretch[:, None], coupling),
        )
        if bool((ends | ~running).all()):
            # Steps as short as that are taken unseen: to look costs as much as all the rest.
            progress = _advance(progress, step.length, ends, ends, tolerance, least_damping)
            return Solution(
                trial_state.where(running, state, coupling), evaluation.normal.cost, progress
            )
        trial = problem.evaluate(trial_state)
        better = trial.total(evaluation.scale) <= evaluation.total(evaluation.scale)
        seen = better & running & ~ends
        accept = (better | ends) & running
        progress = _advance(progress, step.length, better | ends, ends, tolerance, least_damping)
        if bool(seen.all()):
            state, evaluation = trial_state, trial
        elif bool(accept.any()):
            state = trial_state.where(accept, state, coupling)
            evaluation = trial.where(seen, evaluation, coupling)
        left = coupling.components - int(progress.done.sum())
        if left == 0:
            break
        if left <= coupling.components // 2:
            rest = max_iterations - iteration - 1
            solution = Solution(state, evaluation.normal.cost, progress)
            return _go_on(problem, solution, rest, little)
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


def _go_on(
    problem: Problem, solution: Solution, max_iterations: int, little: float | None
) -> Solution:
    """Continue with the components that still run, leaving the others alone."""
    running = ~solution.progress.done
    sub, images, times, cameras = problem.select(running)
    components = namespace(running).nonzero(running)[0]
    state, progress = solution.state.select(times, cameras), solution.progress.select(components)
    part = _iterate(sub, state, sub.evaluate(state), progress, max_iterations, little)
    return Solution(
        solution.state.replaced(part.state, times, cameras),
        replace_rows(solution.cost, images, part.cost),
        solution.progress.replaced(part.progress, components),
    )


def _residual_count(observations: Observations) -> Array:
    """(B,) observations that carry weight."""
    up = (observations.up_weight > 0).sum(1)
    return double(clip(up + (observations.latitude_weight > 0).sum(1), 1))
