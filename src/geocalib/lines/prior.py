"""What the network says, as the prior of the lines: a mean and how stiffly each way from it.

The deviation of gravity is the chord from its mean in the mean's tangent plane; that of the
intrinsics the difference of log f, distortion and principal point. The cost is quadratic in all of
them, with the arrow shape of ``geocalib.solver.coupling``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from geocalib import gravity as sphere
from geocalib.calibration import Calibration
from geocalib.fields import Free
from geocalib.solver.coupling import Arrow, Coupling
from geocalib.solver.state import Frame, State

FREEDOM = 4.0
"""Of Student's distribution. Networks are more wrong than they say more often than a normal
variable: where lines are many and sure, they may contradict.

For small deviations it is slightly stiffer than a normal one."""
FLATTEST = 1e-12
"""Smallest eigenvalue of a correlation matrix that is inverted as it is."""


@dataclass(frozen=True)
class Prior:
    """Where T gravities and C cameras are, before the lines are seen."""

    mean: State
    basis: Tensor
    """(T, 3, 2) tangent directions at the mean."""
    stiffness: Arrow
    """Inverse covariance of the deviations."""

    def pull(self, state: State, frame: Frame, coupling: Coupling) -> Pull:
        """What the prior adds at a state."""
        free, stiff = frame.free, self.stiffness
        time = (self.basis.transpose(1, 2) @ state.gravity[..., None])[..., 0]
        turn = self.basis.transpose(1, 2) @ sphere.tangent_basis(state.gravity)
        if not free.gravity:
            time, turn = time[:, :0], turn[:, :0, :0]
        parts = [
            (state.log_f - self.mean.log_f)[:, None][:, : int(free.focal)],
            (state.distortion - self.mean.distortion)[:, list(free.distortion)],
            (state.c - self.mean.c)[:, : 2 * int(free.principal_point)],
        ]
        camera = coupling.by_component(torch.cat(parts, 1))
        of_time = camera[coupling.time_component]
        time_force = _times(stiff.A, time) + _times(stiff.B, of_time)
        back = coupling.times_sum(_times(stiff.B.transpose(1, 2), time))
        camera_force = _times(stiff.C, camera) + back
        squared = coupling.times_sum((time * time_force).sum(1)) + (camera * camera_force).sum(1)
        # Of Student's distribution: both the cost and the weight that makes its gradient.
        each = time.new_full((len(time),), float(time.shape[1]))
        unknowns = coupling.times_sum(each) + camera.shape[1]
        cost = (FREEDOM + unknowns) * torch.log1p(squared / FREEDOM)
        weight = (FREEDOM + unknowns) / (FREEDOM + squared)
        of_time = weight[coupling.time_component]
        turned = turn.transpose(1, 2) * of_time[:, None, None]
        arrow = Arrow(turned @ stiff.A @ turn, turned @ stiff.B, weight[:, None, None] * stiff.C)
        return Pull(arrow, _times(turned, time_force), weight[:, None] * camera_force, cost)


@dataclass(frozen=True)
class Pull:
    """Normal equations of half the prior's cost, and the cost (K,)."""

    arrow: Arrow
    time: Tensor
    """(T, a) gradient."""
    camera: Tensor
    """(K, Q) gradient."""
    cost: Tensor


def _times(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector[..., None])[..., 0]


def free_of(calibration: Calibration) -> Free:
    """Which parameters the network's fit left free."""
    names, model = calibration.parameters, calibration.camera.model
    return Free(
        gravity="pitch direction" in names,
        focal="log f" in names,
        distortion=tuple(i for i, name in enumerate(model.parameters) if name in names),
        principal_point="cx" in names,
    )


def network_prior(calibrations: Sequence[Calibration], coupling: Coupling) -> tuple[Prior, Frame]:
    """The prior of B images from their calibrations, whose free parameters must be the same.

    Where an image is the only one of its time, the joint covariance of its gravity and its camera
    is kept; gravity that several images share keeps its own covariance only.
    """
    cameras, times = len(coupling.camera_component), len(coupling.time_component)
    first_of_camera = _first(coupling.camera, cameras)
    first_of_time = _first(coupling.time, times)
    gravity = torch.stack([c.gravity for c in calibrations])
    basis = sphere.tangent_basis(gravity)
    covariance = torch.stack([c.covariance for c in calibrations])
    a = 2 if free_of(calibrations[0]).gravity else 0
    if coupling.rotation is not None:
        back = coupling.rotation.double().transpose(1, 2)
        gravity, basis = _times(back, gravity), back @ basis
    mean_gravity = gravity[first_of_time]
    mean_basis = sphere.tangent_basis(mean_gravity)
    own = [calibrations[i].camera for i in first_of_camera.tolist()]
    mean = State(
        mean_gravity,
        torch.cat([camera.f for camera in own]).log(),
        torch.cat([camera.distortion for camera in own]),
        torch.cat([camera.c for camera in own]),
    )
    size, aspect = torch.cat([c.size for c in own]), torch.cat([c.aspect for c in own])
    frame = Frame.create(own[0].model, size, aspect, free_of(calibrations[0]))
    # From each image's tangent basis to that of its time.
    turn = mean_basis[coupling.time].transpose(1, 2) @ basis
    turn = turn[:, :a, :a]
    top = turn @ covariance[:, :a, :a] @ turn.transpose(1, 2)
    side = turn @ covariance[:, :a, a:]
    own_information = _inverse(covariance[first_of_camera][:, a:, a:])
    alone = torch.bincount(coupling.time, minlength=times)[coupling.time] == 1
    # Gravity given the camera: regress one on the other.
    slope = side @ _inverse(covariance[:, a:, a:]) * alone[:, None, None]
    tight = _inverse(top - slope @ side.transpose(1, 2))
    # Several images of one time say the same thing: it counts once.
    first = torch.zeros(len(gravity), dtype=torch.bool)
    first[first_of_time] = True
    tight = tight * first[:, None, None]
    across = -tight @ slope
    matrix = torch.cat(
        [
            torch.cat([tight, across], 2),
            torch.cat([across.transpose(1, 2), slope.transpose(1, 2) @ tight @ slope], 2),
        ],
        1,
    )
    lone_camera = torch.zeros(len(gravity), *own_information.shape[1:], dtype=torch.float64)
    lone_camera[first_of_camera] = own_information
    matrix[:, a:, a:] += lone_camera
    return Prior(mean, mean_basis, Arrow.assemble(matrix, coupling, a)), frame


def _first(index: Tensor, count: int) -> Tensor:
    """(count,) the first image that has each index."""
    place = torch.arange(len(index))
    return torch.full((count,), len(index)).scatter_reduce(0, index, place, "amin")


def _inverse(matrix: Tensor) -> Tensor:
    """Inverse of covariances (n, p, p), which may be nearly singular."""
    if matrix.shape[1] == 0:
        return matrix
    scale = torch.rsqrt(matrix.diagonal(dim1=1, dim2=2).clamp(min=torch.finfo(matrix.dtype).tiny))
    scaled = scale[:, :, None] * matrix * scale[:, None]
    values, vectors = torch.linalg.eigh(scaled)
    inverse: Tensor = (vectors / values.clamp(min=FLATTEST)[:, None]) @ vectors.transpose(1, 2)
    return scale[:, :, None] * inverse * scale[:, None]


def log_f_sigma(prior: Prior) -> float:
    """One sigma of log f of the first camera, where it is free."""
    a = len(prior.stiffness.A[0])
    return float(torch.linalg.inv(_whole(prior))[a, a].sqrt())


def _whole(prior: Prior) -> Tensor:
    """The stiffness of the first image as one matrix."""
    stiff = prior.stiffness
    top = torch.cat([stiff.A[0], stiff.B[0]], 1)
    return torch.cat([top, torch.cat([stiff.B[0].T, stiff.C[0]], 1)])


def given_log_f(prior: Prior, log_f: Tensor, frame: Frame) -> State:
    """The likeliest states (F) of the first image for focal lengths log f (F,)."""
    first = torch.zeros(len(log_f), dtype=torch.long)
    mean = prior.mean.select(first, first)
    if not frame.free.focal:
        return mean
    whole, a = _whole(prior), len(prior.stiffness.A[0])
    rest = [i for i in range(len(whole)) if i != a]
    slope = torch.linalg.solve(whole[rest][:, rest], -whole[rest, a])
    moves = (log_f - mean.log_f)[:, None] * slope
    camera = torch.cat([moves.new_zeros(len(moves), 1), moves[:, a:]], 1)
    state = frame.select(first).step(mean, moves[:, :a], camera)
    return replace(state, log_f=log_f)
