"""The polynomial of PanoTools, Hugin and Lensfun, with even and odd powers, on a rectilinear lens.

Its odd powers have no derivative on the axis in s, which perspective fields need. So they are those
of w, which is x but for a rounded tip, and misses nobody's picture: with other k1, k2, k3 it is the
same polynomial to k1 f TIP^2 / 2, a ten-thousandth of a pixel of an ordinary lens.
"""

from __future__ import annotations

from collections.abc import Iterator

from geocalib.arrays import Array, as_array, double, namespace, no_gradients, quiet
from geocalib.cameras import polynomial
from geocalib.cameras.base import Parameters
from geocalib.cameras.newton import bracketed_newton, last_step
from geocalib.cameras.tangent_polynomial import TangentPolynomial

TIP = 1e-3
"""Tangent of the angle to the axis below which the tip is round: some pixels."""


class Ptlens(TangentPolynomial):
    """d = 1 + k1 w + k2 w^2 + k3 w^3, w = sqrt(x^2 + TIP^2) - TIP."""

    name = "ptlens"
    parameters: tuple[str, ...] = ("k1", "k2", "k3")
    start: tuple[float, ...] = (0.0,) * 3
    bounds: tuple[tuple[float, float], ...] = ((-20.0, 20.0), (-4e3, 4e3), (-3e5, 3e5))
    release: tuple[int, ...] = (1,)

    def value(self, X: Array, k: Parameters) -> Array:
        return polynomial.value(rounded(X), k)

    def factor(self, X: Array, k: Parameters) -> polynomial.Factor:
        w = rounded(X)
        p = polynomial.factor(w, k)
        assert p.d2 is not None
        w1 = 0.5 / (w + TIP)
        w2 = -2 * w1**3
        d1, d2 = p.d1 * w1, p.d2 * w1 * w1 + p.d1 * w2
        return polynomial.Factor(p.d, d1, d2, p.d + 2 * X * d1, 3 * d1 + 2 * X * d2)

    def powers(self, X: Array, count: int) -> Iterator[tuple[Array, Array]]:
        w = rounded(X)
        w1 = 0.5 / (w + TIP)
        for power, slope in super().powers(w, count):
            yield power, slope * w1

    @quiet
    def tangent_limit(self, k: Parameters) -> Array:
        # With X = w (w + 2 TIP) the slope of x d, times 1 + w / TIP, is a polynomial in w.
        k1, k2, k3 = map(double, k)
        slope = [1 / TIP + 3 * k1, 2 * k1 / TIP + 5 * k2, 3 * k2 / TIP + 7 * k3, 4 * k3 / TIP]
        with no_gradients():
            w = 1 / polynomial.first_root_inverse(slope)
            return as_array(namespace(w).sqrt(w * (w + 2 * TIP)), k[0])

    def undistort(self, s: Array, k: Parameters) -> tuple[Array, Array]:
        xp = namespace(s)
        end = self.tangent_limit(k)
        rho, valid = polynomial.held(s, self.limits(k).radius)

        def error(x: Array) -> tuple[Array, Array]:
            X = x * x
            p = self.factor(X, k)
            return x * p.d - rho, p.e

        with no_gradients():
            x = bracketed_newton(error, xp.minimum(rho, 0.99 * end), end)
        return last_step(error, x, end), valid


def rounded(X: Array) -> Array:
    """w of X = x^2."""
    return X / (namespace(X).sqrt(X + TIP * TIP) + TIP)
