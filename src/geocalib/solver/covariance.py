"""Covariance of the free parameters at the optimum.

The estimate minimises E + s^2 priors. With M its expected curvature and V the scatter of its
scores (half gradients), the covariance is the sandwich M^-1 V M^-1, which needs no assumption on
how confidences relate to noise. Where s^2 is given, V = s^2 M and the sandwich is s^2 M^-1, the
inverse Hessian. Both are arrow-shaped, so the blocks of every image follow from the Schur
complement in time and memory linear in the number of images.
"""

from __future__ import annotations

from geocalib.arrays import (
    Array,
    diagonal,
    diagonal_matrices,
    double,
    inverse_root,
    namespace,
)
from geocalib.geometry import gravity as sphere
from geocalib.records import dataclass
from geocalib.solver.coupling import Arrow, Coupling
from geocalib.solver.objective import Evaluation, Problem
from geocalib.solver.state import State

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
