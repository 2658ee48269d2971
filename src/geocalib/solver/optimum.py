"""The optimum of the objective: the way there, and how sure it is.

Levenberg-Marquardt on coupled images leads there: steps that raise the cost are rejected, and every
component stops by itself.

The estimate minimises E + s^2 priors. With M its expected curvature and V the scatter of its
scores (half gradients), the covariance is the sandwich M^-1 V M^-1, which needs no assumption on
how confidences relate to noise. Where s^2 is given, V = s^2 M and the sandwich is s^2 M^-1, the
inverse Hessian. Both are arrow-shaped, so the blocks of every image follow from the Schur
complement in time and memory linear in the number of images.
"""

from __future__ import annotations

from dataclasses import replace

from geocalib.arrays import (
    Array,
    cast,
    diagonal,
    diagonal_matrices,
    double,
    inverse_root,
    namespace,
    replace_rows,
)
from geocalib.geometry import gravity as sphere
from geocalib.records import dataclass, map_tensors
from geocalib.solver.coupling import Arrow, Coupling, to_cameras
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
    return xp.where(follows_noise, 1 / (1 - trend.clip(max=LARGEST_TREND)), 1.0)


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
    trend = xp.where(better, (step / progress.step).clip(max=1), 1.0)
    settled = little | (step * trend <= tolerance)
    stuck = ~better & ~settled & (progress.damping >= DAMPING_MOST)
    damping = xp.where(better, progress.damping / DAMPING_FACTOR, progress.damping * DAMPING_FACTOR)
    return Progress(
        damping=damping.clip(least_damping, DAMPING_MOST),
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
    return double((up + (observations.latitude_weight > 0).sum(1)).clip(1))


FLATTEST = 1e-12
"""Smallest eigenvalue, relative to the diagonal of the curvature, that is inverted."""

VAGUE = 1e4
"""Sigma along what the data and the priors say nothing about, in the unit of the parameters."""


@dataclass(frozen=True)
class FitUncertainty:
    """Covariance (B, P, P) of the free parameters, and s^2 (B,), of B images."""

    covariance: Array
    scale: Array


def estimate_uncertainty(problem: Problem, state: State) -> FitUncertainty:
    """How sure the optimum is."""
    evaluation, info = problem.inspect(state)
    return uncertainty_by(evaluation.curved(info), info.scatter, problem, state)


def uncertainty_by(
    newton: Evaluation, scatter: Array | None, problem: Problem, state: State
) -> FitUncertainty:
    """Covariance of each image's gravity, in its own tangent basis, and intrinsics, and s^2.

    newton: the evaluation of the optimum, with the expected curvature for its Hessian. scatter:
    (B, P, P) of its scores, where s^2 was estimated.
    """
    coupling, a = problem.coupling, problem.gravity_size
    xp = namespace(state.gravity)
    of_image = newton.scale[coupling.camera_component[coupling.camera]]
    if scatter is None and coupling.separate:
        M, _ = problem.whole(newton)
        inverse, vague = _inverse(M, M)
        blocks = of_image[:, None, None] * inverse + vague
    else:
        arrow, _, _ = problem.system(newton)
        blocks = _sandwich(arrow, _scatter(newton, scatter, arrow, problem), coupling)
    # Near a singularity rounding alone would make it lopsided.
    blocks = 0.5 * (blocks + blocks.mT)
    if a and coupling.rotation is not None:
        # From the shared frame's tangent basis to each image's own.
        _, gravity, basis = problem.frame.images(state, coupling, problem.observations.up_x.dtype)
        own = sphere.tangent_basis(double(gravity))
        turn = own.mT @ double(basis)
        change = diagonal_matrices(xp.ones_like(diagonal(blocks)))
        change[:, :2, :2] = turn
        blocks = change @ blocks @ change.mT
    return FitUncertainty(blocks, of_image)


def _scatter(newton: Evaluation, scatter: Array | None, M: Arrow, problem: Problem) -> Arrow:
    """V of all images, given the expected curvature M."""
    if scatter is None:
        return Arrow(*(problem.scale * part for part in (M.A, M.B, M.C)))
    coupling, prior = problem.coupling, newton.prior
    V = Arrow.assemble(scatter, coupling, problem.gravity_size)
    if prior is None:
        return V
    time, camera = (
        newton.scale[component, None] ** 2
        for component in (coupling.time_component, coupling.camera_component)
    )
    return V.plus_diagonal(time * prior.time_weight, camera * prior.camera_weight, coupling)


def _sandwich(M: Arrow, V: Arrow, coupling: Coupling) -> Array:
    """Blocks (B, P, P) of M^-1 V M^-1."""
    xp = namespace(M.A)
    A_inverse, A_vague = _inverse(M.A, M.A)
    AB = A_inverse @ M.B
    transposed = AB.mT
    S = M.C - coupling.times_sum(M.B.mT @ AB)
    S_inverse, S_vague = _inverse(S, M.C)
    cross = transposed @ V.B
    reduced = V.C + coupling.times_sum(transposed @ V.A @ AB - cross - cross.mT)
    cameras = S_inverse @ reduced @ S_inverse + S_vague
    # Covariance of a time's own score with the cameras' estimate.
    shared = (V.B - V.A @ AB) @ S_inverse[coupling.time_component]
    mixed = A_inverse @ shared @ transposed
    of_time = cameras[coupling.time_component]
    alone = A_inverse @ V.A @ A_inverse + A_vague
    times = alone - mixed - mixed.mT + AB @ of_time @ transposed
    side = A_inverse @ shared - AB @ of_time
    if not coupling.separate:
        own = side.shape[2] // coupling.slots
        slot = coupling.camera_slot[coupling.camera]
        component = coupling.camera_component[coupling.camera]
        times = times[coupling.time]
        side = side.reshape(len(side), side.shape[1], coupling.slots, own)[coupling.time, :, slot]
        split = cameras.reshape(len(cameras), coupling.slots, own, coupling.slots, own)
        cameras = split[component, slot, :, slot]
    top = xp.concat([times, side], axis=2)
    return xp.concat([top, xp.concat([side.mT, cameras], axis=2)], axis=1)


def _inverse(matrix: Array, whole: Array) -> tuple[Array, Array]:
    """Inverse of symmetric matrices (n, p, p) without their flat directions, and the covariance
    along these. What is flat is judged by the diagonal of the whole that the matrix is left of."""
    xp = namespace(matrix)
    if matrix.shape[1] == 0:
        return matrix, matrix
    sizes = diagonal(whole)
    scale = inverse_root(xp.where(sizes > 0, sizes, 1.0))[:, :, None]
    scaled = scale * matrix * scale.mT
    values, vectors = xp.linalg.eigh(xp.where(xp.isfinite(scaled), scaled, 0.0))
    flat = (values < FLATTEST)[:, None]
    vectors = scale * vectors
    inverse = xp.where(flat, 0.0, vectors / values[:, None]) @ vectors.mT
    vague = xp.where(flat, VAGUE * vectors / xp.max(abs(vectors), axis=1, keepdims=True), 0.0)
    return inverse, vague @ vague.mT
