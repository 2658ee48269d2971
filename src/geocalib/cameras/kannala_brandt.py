"""Kannala-Brandt fisheye (COLMAP's OPENCV_FISHEYE, OpenCV's fisheye module)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from geocalib.cameras import polynomial
from geocalib.cameras.base import DepthJet, Limits, Parameters

SERIES_BELOW = 1.0
"""Below this theta^2 the derivatives of theta cot(theta) come from its power series."""

SCAN_STEPS = 256


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

    def angle_limit(self, k: Parameters) -> Tensor:
        """Largest theta: the first zero of the slope, found by scanning, then bisecting."""
        with torch.no_grad():
            theta = torch.linspace(0, math.pi, SCAN_STEPS, dtype=k[0].dtype, device=k[0].device)
            columns = [coefficient.unsqueeze(-1) for coefficient in k]
            falls = polynomial.slope(theta * theta, columns) <= 0
            first = falls.to(torch.uint8).argmax(-1)
            ends = falls.any(-1)
            end = torch.full_like(first, math.pi, dtype=k[0].dtype)
            if bool(ends.any()):
                low, high = theta[(first - 1).clamp(min=0)], theta[first]
                for _ in range(54):
                    middle = 0.5 * (low + high)
                    grows = polynomial.slope(middle * middle, k) > 0
                    low = torch.where(grows, middle, low)
                    high = torch.where(grows, high, middle)
                end = torch.where(ends, low, end)
            return end

    def limits(self, k: Parameters) -> Limits:
        end = self.angle_limit(k)
        return Limits(end * polynomial.value(end * end, k), end)

    def undistort(self, s: Tensor, k: Parameters) -> tuple[Tensor, Tensor]:
        """theta at squared radii s (held at the domain's end outside it), and validity."""
        limits = self.limits(k)
        return polynomial.invert_squared(s, k, limits.radius, limits.angle)

    def depth(self, s: Tensor, k: Parameters) -> tuple[Tensor, Tensor | None]:
        theta, valid = self.undistort(s, k)
        return polynomial.value(theta * theta, k) * _cotangent(theta), valid

    def jet(self, s: Tensor, k: Parameters) -> DepthJet:
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
        power, power_slope = T, torch.ones_like(T)
        for i in range(len(k)):
            d_k.append(power * (C - shift))
            d_ks.append((power_slope * (C - shift) + power * (C1 - shift_slope)) / de)
            power, power_slope = power * T, (i + 2) * power
        return DepthJet(p.d * C, d_s, d_ss, tuple(d_k), tuple(d_ks), valid).frozen_outside()

    def radius(self, r: Tensor, z: Tensor, k: Parameters) -> tuple[Tensor, Tensor | None]:
        theta = torch.atan2(r, z)
        return theta * polynomial.value(theta * theta, k), theta <= self.angle_limit(k)


def _cotangent(theta: Tensor) -> Tensor:
    """theta cot(theta), 1 at 0."""
    return torch.cos(theta) / torch.sinc(theta / math.pi)


def cotangent_jet(theta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """C = theta cot(theta) and its first two derivatives in T = theta^2."""
    T = theta * theta
    C = _cotangent(theta)
    # 2 T C' = C - C^2 - T, and once more; both cancel near 0.
    small = T < SERIES_BELOW
    far = torch.where(small, torch.ones_like(T), T)
    C1 = (C - C * C - far) / (2 * far)
    C2 = -(1 + C1 * (1 + 2 * C)) / (2 * far)
    near = torch.where(small, T, torch.zeros_like(T))
    S1, S2 = torch.zeros_like(T), torch.zeros_like(T)
    for n in range(len(SERIES) - 1, 0, -1):
        if n > 1:
            S2 = S2 * near + n * (n - 1) * SERIES[n]
        S1 = S1 * near + n * SERIES[n]
    return C, torch.where(small, S1, C1), torch.where(small, S2, C2)
