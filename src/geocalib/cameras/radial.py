"""Brown's radial model with two parameters (COLMAP's RADIAL, OpenCV's k1, k2)."""

from __future__ import annotations

import math

from geocalib.arrays import Array, clip, namespace
from geocalib.cameras.base import Parameters
from geocalib.cameras.tangent_polynomial import TangentPolynomial


class Radial(TangentPolynomial):
    """d = 1 + k1 x^2 + k2 x^4."""

    name = "radial"
    parameters: tuple[str, ...] = ("k1", "k2")
    start: tuple[float, ...] = (0.0, 0.0)
    bounds: tuple[tuple[float, float], ...] = ((-50.0, 50.0), (-1000.0, 1000.0))

    def tangent_limit(self, k: Parameters) -> Array:
        xp = namespace(k[0])
        # The first positive root X of 1 + 3 k1 X + 5 k2 X^2, written 2 / (-b + sqrt(b^2 - 4 a))
        # so that it holds at k2 = 0: the larger denominator is the smaller positive root.
        k1, k2 = k
        discriminant = 9 * k1 * k1 - 20 * k2
        denominator = xp.sqrt(clip(discriminant, 0)) - 3 * k1
        ends = (discriminant >= 0) & (denominator > 0)
        X = 2 / xp.where(ends, denominator, 1.0)
        return xp.sqrt(xp.where(ends, X, math.inf))
