"""Levenberg-Marquardt on coupled images: steps that raise the cost are rejected, and every
component stops by itself."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from geocalib.geometry.tensors import map_tensors
from geocalib.solver.coupling import to_cameras
from geocalib.solver.objective import Evaluation, Problem
from geocalib.solver.observations import Observations
from geocalib.solver.state import State

DAMPING_START, DAMPING_FACTOR = 0.1, 10.0
DAMPING_MOST = 1e2
DAMPING_LEAST = {torch.float32: 1e-6, torch.float64: 1e-9}
"""Single precision needs the larger floor; in double, strongly correlated distortion parameters
converge faster with less."""

STEP_TOLERANCE = {torch.float32: 2e-6, torch.float64: 1e-9}
"""Converged when no unknown would move by more (radians, log f, units of the distortion) in the
next step, judged by how much shorter the last step was than the one before."""

GAIN_TOLERANCE = 1e-6
"""Or when a step is expected to gain less than this part of one residual's mean cost."""

LARGEST_TREND = 0.75
"""Steps are stretched by at most 1 / (1 - this)."""


@dataclass(frozen=True)
class Progress:
    """Where each component stands, all (K,)."""

    damping: Tensor
    step: Tensor
    """Longest component of the last step, 0 where that was rejected."""
    trend: Tensor
    """Length of the last step over that of the one before; 1 where either was rejected."""
    iterations: Tensor
    converged: Tensor
    stalled: Tensor

    @classmethod
    def start(cls, like: Tensor) -> Progress:
        none = torch.zeros_like(like, dtype=torch.bool)
        damping = torch.full_like(like, DAMPING_START)
        zero, one = torch.zeros_like(like), torch.ones_like(like)
        return cls(
            damping=damping,
            step=zero,
            trend=one,
            iterations=zero.long(),
            converged=none,
            stalled=none,
        )

    @property
    def done(self) -> Tensor:
        return self.converged | self.stalled

    def select(self, index: Tensor) -> Progress:
        return map_tensors(lambda value: value[index], self)

    def where(self, keep: Tensor, other: Progress) -> Progress:
        """This progress in the components (K,) to keep, the other one elsewhere."""
        return map_tensors(lambda value, old: torch.where(keep, value, old), self, other)

    def replaced(self, part: Progress, index: Tensor) -> Progress:
        """With the selected rows taken from ``part``."""
        return map_tensors(lambda value, new: value.index_copy(0, index, new), self, part)


@dataclass(frozen=True)
class Solution:
    """Where the iteration ended: the state, E of each image (B,), and how."""

    state: State
    cost: Tensor
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
    dtype = problem.observations.up_x.dtype
    tolerance, least_damping = STEP_TOLERANCE[dtype], DAMPING_LEAST[dtype]
    for iteration in range(max_iterations):
        arrow, b_time, b_camera = problem.system(evaluation)
        damped = arrow.damped(progress.damping, coupling)
        x_time, x_camera = damped.eliminate(coupling).solve(b_time, b_camera, coupling)
        with torch.no_grad():
            gain = coupling.times_sum((x_time * b_time).sum(1)) + (x_camera * b_camera).sum(1)
            stretch = _stretch(progress.trend, gain, evaluation.cost)
        trial_state = problem.frame.step(
            state,
            x_time * stretch[coupling.time_component, None],
            to_cameras(x_camera * stretch[:, None], coupling),
        )
        trial = problem.evaluate(trial_state)
        with torch.no_grad():
            step = torch.maximum(coupling.times_max(x_time), _row_max(x_camera))
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
        if left <= coupling.components // 2 and not torch.is_grad_enabled():
            rest = max_iterations - iteration - 1
            return _go_on(problem, Solution(state, evaluation.normal.cost, progress), rest)
    return Solution(state, evaluation.normal.cost, progress)


def _stretch(trend: Tensor, gain: Tensor, cost: Tensor) -> Tensor:
    """How much further than the normal equations say to go, (K,).

    Under noise beyond the Huber threshold the weights of the residuals follow the solution, and
    the steps shrink by a constant factor only. The sum of that geometric series is the step to
    take; should it lead too far, it is rejected and the next one is plain.
    """
    follows_noise = (gain < 0.1 * cost) & (trend < 1)
    return torch.where(follows_noise, 1 / (1 - trend.clamp(max=LARGEST_TREND)), 1.0)


def _advance(
    progress: Progress,
    step: Tensor,
    better: Tensor,
    little: Tensor,
    tolerance: float,
    least_damping: float,
) -> Progress:
    """One iteration further: who has settled, who is stuck, and the next damping."""
    running = ~progress.done
    # Two accepted steps in a row tell how fast they shrink; the damping of a rejected one lies.
    trend = torch.where(better, (step / progress.step).clamp(max=1), 1.0)
    settled = little | (step * trend <= tolerance)
    stuck = ~better & ~settled & (progress.damping >= DAMPING_MOST)
    damping = torch.where(
        better, progress.damping / DAMPING_FACTOR, progress.damping * DAMPING_FACTOR
    )
    return Progress(
        damping=damping.clamp(least_damping, DAMPING_MOST),
        step=torch.where(better, step, 0.0),
        trend=trend,
        iterations=progress.iterations + running,
        converged=progress.converged | (settled & running),
        stalled=progress.stalled | (stuck & running),
    )


def _go_on(problem: Problem, solution: Solution, max_iterations: int) -> Solution:
    """Continue with the components that still run, leaving the others alone."""
    running = ~solution.progress.done
    sub, images, times, cameras = problem.select(running)
    components = running.nonzero()[:, 0]
    state = solution.state.select(times, cameras)
    part = _iterate(
        sub, state, sub.evaluate(state), solution.progress.select(components), max_iterations
    )
    return Solution(
        solution.state.replaced(part.state, times, cameras),
        solution.cost.index_copy(0, images, part.cost),
        solution.progress.replaced(part.progress, components),
    )


def _residual_count(observations: Observations) -> Tensor:
    """(B,) observations that carry weight."""
    up = (observations.up_weight > 0).sum(1)
    return (up + (observations.latitude_weight > 0).sum(1)).clamp(min=1).double()


def _row_max(values: Tensor) -> Tensor:
    return values.abs().amax(1) if values.shape[1] else values.new_zeros(len(values))
