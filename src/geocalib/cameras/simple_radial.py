"""Brown's radial model with one parameter (COLMAP's SIMPLE_RADIAL, OpenCV's k1)."""

from __future__ import annotations

import math

from geocalib.arrays import Array, namespace
from geocalib.cameras.base import Parameters
from geocalib.cameras.tangent_polynomial import TangentPolynomial


class SimpleRadial(TangentPolynomial):
    """d = 1 + k1 x^2; k1 < 0 is barrel distortion."""

    name = "simple_radial"
    parameters: tuple[str, ...] = ("k1",)
    start: tuple[float, ...] = (0.0,)
    bounds: tuple[tuple[float, float], ...] = ((-50.0, 50.0),)

    def tangent_limit(self, k: Parameters) -> Array:
        xp = namespace(k[0])
        (k1,) = k
        ends = k1 < 0
        X = -1 / (3 * xp.where(ends, k1, -1.0))
        return xp.sqrt(xp.where(ends, X, math.inf))
