"""Poses from three matches: PoseLib's solver where it is installed, OpenCV's elsewhere."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from geocalib.errors import ConfigError
from geocalib.localize.rotation import facing, from_vector

Array = npt.NDArray[np.float64]

Poses = tuple[Array, Array]
"""Rotations (K, 3, 3) and translations (K, 3)."""

Solver = Literal["opencv", "poselib"]

LEAST_DEPTH = 0.05
"""How far ahead the unit rays of a sample must be in the frame that faces their mean."""


def choose_solver(name: Solver | None) -> Solver:
    """The solver of that name, or the fastest that is installed."""
    installed = find_spec("poselib") is not None
    if name is None:
        return "poselib" if installed else "opencv"
    if name not in get_args(Solver):
        raise ConfigError(f"unknown solver {name!r}; known: {', '.join(get_args(Solver))}")
    if name == "poselib" and not installed:
        raise ConfigError("poselib is not installed; pip install poselib, or choose opencv")
    return name


def solve_samples(rays: Array, points: Array, solver: Solver) -> Poses:
    """All poses of S samples: unit rays (S, 3, 3) and world points (S, 3, 3), a row each.

    A sample has up to four; one without any (points on a line, say) adds nothing.
    """
    solve = _poselib if solver == "poselib" else _opencv
    R, t = solve(rays, points)
    sound = np.isfinite(R).all((1, 2)) & np.isfinite(t).all(1)
    return R[sound], t[sound]


def _poselib(rays: Array, points: Array) -> Poses:
    poselib = import_module("poselib")
    samples = zip(rays, points, strict=True)
    poses = [pose for sample in samples for pose in poselib.p3p(*sample)]
    R = np.array([pose.R for pose in poses]).reshape(-1, 3, 3)
    return R, np.array([pose.t for pose in poses]).reshape(-1, 3)


def _opencv(rays: Array, points: Array) -> Poses:
    import cv2

    # OpenCV takes points of an image plane: one that faces the three rays, so that those of wide
    # lenses lie ahead of it too.
    mean = rays.sum(1)
    length = np.linalg.norm(mean, axis=-1, keepdims=True)
    turns = facing(mean / np.maximum(length, np.finfo(np.float64).tiny))
    turned = rays @ turns.transpose(0, 2, 1)
    ahead = np.flatnonzero((turned[..., 2] > LEAST_DEPTH).all(1))
    owners: list[int] = []
    vectors: list[npt.ArrayLike] = []
    moves: list[npt.ArrayLike] = []
    identity = np.eye(3)
    for i in ahead:
        plane = turned[i, :, :2] / turned[i, :, 2:]
        count, v, t = cv2.solveP3P(points[i], plane, identity, None, cv2.SOLVEPNP_P3P)
        owners += [int(i)] * count
        vectors += v
        moves += t
    back = turns[owners].transpose(0, 2, 1)
    R = back @ from_vector(np.array(vectors, dtype=np.float64).reshape(-1, 3))
    return R, (back @ np.array(moves, dtype=np.float64).reshape(-1, 3, 1))[..., 0]
