"""Fitzgibbon's division model: undistorted = distorted / (1 + k rd^2).

With two parameters: undistorted = distorted / (1 + k1 rd^2 + k2 rd^4).
"""

from __future__ import annotations

import math

from geocalib.arrays import Array, eps, inverse_root, namespace, no_gradients
from geocalib.cameras.base import DepthJet, Limits, Parameters
from geocalib.cameras.newton import bracketed_newton, last_step


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
        return 1 + ks.clip(max=1), ks < 1

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


class Division2:
    """The ray of a pixel is (m, 1 + k1 s + k2 s^2), s = |m|^2; k1, k2 < 0 is barrel distortion.

    The domain ends where the ray stops turning away from the axis: at the first root of
    q(s) = 1 - k1 s - 3 k2 s^2. Without one every pixel has a ray, up to 180 degrees.
    """

    name = "division2"
    parameters: tuple[str, ...] = ("k1", "k2")
    start: tuple[float, ...] = (0.0, 0.0)
    bounds: tuple[tuple[float, float], ...] = ((-50.0, 50.0), (-1000.0, 1000.0))
    release: tuple[int, ...] = ()
    wide = False
    unit_centre = True

    def depth(self, s: Array, k: Parameters) -> tuple[Array, Array | None]:
        xp = namespace(s)
        end = _end(k)
        valid = s < end
        return _profile(xp.where(valid, s, end), k), valid

    def jet(self, s: Array, k: Parameters) -> DepthJet:
        xp = namespace(s)
        end = _end(k)
        valid = s < end
        s = xp.where(valid, s, end)
        k1, k2 = k
        return DepthJet(
            depth=_profile(s, k),
            d_s=k1 + 2 * k2 * s,
            d_ss=xp.broadcast_to(2 * k2, s.shape),
            d_k=(s, s * s),
            d_ks=(xp.ones_like(s), 2 * s),
            valid=valid,
        ).frozen_outside()

    def radius(self, r: Array, z: Array, k: Parameters) -> tuple[Array, Array | None]:
        xp = namespace(r)
        # rho is where F = rho Z - R (1 + k1 rho^2 + k2 rho^4) rises through 0, for a unit ray.
        length = xp.hypot(r, z)
        R, Z = r / length, z / length
        end = xp.broadcast_to(xp.sqrt(_end(k)), R.shape)

        def error(rho: Array) -> tuple[Array, Array]:
            s = rho * rho
            return rho * Z - R * _profile(s, k), Z - 2 * R * rho * (k[0] + 2 * k[1] * s)

        with no_gradients():
            # A ray within rounding of the edge, where it hardly turns any more, lies on it.
            rounding = 1 + 8 * eps(z)
            valid = xp.atan2(r, z) <= rounding * self.limits(k).angle
            start = xp.minimum(R / Z.clip(0.1), 0.99 * end)
            rho = bracketed_newton(error, start, end)
        return last_step(error, rho, end), valid

    def limits(self, k: Parameters) -> Limits:
        xp = namespace(k[0])
        s = _end(k)
        ends = xp.isfinite(s)
        finite = xp.where(ends, s, 0.0)
        radius = xp.sqrt(xp.where(ends, s, 1.0))
        turns_back = (k[0] < 0) | (k[1] < 0)
        unbounded_angle = xp.full_like(s, 0.5 * math.pi) * (1 + turns_back)
        angle = xp.atan2(radius, _profile(finite, k))
        return Limits(
            xp.where(ends, radius, math.inf),
            xp.where(ends, angle, unbounded_angle),
        )


def _profile(s: Array, k: Parameters) -> Array:
    return 1 + s * (k[0] + k[1] * s)


def _end(k: Parameters) -> Array:
    """The first positive root s of 1 - k1 s - 3 k2 s^2, infinite without one."""
    xp = namespace(k[0])
    with no_gradients():
        # Written 2 / (k1 + sqrt(k1^2 + 12 k2)), so that it holds at k2 = 0.
        discriminant = k[0] * k[0] + 12 * k[1]
        denominator = k[0] + xp.sqrt(discriminant.clip(0))
        ends = (discriminant >= 0) & (denominator > 0)
        s = 2 / xp.where(ends, denominator, 1.0)
        return xp.where(ends, s, math.inf)
