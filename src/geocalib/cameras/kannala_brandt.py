"""Kannala-Brandt fisheye (COLMAP's OPENCV_FISHEYE, OpenCV's fisheye module)."""

from __future__ import annotations

import math

from geocalib.arrays import Array, namespace
from geocalib.cameras import polynomial
from geocalib.cameras.base import DepthJet, Limits, Parameters

SERIES_BELOW = 1.0
"""Below this theta^2 the derivatives of theta cot(theta) come from its power series."""


def _cotangent_series(terms: int = 18) -> tuple[float, ...]:
    """Coefficients in theta^2 of theta cot(theta), from its differential equation."""
    c = [1.0]
    for n in range(1, terms):
        inner = sum(c[i] * c[n - i] for i in range(1, n))
        c.append(-(inner + (n == 1)) / (2 * n + 1))
    return tuple(c)


SERIES = _cotangent_series()


class KannalaBrandt:
    """|m| = theta d(theta^2), d = 1 + k1 theta^2 + ... + k4 theta^8; theta is the ray's angle.

    The depth profile is |m| cot(theta). The domain ends at theta = pi, or earlier where the
    polynomial stops growing.
    """

    name = "kannala_brandt"
    parameters: tuple[str, ...] = ("k1", "k2", "k3", "k4")
    start: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    bounds: tuple[tuple[float, float], ...] = ((-2.0, 2.0),) * 4
    release: tuple[int, ...] = (0, 1)
    wide = True
    unit_centre = True

    def angle_limit(self, k: Parameters) -> Array:
        """Largest theta: the first zero of the slope, or pi."""
        return polynomial.first_flat(k).clip(0, math.pi)

    def limits(self, k: Parameters) -> Limits:
        end = self.angle_limit(k)
        return Limits(end * polynomial.value(end * end, k), end)

    def undistort(self, s: Array, k: Parameters) -> tuple[Array, Array]:
        """theta at squared radii s (held at the domain's end outside it), and validity."""
        limits = self.limits(k)
        return polynomial.invert_squared(s, k, limits.radius, limits.angle)

    def depth(self, s: Array, k: Parameters) -> tuple[Array, Array | None]:
        theta, valid = self.undistort(s, k)
        return polynomial.value(theta * theta, k) * _cotangent(theta), valid

    def jet(self, s: Array, k: Parameters) -> DepthJet:
        xp = namespace(s)
        theta, valid = self.undistort(s, k)
        # With T = theta^2: depth = d(T) C(T), C = theta cot(theta), and s = T d^2, ds/dT = d e.
        T = theta * theta
        p = polynomial.factor(T, k)
        C, C1, C2 = cotangent_jet(theta)
        de = p.d * p.e
        z1 = p.d1 * C + p.d * C1
        assert p.d2 is not None
        z2 = p.d2 * C + 2 * p.d1 * C1 + p.d * C2
        d_s = z1 / de
        d_ss = (z2 / de - d_s * (p.d1 / p.d + p.e1 / p.e)) / de
        # At fixed s, dT/dk_i = -2 T^(i+1) / e.
        shift = 2 * T * z1 / p.e
        shift_slope = (2 * z1 + 2 * T * z2 - shift * p.e1) / p.e
        d_k, d_ks = [], []
        power, power_slope = T, xp.ones_like(T)
        for i in range(len(k)):
            d_k.append(power * (C - shift))
            d_ks.append((power_slope * (C - shift) + power * (C1 - shift_slope)) / de)
            power, power_slope = power * T, (i + 2) * power
        return DepthJet(p.d * C, d_s, d_ss, tuple(d_k), tuple(d_ks), valid).frozen_outside()

    def radius(self, r: Array, z: Array, k: Parameters) -> tuple[Array, Array | None]:
        xp = namespace(r)
        theta = xp.atan2(r, z)
        return theta * polynomial.value(theta * theta, k), theta <= self.angle_limit(k)


def _cotangent(theta: Array) -> Array:
    """theta cot(theta), 1 at 0."""
    xp = namespace(theta)
    return xp.cos(theta) / xp.sinc(theta / math.pi)


def cotangent_jet(theta: Array) -> tuple[Array, Array, Array]:
    """C = theta cot(theta) and its first two derivatives in T = theta^2."""
    xp = namespace(theta)
    T = theta * theta
    C = _cotangent(theta)
    # 2 T C' = C - C^2 - T, and once more; both cancel near 0.
    small = T < SERIES_BELOW
    far = xp.where(small, 1.0, T)
    C1 = (C - C * C - far) / (2 * far)
    C2 = -(1 + C1 * (1 + 2 * C)) / (2 * far)
    near = xp.where(small, T, 0.0)
    S1, S2 = xp.zeros_like(T), xp.zeros_like(T)
    for n in range(len(SERIES) - 1, 0, -1):
        if n > 1:
            S2 = S2 * near + n * (n - 1) * SERIES[n]
        S1 = S1 * near + n * SERIES[n]
    return C, xp.where(small, S1, C1), xp.where(small, S2, C2)
