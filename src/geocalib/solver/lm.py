"""Levenberg-Marquardt on coupled images: steps that raise the cost are rejected, and every
component stops by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from geocalib import gravity as sphere
from geocalib.solver.coupling import Arrow, Coupling, assemble_vector, to_cameras
from geocalib.solver.observations import Observations
from geocalib.solver.priors import Knowledge, Priors
from geocalib.solver.problem import Information, Normal, information, normal_equations
from geocalib.solver.state import Frame, State

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

SMALLEST_SCALE = 1e-14
"""Floor of the estimated s^2, reached by noise-free fields."""


@dataclass(frozen=True)
class Problem:
    """Everything that stays fixed during a fit."""

    observations: Observations
    coupling: Coupling
    frame: Frame
    priors: Priors
    huber: float | None
    scale: float | None
    """s^2, None to estimate it."""

    def select(self, keep: Tensor) -> tuple[Problem, Tensor, Tensor, Tensor]:
        """The sub-problem of some components (K,), and the indices of its images, times and
        cameras."""
        coupling, images, times, cameras = self.coupling.select(keep)
        return (
            replace(
                self,
                observations=self.observations[images],
                coupling=coupling,
                frame=self.frame.select(cameras),
                priors=self.priors.select(times, cameras),
            ),
            images,
            times,
            cameras,
        )

    @property
    def gravity_size(self) -> int:
        return 2 if self.frame.free.gravity else 0

    def evaluate(self, state: State) -> Evaluation:
        """Normal equations, costs and s^2 at a state."""
        camera, gravity, basis = self.frame.images(
            state, self.coupling, self.observations.up_x.dtype
        )
        arguments = (
            camera,
            gravity,
            basis,
            self.observations,
            self.frame.free,
            self.huber,
        )
        normal = normal_equations(*arguments)
        cost = self.coupling.component_sum(normal.cost)
        if self.scale is not None:
            scale = torch.full_like(cost, self.scale)
        elif self.priors.soft:
            scale = estimated_scale(information(*arguments), self.coupling)
        else:
            scale = torch.ones_like(cost)
        return Evaluation(normal, cost, scale, self.prior_terms(state))

    def prior_terms(self, state: State) -> PriorTerms | None:
        """The soft priors' normal equations, None without any."""
        if not self.priors.soft:
            return None
        free, coupling = self.frame.free, self.coupling
        time_pull = state.gravity.new_zeros(len(state.gravity), self.gravity_size)
        time_weight = torch.zeros_like(time_pull)
        cost = state.gravity.new_zeros(coupling.components)
        known = self.priors.gravity
        if known.information is not None and known.value is not None:
            away = sphere.difference(
                state.gravity, known.value, sphere.tangent_basis(state.gravity)
            )
            time_weight = known.information.expand_as(away)
            time_pull = time_weight * away
            cost = cost.index_add(0, coupling.time_component, (time_pull * away).sum(1))
        pulls, weights = [], []

        def pull(known: Knowledge, at: Tensor, columns: Sequence[int]) -> None:
            weight, away = torch.zeros_like(at), torch.zeros_like(at)
            if known.information is not None and known.value is not None:
                weight, away = known.information, known.value - at
            weights.append(weight[:, columns])
            pulls.append((weight * away)[:, columns])

        pull(self.priors.log_f, state.log_f[:, None], [0] if free.focal else [])
        pull(self.priors.distortion, state.distortion, free.distortion)
        pull(self.priors.principal_point, state.c, [0, 1] if free.principal_point else [])
        camera_pull, camera_weight = torch.cat(pulls, 1), torch.cat(weights, 1)
        squares = camera_pull**2 / torch.where(camera_weight > 0, camera_weight, 1.0)
        cost = cost.index_add(0, coupling.camera_component, squares.sum(1))
        return PriorTerms(time_weight, time_pull, camera_weight, camera_pull, cost)

    def system(self, evaluation: Evaluation) -> tuple[Arrow, Tensor, Tensor]:
        """Arrow matrix and right-hand sides of (E + s^2 priors) / 2."""
        coupling, a = self.coupling, self.gravity_size
        arrow = Arrow.assemble(evaluation.normal.hessian, coupling, a)
        b_time, b_camera = assemble_vector(-evaluation.normal.gradient, coupling, a)
        if evaluation.prior is None:
            return arrow, b_time, b_camera
        p, scale = evaluation.prior, evaluation.scale
        of_time = scale[coupling.time_component, None]
        of_camera = scale[coupling.camera_component, None]
        arrow = arrow.plus_diagonal(of_time * p.time_weight, of_camera * p.camera_weight, coupling)
        pull = coupling.by_component(of_camera * p.camera_pull)
        return arrow, b_time + of_time * p.time_pull, b_camera + pull


@dataclass(frozen=True)
class PriorTerms:
    """Diagonal weights and weighted pulls towards the priors, and their cost (K,)."""

    time_weight: Tensor
    time_pull: Tensor
    camera_weight: Tensor
    camera_pull: Tensor
    cost: Tensor


@dataclass(frozen=True)
class Evaluation:
    """A state's normal equations per image, its costs and s^2 per component (K,)."""

    normal: Normal
    cost: Tensor
    scale: Tensor
    prior: PriorTerms | None

    def total(self, scale: Tensor) -> Tensor:
        """E + s^2 priors, (K,)."""
        return self.cost if self.prior is None else self.cost + scale * self.prior.cost

    def where(self, keep: Tensor, other: Evaluation, coupling: Coupling) -> Evaluation:
        """This evaluation in the components (K,) to keep, the other one elsewhere."""
        image = keep if coupling.separate else keep[coupling.camera_component[coupling.camera]]
        normal = Normal(
            torch.where(image[:, None, None], self.normal.hessian, other.normal.hessian),
            torch.where(image[:, None], self.normal.gradient, other.normal.gradient),
            torch.where(image, self.normal.cost, other.normal.cost),
        )
        prior = None
        if self.prior is not None and other.prior is not None:
            time = keep[coupling.time_component][:, None]
            camera = keep[coupling.camera_component][:, None]
            a, b = self.prior, other.prior
            prior = PriorTerms(
                torch.where(time, a.time_weight, b.time_weight),
                torch.where(time, a.time_pull, b.time_pull),
                torch.where(camera, a.camera_weight, b.camera_weight),
                torch.where(camera, a.camera_pull, b.camera_pull),
                torch.where(keep, a.cost, b.cost),
            )
        return Evaluation(
            normal,
            torch.where(keep, self.cost, other.cost),
            torch.where(keep, self.scale, other.scale),
            prior,
        )


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
        return cls(damping, zero, one, zero.long(), none, none)

    @property
    def done(self) -> Tensor:
        return self.converged | self.stalled

    def select(self, index: Tensor) -> Progress:
        return Progress(*(value[index] for value in vars(self).values()))

    def replaced(self, part: Progress, index: Tensor) -> Progress:
        """With the selected rows taken from ``part``."""
        pairs = zip(vars(self).values(), vars(part).values(), strict=True)
        return Progress(*(value.index_copy(0, index, new) for value, new in pairs))


@dataclass(frozen=True)
class Solution:
    """Where the iteration ended: the state, E of each image (B,), and how."""

    state: State
    cost: Tensor
    progress: Progress


def estimated_scale(info: Information, coupling: Coupling) -> Tensor:
    """s^2 (K,) that makes the curvature of E / s^2 match the scatter of its scores."""
    scatter = coupling.component_sum(info.scatter.diagonal(dim1=1, dim2=2))
    curvature = coupling.component_sum(info.hessian.diagonal(dim1=1, dim2=2))
    # Parameters that the data say nothing about have neither.
    seen = curvature > 0
    ratio = torch.where(seen, scatter / torch.where(seen, curvature, 1.0), 0.0)
    return (ratio.sum(1) / seen.sum(1).clamp(min=1)).clamp(min=SMALLEST_SCALE)


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
        damping.clamp(least_damping, DAMPING_MOST),
        torch.where(better, step, 0.0),
        trend,
        progress.iterations + running,
        progress.converged | (settled & running),
        progress.stalled | (stuck & running),
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
