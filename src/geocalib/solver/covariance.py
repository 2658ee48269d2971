"""Covariance of the free parameters at the optimum.

The estimate minimises E + s^2 priors. With M its expected curvature and V the scatter of its
scores (half gradients), the covariance is the sandwich M^-1 V M^-1, which needs no assumption on
how confidences relate to noise. Where s^2 is given, V = s^2 M and the sandwich is s^2 M^-1, the
inverse Hessian. Both are arrow-shaped, so the blocks of every image follow from the Schur
complement in time and memory linear in the number of images.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from geocalib.geometry import gravity as sphere
from geocalib.solver.coupling import Arrow, Coupling
from geocalib.solver.objective import Problem, estimated_scale
from geocalib.solver.residuals import information
from geocalib.solver.state import State

FLATTEST = 1e-12
"""Smallest eigenvalue, relative to the diagonal of the curvature, that is inverted."""

VAGUE = 1e4
"""Sigma along what the data and the priors say nothing about, in the unit of the parameters."""


@dataclass(frozen=True)
class Uncertainty:
    """Covariance (B, P, P) of the free parameters, and s^2 (B,), of B images."""

    covariance: Tensor
    scale: Tensor


def estimate_uncertainty(problem: Problem, state: State) -> Uncertainty:
    """How sure the optimum is."""
    with torch.no_grad():
        return Uncertainty(*_covariance(problem, state))


def _covariance(problem: Problem, state: State) -> tuple[Tensor, Tensor]:
    """(B, P, P) covariance of each image's gravity, in its own tangent basis, and intrinsics;
    and s^2 (B,)."""
    coupling, a = problem.coupling, problem.gravity_size
    camera, gravity, basis = problem.frame.images(state, coupling, problem.observations.up_x.dtype)
    info = information(
        camera, gravity, basis, problem.observations, problem.frame.free, problem.huber
    )
    estimated = estimated_scale(info, coupling)
    scale = estimated if problem.scale is None else torch.full_like(estimated, problem.scale)
    M = Arrow.assemble(info.hessian, coupling, a)
    if problem.scale is None:
        V = Arrow.assemble(info.scatter, coupling, a)
    else:
        V = Arrow(problem.scale * M.A, problem.scale * M.B, problem.scale * M.C)
    prior = problem.prior_terms(state)
    if prior is not None:
        time, camera_scale = (
            scale[coupling.time_component, None],
            scale[coupling.camera_component, None],
        )
        M = M.plus_diagonal(time * prior.time_weight, camera_scale * prior.camera_weight, coupling)
        V = V.plus_diagonal(
            time**2 * prior.time_weight, camera_scale**2 * prior.camera_weight, coupling
        )
    blocks = _sandwich(M, V, coupling)
    if a and coupling.rotation is not None:
        # From the shared frame's tangent basis to each image's own.
        own = sphere.tangent_basis(gravity.double())
        turn = own.transpose(1, 2) @ basis.double()
        change = torch.eye(blocks.shape[1], dtype=blocks.dtype, device=blocks.device)
        change = change.repeat(len(blocks), 1, 1)
        change[:, :2, :2] = turn
        blocks = change @ blocks @ change.transpose(1, 2)
    return blocks, scale[coupling.camera_component[coupling.camera]]


def _sandwich(M: Arrow, V: Arrow, coupling: Coupling) -> Tensor:
    """Blocks (B, P, P) of M^-1 V M^-1."""
    A_inverse, A_vague = _inverse(M.A, M.A)
    AB = A_inverse @ M.B
    transposed = AB.transpose(1, 2)
    S = M.C - coupling.times_sum(M.B.transpose(1, 2) @ AB)
    S_inverse, S_vague = _inverse(S, M.C)
    cross = transposed @ V.B
    reduced = V.C + coupling.times_sum(transposed @ V.A @ AB - cross - cross.transpose(1, 2))
    cameras = S_inverse @ reduced @ S_inverse + S_vague
    # Covariance of a time's own score with the cameras' estimate.
    shared = (V.B - V.A @ AB) @ S_inverse[coupling.time_component]
    mixed = A_inverse @ shared @ transposed
    of_time = cameras[coupling.time_component]
    alone = A_inverse @ V.A @ A_inverse + A_vague
    times = alone - mixed - mixed.transpose(1, 2) + AB @ of_time @ transposed
    side = A_inverse @ shared - AB @ of_time
    if not coupling.separate:
        own = side.shape[2] // coupling.slots
        slot = coupling.camera_slot[coupling.camera]
        component = coupling.camera_component[coupling.camera]
        times = times[coupling.time]
        side = side.reshape(len(side), side.shape[1], coupling.slots, own)[coupling.time, :, slot]
        split = cameras.reshape(len(cameras), coupling.slots, own, coupling.slots, own)
        cameras = split[component, slot, :, slot]
    top = torch.cat([times, side], 2)
    blocks = torch.cat([top, torch.cat([side.transpose(1, 2), cameras], 2)], 1)
    # Near a singularity rounding alone would make it lopsided.
    return 0.5 * (blocks + blocks.transpose(1, 2))


def _inverse(matrix: Tensor, whole: Tensor) -> tuple[Tensor, Tensor]:
    """Inverse of symmetric matrices (n, p, p) without their flat directions, and the covariance
    along these. What is flat is judged by the diagonal of the whole that the matrix is left of."""
    if matrix.shape[1] == 0:
        return matrix, matrix
    diagonal = whole.diagonal(dim1=1, dim2=2)
    scale = torch.rsqrt(torch.where(diagonal > 0, diagonal, 1.0))[:, :, None]
    scaled = scale * matrix * scale.transpose(1, 2)
    values, vectors = torch.linalg.eigh(torch.where(torch.isfinite(scaled), scaled, 0.0))
    flat = (values < FLATTEST)[:, None]
    vectors = scale * vectors
    inverse = torch.where(flat, 0.0, vectors / values[:, None]) @ vectors.transpose(1, 2)
    vague = torch.where(flat, VAGUE * vectors / vectors.abs().amax(1, keepdim=True), 0.0)
    return inverse, vague @ vague.transpose(1, 2)
