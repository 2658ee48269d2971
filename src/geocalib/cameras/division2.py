"""The division model with two parameters: undistorted = distorted / (1 + k1 rd^2 + k2 rd^4)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from geocalib.cameras.base import DepthJet, Limits, Parameters
from geocalib.cameras.newton import bracketed_newton, last_step


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

    def depth(self, s: Tensor, k: Parameters) -> tuple[Tensor, Tensor | None]:
        end = _end(k)
        valid = s < end
        return _profile(torch.where(valid, s, end), k), valid

    def jet(self, s: Tensor, k: Parameters) -> DepthJet:
        end = _end(k)
        valid = s < end
        s = torch.where(valid, s, end)
        k1, k2 = k
        return DepthJet(
            depth=_profile(s, k),
            d_s=k1 + 2 * k2 * s,
            d_ss=(2 * k2).expand_as(s),
            d_k=(s, s * s),
            d_ks=(torch.ones_like(s), 2 * s),
            valid=valid,
        ).frozen_outside()

    def radius(self, r: Tensor, z: Tensor, k: Parameters) -> tuple[Tensor, Tensor | None]:
        # rho is where F = rho Z - R (1 + k1 rho^2 + k2 rho^4) rises through 0, for a unit ray.
        length = torch.hypot(r, z)
        R, Z = r / length, z / length
        end = torch.sqrt(_end(k)).expand_as(R)

        def error(rho: Tensor) -> tuple[Tensor, Tensor]:
            s = rho * rho
            return rho * Z - R * _profile(s, k), Z - 2 * R * rho * (k[0] + 2 * k[1] * s)

        with torch.no_grad():
            # A ray within rounding of the edge, where it hardly turns any more, lies on it.
            rounding = 1 + 8 * torch.finfo(z.dtype).eps
            valid = torch.atan2(r, z) <= rounding * self.limits(k).angle
            start = torch.minimum(R / Z.clamp(min=0.1), 0.99 * end)
            rho = bracketed_newton(error, start, end)
        return last_step(error, rho, end), valid

    def limits(self, k: Parameters) -> Limits:
        s = _end(k)
        ends = torch.isfinite(s)
        finite = torch.where(ends, s, torch.zeros_like(s))
        radius = torch.sqrt(torch.where(ends, s, torch.ones_like(s)))
        turns_back = (k[0] < 0) | (k[1] < 0)
        unbounded_angle = torch.full_like(s, 0.5 * math.pi) * (1 + turns_back)
        angle = torch.atan2(radius, _profile(finite, k))
        return Limits(
            torch.where(ends, radius, torch.full_like(s, torch.inf)),
            torch.where(ends, angle, unbounded_angle),
        )


def _profile(s: Tensor, k: Parameters) -> Tensor:
    return 1 + s * (k[0] + k[1] * s)


@torch.no_grad()
def _end(k: Parameters) -> Tensor:
    """The first positive root s of 1 - k1 s - 3 k2 s^2, infinite without one."""
    # Written 2 / (k1 + sqrt(k1^2 + 12 k2)), so that it holds at k2 = 0.
    discriminant = k[0] * k[0] + 12 * k[1]
    denominator = k[0] + torch.sqrt(discriminant.clamp(min=0))
    ends = (discriminant >= 0) & (denominator > 0)
    s = 2 / torch.where(ends, denominator, torch.ones_like(denominator))
    return torch.where(ends, s, torch.full_like(s, torch.inf))
