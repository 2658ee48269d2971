"""Brown's radial model with one to four parameters.

COLMAP's SIMPLE_RADIAL and RADIAL have one and two of them, OpenCV's k1, k2, k3. One photo hardly
shows more than two; the longer ones are for priors, for sets of photos and for cameras that are
already known.
"""

from __future__ import annotations

import math

from geocalib.arrays import Array, namespace
from geocalib.cameras import polynomial
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
        denominator = xp.sqrt(discriminant.clip(0)) - 3 * k1
        ends = (discriminant >= 0) & (denominator > 0)
        X = 2 / xp.where(ends, denominator, 1.0)
        return xp.sqrt(xp.where(ends, X, math.inf))


class LongerRadial(TangentPolynomial):
    """d = 1 + k1 x^2 + k2 x^4 + ...: the end of the domain has no formula."""

    def tangent_limit(self, k: Parameters) -> Array:
        return polynomial.first_flat(k)


class Radial3(LongerRadial):
    """d = 1 + k1 x^2 + k2 x^4 + k3 x^6."""

    name = "radial3"
    parameters: tuple[str, ...] = ("k1", "k2", "k3")
    start: tuple[float, ...] = (0.0,) * 3
    bounds: tuple[tuple[float, float], ...] = ((-50.0, 50.0), (-1e3, 1e3), (-2e4, 2e4))


class Radial4(LongerRadial):
    """d = 1 + k1 x^2 + k2 x^4 + k3 x^6 + k4 x^8."""

    name = "radial4"
    parameters: tuple[str, ...] = ("k1", "k2", "k3", "k4")
    start: tuple[float, ...] = (0.0,) * 4
    bounds: tuple[tuple[float, float], ...] = (*Radial3.bounds, (-4e5, 4e5))
    release: tuple[int, ...] = (0, 1)
