"""What the network says, as the prior of the lines: a mean and how stiffly each way from it.

The deviation of gravity is the chord from its mean in the mean's tangent plane; that of the
intrinsics the difference of log f, distortion and principal point. The cost is quadratic in all of
them, with the arrow shape of ``geocalib.solver.coupling``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from geocalib.geometry import gravity as sphere
from geocalib.geometry.conventions import TRIVIAL_FOCAL
from geocalib.geometry.fields import Free
from geocalib.lines.system import Arrow
from geocalib.lines.unknowns import Array, Guess, Layout, tangent_basis, times
from geocalib.result.calibration import Calibration
from geocalib.solver import coupling as solver
from geocalib.solver.coupling import Coupling
from geocalib.solver.state import Frame

FREEDOM = 4.0
"""Of Student's distribution. Networks are more wrong than they say more often than a normal
variable: where lines are many and sure, they may contradict. Near the mean it is as stiff as a
normal one, so that what lines say nothing about stays as sure as it was."""
SHARED_ERROR = 1.6
"""Times the sigma of log f that a network's answer has beside lines: it errs alike in all photos of
a place, and must not outvote sharp lines there. Chosen with all photographs
in sight; from 1.6 to 6 the medians of buildings hardly change."""
USUAL_LOG_F = 0.7
"""One sigma of log f of any photo, around ``TRIVIAL_FOCAL`` times its longer side."""
FLATTEST = 1e-12
"""Smallest eigenvalue of a correlation matrix that is inverted as it is."""


@dataclass(frozen=True)
class Prior:
    """Where T gravities and C cameras are, before the lines are seen."""

    mean: Guess
    """One, without headings."""
    basis: Array
    """(T, 3, a) tangent directions at the mean."""
    stiffness: Arrow
    """Inverse covariance of the deviations."""

    def distance(self, guess: Guess, layout: Layout) -> Array:
        """(R,) how far guesses are from the mean, in sigmas."""
        return np.asarray(np.sqrt(self._forces(guess, layout)[2]))

    def pull(self, guess: Guess, layout: Layout) -> Pull:
        """What the prior adds at guesses."""
        stiff = self.stiffness
        turn = np.swapaxes(tangent_basis(guess.gravity)[..., : layout.tangents], -1, -2)
        turn = turn @ self.basis
        time_force, camera_force, squared = self._forces(guess, layout)
        # Of Student's distribution: both the cost and the weight that makes its gradient.
        weight = student_weight(squared)
        held = weight[:, None, None, None] * turn
        arrow = Arrow(
            held @ stiff.A @ np.swapaxes(turn, -1, -2),
            held @ stiff.B,
            weight[:, None, None] * stiff.C,
        )
        cost = student_cost(squared)
        return Pull(arrow, times(held, time_force), weight[:, None] * camera_force, cost)

    def _forces(self, guess: Guess, layout: Layout) -> tuple[Array, Array, Array]:
        """Stiffness times deviation, (R, T, a) and (R, Q), and that times the deviation (R,)."""
        stiff = self.stiffness
        time = (guess.gravity[..., None, :] @ self.basis)[..., 0, :]
        camera = self._off(guess, layout.free)
        time_force = times(stiff.A, time) + times(stiff.B, camera[:, None])
        camera_force = times(np.swapaxes(stiff.B, -1, -2), time).sum(1) + times(stiff.C, camera)
        squared = (time * time_force).sum((-1, -2)) + (camera * camera_force).sum(-1)
        return time_force, camera_force, squared

    def _off(self, guess: Guess, free: Free) -> Array:
        """(R, Q) how far the intrinsics are from the mean."""
        mean, parts = self.mean, [guess.log_f[..., None] - self.mean.log_f[..., None]]
        parts = parts if free.focal else []
        parts += [(guess.distortion - mean.distortion)[..., i : i + 1] for i in free.distortion]
        parts += [guess.c - mean.c] if free.principal_point else []
        rows = len(guess)
        return np.concatenate(parts, -1).reshape(rows, -1) if parts else np.zeros((rows, 0))


@dataclass(frozen=True)
class Pull:
    """Normal equations of half the prior's cost, and the cost (R,)."""

    arrow: Arrow
    time: Array
    """(R, T, a) gradient."""
    camera: Array
    """(R, Q) gradient."""
    cost: Array


def student_cost(squared: Array) -> Array:
    """Of deviations by so many sigmas, squared."""
    return np.asarray(FREEDOM * np.log1p(squared / FREEDOM))


def student_weight(squared: Array) -> Array:
    """Its slope."""
    return np.asarray(FREEDOM / (FREEDOM + squared))


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


def usual(calibration: Calibration, told: float = 0.0) -> Calibration:
    """With what is known of any photo and of any network: one that cannot tell the focal length
    does not make very long and very short ones likely.

    told: how much of what is known of log f, as an inverse variance, is no network's word.
    """
    names, camera = calibration.parameters, calibration.camera
    if "log f" not in names or camera.model.wide:
        return calibration
    at = names.index("log f")
    factor = torch.ones(len(names), dtype=torch.float64)
    factor[at] = _shared_error(float(calibration.covariance[at, at]), told)
    covariance = factor[:, None] * calibration.covariance * factor
    off = (TRIVIAL_FOCAL * camera.size.max() / camera.f[0]).log()
    gain = covariance[:, at] / (covariance[at, at] + USUAL_LOG_F**2)
    step = dict(zip(names, gain * off, strict=True))
    gravity = calibration.gravity
    if "pitch direction" in step:
        turn = torch.stack([step["roll direction"], step["pitch direction"]])
        gravity = sphere.move(gravity, turn)
    distortion = camera.distortion.clone()
    for i, name in enumerate(camera.model.parameters):
        distortion[0, i] += step.get(name, 0.0)
    camera = replace(camera, f=camera.f * step["log f"].exp(), distortion=distortion)
    left = covariance - gain[:, None] * covariance[at]
    return replace(calibration, camera=camera, gravity=gravity, covariance=left)


def _shared_error(variance: float, told: float) -> float:
    """Times the sigma of log f, which has that variance: what was told is as sure as it was."""
    heard = max(0.0, 1 / variance - told)
    return math.sqrt((heard + told) / (heard / SHARED_ERROR**2 + told)) if variance > 0 else 1.0


def network_prior(calibrations: Sequence[Calibration], coupling: Coupling) -> tuple[Prior, Layout]:
    """The prior of B images that form one component from their calibrations, whose free parameters
    must be the same.

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
    values = (
        mean_gravity,
        torch.cat([camera.f for camera in own]).log(),
        torch.cat([camera.distortion for camera in own]),
        torch.cat([camera.c for camera in own]),
        gravity.new_zeros(len(gravity), 0, 3),
    )
    mean = Guess(*(value.numpy()[None] for value in values))
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
    laid = solver.Arrow.assemble(matrix, coupling, a)
    # Other components may have more cameras, and leave room for them here.
    used = cameras * frame.intrinsics
    A, B, C = laid.A, laid.B[..., :used], laid.C[0, :used, :used]
    stiffness = Arrow(*(part.numpy()[None] for part in (A, B, C)))
    return Prior(mean, mean_basis[..., :a].numpy(), stiffness), Layout.create(frame, coupling)


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
    a = prior.basis.shape[-1]
    return float(np.sqrt(np.linalg.inv(_whole(prior))[a, a]))


def _whole(prior: Prior) -> Array:
    """The stiffness of the first image as one matrix."""
    A, B, C = prior.stiffness.A[0, 0], prior.stiffness.B[0, 0], prior.stiffness.C[0]
    return np.block([[A, B], [B.T, C]])


def given_log_f(prior: Prior, log_f: Array, layout: Layout) -> Guess:
    """The likeliest guesses (F) at one image for focal lengths log f (F,)."""
    mean = prior.mean[[0] * len(log_f)]
    if not layout.free.focal:
        return mean
    whole, a = _whole(prior), layout.tangents
    rest = [i for i in range(len(whole)) if i != a]
    slope = np.linalg.solve(whole[np.ix_(rest, rest)], -whole[rest, a])
    moves = (log_f - mean.log_f[:, 0])[:, None] * slope
    camera = np.concatenate([np.zeros((len(moves), 1)), moves[:, a:]], 1)
    guess = layout.moved(mean, moves[:, None, :a], camera[:, None])
    return replace(guess, log_f=log_f[:, None])
