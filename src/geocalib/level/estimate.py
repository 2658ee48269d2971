"""The direction down in a model, estimated from the gravity of all its photos.

With d the direction down in the world, photo i with the rotation R_i from the world to its camera
saw gravity g_i with the covariance S_i on the tangent plane at g_i. The estimate minimises the sum
of rho(r_i' S_i^-1 r_i / s^2) with r_i the tangent step from g_i to R_i d, rho Tukey's bisquare,
which is flat for what lies far away, and s the scale of the residuals themselves: sigmas of photos
need not be right to be weighed against each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from geocalib.arrays import Array
from geocalib.errors import PriorError
from geocalib.geometry.fields import ALONG_PITCH, ALONG_ROLL
from geocalib.geometry.gravity import angle_between, difference, move, tangent_basis
from geocalib.localize.rotation import from_vector
from geocalib.localize.world import world_gravity
from geocalib.records import dataclass
from geocalib.result.calibration import Calibration

ROUNDS = 30

CUTOFF = 4.0
"""Sigmas beyond which a photo is an outlier, which has no weight."""

MEDIAN = 2 * math.log(2)
"""Median of the sum of two squared normal variables."""

BELIEF = 4
"""How many photos the sigmas as they are count for, when the residuals say how large s is."""

FLOOR = math.radians(0.1)
"""Added to the sigma of every photo: none is better than that, whatever it says."""

UNKNOWN = math.radians(1.0)
"""The sigma of a photo that does not say any."""


@dataclass(frozen=True)
class Down:
    """The direction down in a model, with its sigma and outliers."""

    direction: Array
    """(3,) unit vector in the world of the model."""
    sigma_deg: float
    """Along its most uncertain direction."""
    off_deg: Array
    """(N,) by which the gravity of each photo differs from it."""
    outliers: tuple[int, ...]
    """The photos that had no say."""


def down_of(rotations: Sequence[Array], calibrations: Sequence[Calibration]) -> Down:
    """The direction down, from the poses of photos ((3, 3), from the world to the camera frame)
    and their gravity."""
    R = np.array(rotations)
    seen = np.array([calibration.gravity for calibration in calibrations])
    down = world_gravity(R, seen)
    basis = tangent_basis(seen)
    information = np.linalg.inv(np.array([_covariance(c) for c in calibrations]))
    for _ in range(ROUNDS):
        residual = difference(seen, R @ down, basis)
        squared = np.einsum("ni,nij,nj->n", residual, information, residual)
        measured = float(np.median(squared)) / MEDIAN
        scale2 = (BELIEF + len(R) * measured) / (BELIEF + len(R))
        weight = np.clip(1 - squared / (CUTOFF**2 * scale2), 0, None) ** 2
        along = tangent_basis(down)
        # (N, 2, 2): how the residual moves with a step of the direction.
        J = basis.mT @ R @ along
        JS = J.mT @ information
        normal = np.einsum("n,nij->ij", weight, JS @ J)
        if np.linalg.cond(normal) > 1e12:
            raise PriorError("the photos contradict each other on which way is down")
        parts = weight[:, None] * np.einsum("nij,nj->ni", JS, residual)
        step = -np.linalg.solve(normal, parts.sum(0))
        down = move(down, step)
    inverse = np.linalg.inv(normal)
    covariance = scale2 * inverse
    if len(R) > 2:
        # What the residuals themselves say of their sum, where there are enough of them.
        spread = inverse @ (parts.T @ parts) @ inverse * len(R) / (len(R) - 2)
        covariance = max(
            covariance, spread, key=lambda matrix: float(np.linalg.eigvalsh(matrix)[-1])
        )
    return Down(
        direction=down,
        sigma_deg=math.degrees(math.sqrt(float(np.linalg.eigvalsh(covariance)[-1]))),
        off_deg=np.rad2deg(angle_between(seen, R @ down)),
        outliers=tuple(np.flatnonzero(weight == 0).tolist()),
    )


def _covariance(calibration: Calibration) -> Array:
    """(2, 2) of the direction of gravity along roll and pitch."""
    sigma = math.radians(calibration.sigma.gravity_deg)
    covariance = np.eye(2) * (sigma if math.isfinite(sigma) else UNKNOWN) ** 2
    names = calibration.parameters
    if ALONG_ROLL in names and ALONG_PITCH in names:
        where = [names.index(ALONG_ROLL), names.index(ALONG_PITCH)]
        known = calibration.covariance[np.ix_(where, where)]
        if np.isfinite(known).all() and (np.diag(known) > 0).all():
            covariance = known
    return covariance + FLOOR**2 * np.eye(2)


def upright_turn(down: Array, up: Array) -> Array:
    """(3, 3) the shortest rotation of the world that takes down (3,) away from up (3,): it leaves
    the heading of whatever it turns as it was."""
    axis = np.cross(down, -up)
    sine, cosine = float(np.linalg.norm(axis)), float(-down @ up)
    if sine < 1e-12:
        # Upside down, every axis in the plane is as good.
        axis, sine = np.eye(3)[int(np.argmin(np.abs(up)))], 1.0
        axis = np.cross(up, axis)
        sine = float(np.linalg.norm(axis))
        return np.eye(3) if cosine > 0 else from_vector(math.pi * axis / sine)
    return from_vector(math.atan2(sine, cosine) * axis / sine)
