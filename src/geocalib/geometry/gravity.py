"""Gravity on the unit sphere: roll and pitch, tangent planes, quarter turns, rotations."""

from __future__ import annotations

import numpy as np

from geocalib.arrays import NUMPY, Array, namespace

TINY = 1e-30
"""Far below the rounding of any number of size 1."""

LEAST_COSINE = 0.01
"""Least cosine of a pitch at which the roll is defined."""


def from_roll_pitch(roll: Array, pitch: Array) -> Array:
    """(..., 3) gravity of roll and pitch, radians (...)."""
    xp = namespace(roll)
    x = xp.sin(roll) * xp.cos(pitch)
    y = xp.cos(roll) * xp.cos(pitch)
    return xp.stack([x, y, xp.broadcast_to(-xp.sin(pitch), x.shape)], axis=-1)


def to_roll_pitch(gravity: Array) -> tuple[Array, Array]:
    """Roll and pitch (...), radians, of gravity (..., 3); roll is 0 straight up or down."""
    xp = namespace(gravity)
    x, y, z = gravity[..., 0], gravity[..., 1], gravity[..., 2]
    return xp.atan2(x, y), -xp.atan2(z, xp.sqrt(x * x + y * y))


def tangent_basis(gravity: Array) -> Array:
    """(..., 3, 2) orthonormal basis of the tangent plane at gravity (..., 3).

    Its columns are the directions of growing roll and growing pitch.
    """
    xp = namespace(gravity)
    x, y, z = gravity[..., 0], gravity[..., 1], gravity[..., 2]
    # Straight up and down, where roll has no direction, the offset picks roll 0.
    y = y + TINY
    h = xp.hypot(x, y)
    sin_roll, cos_roll = x / h, y / h
    # Row by row: along roll, along pitch.
    entries = [cos_roll, sin_roll * z, -sin_roll, cos_roll * z, xp.zeros_like(x), -h]
    if not isinstance(x, NUMPY):
        return xp.stack(entries, axis=-1).reshape(*x.shape, 3, 2)
    # A third of the time of NumPy's own function, where arrays are small.
    basis = np.empty((*x.shape, 6), x.dtype)
    for i, entry in enumerate(entries):
        basis[..., i] = entry
    return basis.reshape(*x.shape, 3, 2)


def move(gravity: Array, step: Array, basis: Array | None = None) -> Array:
    """Follow the great circle from gravity (..., 3) along a tangent step (..., 2), radians."""
    xp = namespace(gravity)
    basis = tangent_basis(gravity) if basis is None else basis
    direction = (basis @ step[..., None])[..., 0]
    # The offset gives the step 0 a derivative.
    angle = xp.sqrt((step * step).sum(-1)[..., None] + TINY)
    sinc, cosine = xp.sin(angle) / angle, xp.cos(angle)
    moved = gravity * cosine + direction * sinc
    return moved / xp.sqrt((moved * moved).sum(-1)[..., None])


def turn(gravity: Array, step: Array) -> Array:
    """``move`` along circles of equal pitch and equal roll; the same to first order."""
    roll, pitch = to_roll_pitch(gravity)
    along_roll, along_pitch = step[..., 0], step[..., 1]
    # Around the zenith and the nadir, circles of equal pitch are small.
    cosine = namespace(pitch).cos(pitch).clip(LEAST_COSINE)
    return from_roll_pitch(roll + along_roll / cosine, pitch + along_pitch)


def difference(gravity: Array, target: Array, basis: Array) -> Array:
    """(..., 2) tangent step that moves gravity to target: the inverse of ``move``."""
    xp = namespace(gravity)
    inside = (basis.mT @ target[..., None])[..., 0]
    sine2 = (inside * inside).sum(-1)[..., None]
    cosine = (gravity * target).sum(-1)[..., None]
    small = sine2 < 1e-12
    sine = xp.sqrt(xp.where(small, 1.0, sine2))
    scale = xp.where(small, 1.0, xp.atan2(sine, cosine) / sine)
    return inside * scale


def angle_between(a: Array, b: Array) -> Array:
    """Angle (...), radians, between vectors (..., 3); exact for small angles."""
    xp = namespace(a)
    return xp.atan2(xp.linalg.vector_norm(xp.linalg.cross(a, b), axis=-1), (a * b).sum(-1))


def rotate90(gravity: Array, turns: int) -> Array:
    """Gravity (..., 3) in the frame of the image turned counter-clockwise by quarter turns."""
    xp = namespace(gravity)
    x, y, z = gravity[..., 0], gravity[..., 1], gravity[..., 2]
    for _ in range(turns % 4):
        x, y = y, -x
    return xp.stack([x, y, z], axis=-1)


def world_from_camera(gravity: Array, yaw: Array | None = None) -> Array:
    """(..., 3, 3) rotation from the camera frame to a level frame (x right, y down, z ahead).

    A yaw (...), radians, turns the camera to the right; without it the camera looks straight
    ahead. Maps gravity to (0, 1, 0).
    """
    xp = namespace(gravity)
    basis = tangent_basis(gravity)
    # The level frame's axes in the camera frame: right is the roll direction, ahead completes it.
    right, down = basis[..., 0], gravity
    ahead = xp.linalg.cross(right, down)
    rotation = xp.stack([right, down, ahead], axis=-2)
    if yaw is None:
        return rotation
    zero, one = xp.zeros_like(yaw), xp.ones_like(yaw)
    cosine, sine = xp.cos(yaw), xp.sin(yaw)
    turn = xp.stack([cosine, zero, sine, zero, one, zero, -sine, zero, cosine], axis=-1)
    return turn.reshape(*yaw.shape, 3, 3) @ rotation
