"""Brown's radial model with three and with four parameters.

The first is OpenCV's k1, k2, k3. Of a single photo they tell little apart; they are for priors, for
sets of photos and for cameras that are already known.
"""

from __future__ import annotations

from geocalib.arrays import Array
from geocalib.cameras import polynomial
from geocalib.cameras.base import Parameters
from geocalib.cameras.tangent_polynomial import TangentPolynomial


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
