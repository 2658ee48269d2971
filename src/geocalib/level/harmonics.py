"""Spherical harmonics of Gaussian splats, turned.

A colour seen from the direction d is c0 + sum of c_lm Y_lm(d), with the real harmonics of degree 1
to 3. In a world that was turned by R it must be seen from R d: each degree is a space of its own,
so its coefficients are multiplied by a matrix that is found by looking at enough directions.
"""

from __future__ import annotations

import math

import numpy as np

from geocalib.arrays import Array

MOST = 3
"""The highest degree."""


def basis(degree: int, directions: Array) -> Array:
    """(N, 2 degree + 1) the harmonics of a degree of unit directions (N, 3), in the order and with
    the signs that splats have them."""
    x, y, z = directions.T
    if degree == 1:
        rows = math.sqrt(3 / (4 * math.pi)) * np.array([-y, z, -x])
    elif degree == 2:
        a, b = math.sqrt(15 / (4 * math.pi)), math.sqrt(5 / (16 * math.pi))
        rows = np.array(
            [a * x * y, -a * y * z, b * (3 * z * z - 1), -a * x * z, 0.5 * a * (x * x - y * y)]
        )
    elif degree == 3:
        a, b = math.sqrt(35 / (32 * math.pi)), math.sqrt(105 / (4 * math.pi))
        c, d = math.sqrt(21 / (32 * math.pi)), math.sqrt(7 / (16 * math.pi))
        rows = np.array(
            [
                -a * y * (3 * x * x - y * y),
                b * x * y * z,
                -c * y * (5 * z * z - 1),
                d * z * (5 * z * z - 3),
                -c * x * (5 * z * z - 1),
                0.5 * b * z * (x * x - y * y),
                -a * x * (x * x - 3 * y * y),
            ]
        )
    else:
        raise ValueError(f"degree {degree}")
    return rows.T


def turn_matrix(degree: int, rotation: Array) -> Array:
    """(K, K) what the coefficients (K,) of a degree become when the world is turned by a rotation
    (3, 3)."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(64, 3))
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    # The turned colour at d is the old one at R' d.
    turned: Array = np.linalg.lstsq(
        basis(degree, directions), basis(degree, directions @ rotation), rcond=None
    )[0]
    return turned
