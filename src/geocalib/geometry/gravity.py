"""Gravity on the unit sphere: roll and pitch, tangent planes, quarter turns, rotations."""

from __future__ import annotations

import torch
from torch import Tensor

TINY = 1e-30
"""Far below the rounding of any number of size 1."""

LEAST_COSINE = 0.01
"""Of a pitch at which the roll still means something."""


def from_roll_pitch(roll: Tensor, pitch: Tensor) -> Tensor:
    """(..., 3) gravity of roll and pitch, radians (...)."""
    x = torch.sin(roll) * torch.cos(pitch)
    y = torch.cos(roll) * torch.cos(pitch)
    return torch.stack([x, y, -torch.sin(pitch).expand_as(x)], -1)


def to_roll_pitch(gravity: Tensor) -> tuple[Tensor, Tensor]:
    """Roll and pitch (...), radians, of gravity (..., 3); roll is 0 straight up or down."""
    x, y, z = gravity.unbind(-1)
    return torch.atan2(x, y), -torch.atan2(z, torch.sqrt(x * x + y * y))


def tangent_basis(gravity: Tensor) -> Tensor:
    """(..., 3, 2) orthonormal basis of the tangent plane at gravity (..., 3).

    Its columns are the directions of growing roll and growing pitch.
    """
    x, y, z = gravity.unbind(-1)
    # Straight up and down, where roll has no direction, the offset picks roll 0.
    y = y + TINY
    h = torch.hypot(x, y)
    sin_roll, cos_roll = x / h, y / h
    along_roll = torch.stack([cos_roll, -sin_roll, torch.zeros_like(x)], -1)
    along_pitch = torch.stack([sin_roll * z, cos_roll * z, -h], -1)
    return torch.stack([along_roll, along_pitch], -1)


def move(gravity: Tensor, step: Tensor, basis: Tensor | None = None) -> Tensor:
    """Follow the great circle from gravity (..., 3) along a tangent step (..., 2), radians."""
    basis = tangent_basis(gravity) if basis is None else basis
    direction = (basis @ step.unsqueeze(-1)).squeeze(-1)
    # The offset gives the step 0 a derivative.
    angle = torch.sqrt((step * step).sum(-1, keepdim=True) + TINY)
    sinc, cosine = torch.sin(angle) / angle, torch.cos(angle)
    moved = gravity * cosine + direction * sinc
    length: Tensor = torch.linalg.vector_norm(moved, dim=-1, keepdim=True)
    return moved / length


def turn(gravity: Tensor, step: Tensor) -> Tensor:
    """``move`` along circles of equal pitch and equal roll; the same to first order."""
    roll, pitch = to_roll_pitch(gravity)
    along_roll, along_pitch = step.unbind(-1)
    # Around the zenith and the nadir, circles of equal pitch are small.
    cosine = torch.cos(pitch).clamp(min=LEAST_COSINE)
    return from_roll_pitch(roll + along_roll / cosine, pitch + along_pitch)


def difference(gravity: Tensor, target: Tensor, basis: Tensor) -> Tensor:
    """(..., 2) tangent step that moves gravity to target: the inverse of ``move``."""
    inside = (basis.transpose(-1, -2) @ target.unsqueeze(-1)).squeeze(-1)
    sine2 = (inside * inside).sum(-1, keepdim=True)
    cosine = (gravity * target).sum(-1, keepdim=True)
    small = sine2 < 1e-12
    sine = torch.sqrt(torch.where(small, torch.ones_like(sine2), sine2))
    scale = torch.where(small, torch.ones_like(sine), torch.atan2(sine, cosine) / sine)
    return inside * scale


def angle_between(a: Tensor, b: Tensor) -> Tensor:
    """Angle (...), radians, between vectors (..., 3); exact for small angles."""
    return torch.atan2(torch.linalg.vector_norm(torch.linalg.cross(a, b), dim=-1), (a * b).sum(-1))


def rotate90(gravity: Tensor, turns: int) -> Tensor:
    """Gravity (..., 3) in the frame of the image turned counter-clockwise by quarter turns."""
    x, y, z = gravity.unbind(-1)
    for _ in range(turns % 4):
        x, y = y, -x
    return torch.stack([x, y, z], -1)


def world_from_camera(gravity: Tensor, yaw: Tensor | None = None) -> Tensor:
    """(..., 3, 3) rotation from the camera frame to a level frame (x right, y down, z ahead).

    A yaw (...), radians, turns the camera to the right; without it the camera looks straight
    ahead. Maps gravity to (0, 1, 0).
    """
    basis = tangent_basis(gravity)
    # The level frame's axes in the camera frame: right is the roll direction, ahead completes it.
    right, down = basis[..., 0], gravity
    ahead = torch.linalg.cross(right, down)
    rotation = torch.stack([right, down, ahead], -2)
    if yaw is None:
        return rotation
    zero, one = torch.zeros_like(yaw), torch.ones_like(yaw)
    cosine, sine = torch.cos(yaw), torch.sin(yaw)
    turn = torch.stack([cosine, zero, sine, zero, one, zero, -sine, zero, cosine], -1)
    return turn.reshape(*yaw.shape, 3, 3) @ rotation
