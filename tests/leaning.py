"""Reconstructions with a known direction down, for the tests of levelling."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from calibrations import one
from geocalib.arrays import Array
from geocalib.geometry.gravity import move
from geocalib.result.calibration import Calibration
from geocalib.result.uncertainty import Uncertainty

DOWN = np.array([0.36, -0.48, 0.8])
"""In the world of the reconstructions."""


def photos(
    count: int, sigma_deg: tuple[float, float] = (0.0, 0.0), wrong: int = 0, seed: int = 0
) -> tuple[list[Array], list[Calibration]]:
    """Poses of photos that were held more or less upright, and what was found of their gravity,
    with errors of so many degrees along roll and pitch; the first few are wrong altogether."""
    rng = np.random.default_rng(seed)
    from_level, _ = Rotation.align_vectors([DOWN], [[0, 1, 0]])
    rotations, calibrations = [], []
    for number in range(count):
        held = Rotation.from_euler("yxz", rng.normal(size=3) * (100, 15, 8), degrees=True)
        rotation = (from_level * held).as_matrix().T
        gravity = rotation @ DOWN
        error = np.deg2rad(sigma_deg) * rng.normal(size=2)
        if number < wrong:
            error = np.deg2rad(rng.uniform(20, 60, 2))
        calibration = one("pinhole", image=f"photos/{number}.jpg")
        covariance = np.diag([*np.deg2rad(np.maximum(sigma_deg, 1e-3)), 0.01]) ** 2
        seen = move(gravity, error)
        rotations.append(rotation)
        calibrations.append(
            replace(
                calibration,
                gravity=seen / np.linalg.norm(seen),
                covariance=covariance,
                sigma=Uncertainty.of(calibration.cameras, seen, covariance, calibration.parameters),
            )
        )
    return rotations, calibrations
