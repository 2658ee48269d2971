"""Fitzgibbon's division model: undistorted = distorted / (1 + k rd^2)."""

from __future__ import annotations

import math

from geocalib.arrays import Array, clip, eps, inverse_root, namespace
from geocalib.cameras.base import DepthJet, Limits, Parameters


class Division:
    """The ray of a pixel is (m, 1 + k |m|^2) in closed form; k < 0 is barrel distortion.

    With k <= 0 every pixel has a ray, beyond 90 degrees where |m|^2 > -1/k. With k > 0 the
    domain ends at |m| = 1 / sqrt(k), where the ray stops turning away from the axis.
    """

    name = "division"
    parameters: tuple[str, ...] = ("k",)
    start: tuple[float, ...] = (0.0,)
    bounds: tuple[tuple[float, float], ...] = ((-50.0, 50.0),)
    release: tuple[int, ...] = ()
    wide = False
    unit_centre = True

    def depth(self, s: Array, k: Parameters) -> tuple[Array, Array | None]:
        ks = k[0] * s
        return 1 + clip(ks, high=1), ks < 1

    def jet(self, s: Array, k: Parameters) -> DepthJet:
        xp = namespace(s)
        depth, valid = self.depth(s, k)
        one = xp.ones_like(s)
        return DepthJet(depth, k[0] * one, None, (s,), (one,), valid).frozen_outside()

    def radius(self, r: Array, z: Array, k: Parameters) -> tuple[Array, Array | None]:
        xp = namespace(r)
        # k R rho^2 - rho + R = 0 with R = r / z, without dividing by z.
        discriminant = z * z - 4 * k[0] * r * r
        real = discriminant > 0
        root = xp.sqrt(xp.where(real, discriminant, 1.0))
        root = xp.where(real, root, 0.0)
        denominator = z + root
        # Behind the camera both terms of the denominator cancel: use the other form of the root.
        behind = xp.where(k[0] * r < 0, k[0] * r, -1.0)
        ahead = xp.where(denominator > 0, denominator, 1.0)
        rho = xp.where(z > 0, 2 * r / ahead, (z - root) / (2 * behind))
        # A ray within rounding of the edge, where the discriminant is 0, lies on it.
        rounding = 8 * eps(z) * z * z
        return rho, (discriminant >= -rounding) & ((z > 0) | (k[0] * r < 0))

    def limits(self, k: Parameters) -> Limits:
        xp = namespace(k[0])
        ends = k[0] > 0
        k_positive = xp.where(ends, k[0], 1.0)
        unbounded_angle = xp.full_like(k[0], math.pi / 2) * (1 + (k[0] < 0))
        return Limits(
            xp.where(ends, inverse_root(k_positive), math.inf),
            xp.where(ends, xp.atan(0.5 * inverse_root(k_positive)), unbounded_angle),
        )
