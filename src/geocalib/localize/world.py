"""The direction down in a model, from the gravity of its own photos."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from geocalib.errors import PriorError

Array = npt.NDArray[np.float64]

ROUNDS = 50

NEAR = 1e-3
"""Radians: photos nearer to the answer than this weigh alike."""


def world_gravity(rotations: npt.ArrayLike, gravities: npt.ArrayLike) -> Array:
    """(3,) unit gravity in the world, from poses (M, 3, 3) and gravity (M, 3) in each camera.

    rotations turn from the world to the camera. The answer is the direction with the least sum of
    distances to what the photos say, which a minority of wrong ones hardly moves.
    """
    R = np.asarray(rotations, dtype=np.float64).reshape(-1, 3, 3)
    seen = np.asarray(gravities, dtype=np.float64).reshape(-1, 3)
    if not len(R) or len(R) != len(seen):
        raise PriorError(
            f"gravity in the world needs photos with a pose and a gravity, got {len(R)} poses "
            f"and {len(seen)} gravities"
        )
    directions = (R.transpose(0, 2, 1) @ seen[..., None])[..., 0]
    directions = directions / np.linalg.norm(directions, axis=-1, keepdims=True)
    down: Array = directions.mean(0)
    for _ in range(ROUNDS):
        weight = 1 / np.maximum(np.linalg.norm(directions - down, axis=-1), NEAR)
        down = weight @ directions / weight.sum()
        length = np.linalg.norm(down)
        if length < NEAR:
            raise PriorError("the photos contradict each other on which way is down")
        down = down / length
    return down
