"""Rotations as vectors, matrices and quaternions (w, x, y, z)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def cross_matrix(vector: Array) -> Array:
    """(..., 3, 3) matrix of the cross product with vectors (..., 3) from the left."""
    x, y, z = np.moveaxis(vector, -1, 0)
    zero = np.zeros_like(x)
    rows = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1)
    return rows.reshape(*vector.shape[:-1], 3, 3)


def from_vector(vector: Array) -> Array:
    """(..., 3, 3) rotation about vectors (..., 3) by their length, radians."""
    angle = np.linalg.norm(vector, axis=-1)[..., None, None]
    W = cross_matrix(vector)
    half = np.sinc(0.5 * angle / np.pi)
    rotation: Array = np.eye(3) + np.sinc(angle / np.pi) * W + 0.5 * half * half * (W @ W)
    return rotation


def has_direction(vector: Array) -> bool:
    """Whether its length is one that can be known in floats: squares of the largest are not."""
    largest = float(np.abs(vector).max())
    return 1e-100 < largest < 1e100


def from_quaternion(quaternion: Array) -> Array:
    """(..., 3, 3) rotation of quaternions (..., 4) of any length but 0."""
    q = quaternion / np.linalg.norm(quaternion, axis=-1, keepdims=True)
    W = cross_matrix(q[..., 1:])
    rotation: Array = np.eye(3) + 2 * (q[..., :1, None] * W + W @ W)
    return rotation


def to_quaternion(rotation: Array) -> Array:
    """(4,) unit quaternion, w >= 0, of a rotation (3, 3)."""
    R = rotation
    # q q' is linear in R; its largest column is a safe multiple of q whatever the rotation.
    antisymmetric = [R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]
    outer = np.empty((4, 4))
    outer[0, 0] = 1 + np.trace(R)
    outer[0, 1:] = outer[1:, 0] = antisymmetric
    outer[1:, 1:] = R + R.T + (1 - np.trace(R)) * np.eye(3)
    column: Array = outer[:, np.argmax(np.diag(outer))]
    unit: Array = column / np.linalg.norm(column)
    return -unit if unit[0] < 0 else unit


def facing(direction: Array) -> Array:
    """(..., 3, 3) rotation that turns unit directions (..., 3) onto the z axis."""
    x, y, z = np.moveaxis(direction, -1, 0)
    # The short way, or by way of -z for what points backwards, where the short way is unclear.
    back = z < 0
    sign = np.where(back, -1.0, 1.0)
    W = cross_matrix(np.stack([sign * y, -sign * x, np.zeros_like(x)], -1))
    short = np.eye(3) + W + (W @ W) / (1 + sign * z)[..., None, None]
    flip = np.where(back[..., None], [1.0, -1.0, -1.0], 1.0)
    rotation: Array = flip[..., None] * short
    return rotation
