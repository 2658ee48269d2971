"""Fitzgibbon's division model: undistorted = distorted / (1 + k rd^2)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

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

    def depth(self, s: Tensor, k: Parameters) -> tuple[Tensor, Tensor | None]:
        ks = k[0] * s
        return 1 + ks.clamp(max=1), ks < 1

    def jet(self, s: Tensor, k: Parameters) -> DepthJet:
        depth, valid = self.depth(s, k)
        slope = k[0].expand_as(s)
        return DepthJet(depth, slope, None, (s,), (torch.ones_like(s),), valid).frozen_outside()

    def radius(self, r: Tensor, z: Tensor, k: Parameters) -> tuple[Tensor, Tensor | None]:
        # k R rho^2 - rho + R = 0 with R = r / z, without dividing by z.
        discriminant = z * z - 4 * k[0] * r * r
        real = discriminant > 0
        root = torch.sqrt(torch.where(real, discriminant, torch.ones_like(discriminant)))
        root = torch.where(real, root, torch.zeros_like(root))
        denominator = z + root
        # Behind the camera both terms of the denominator cancel: use the other form of the root.
        behind = torch.where(k[0] * r < 0, k[0] * r, -torch.ones_like(denominator))
        ahead = torch.where(denominator > 0, denominator, torch.ones_like(denominator))
        rho = torch.where(z > 0, 2 * r / ahead, (z - root) / (2 * behind))
        # A ray within rounding of the edge, where the discriminant is 0, lies on it.
        rounding = 8 * torch.finfo(z.dtype).eps * z * z
        return rho, (discriminant >= -rounding) & ((z > 0) | (k[0] * r < 0))

    def limits(self, k: Parameters) -> Limits:
        ends = k[0] > 0
        k_positive = torch.where(ends, k[0], torch.ones_like(k[0]))
        unbounded_angle = torch.full_like(k[0], math.pi / 2) * (1 + (k[0] < 0))
        return Limits(
            torch.where(ends, k_positive.rsqrt(), torch.full_like(k[0], torch.inf)),
            torch.where(ends, torch.atan(0.5 * k_positive.rsqrt()), unbounded_angle),
        )
