"""Enhanced unified camera model (Khomutenko et al. 2016)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from geocalib.cameras.base import DepthJet, Limits, Parameters


class Eucm:
    """m = (X, Y) / (alpha d + (1 - alpha) Z), d = sqrt(beta (X^2 + Y^2) + Z^2).

    Unprojection is closed form: depth = (1 - beta alpha^2 s) / (alpha w + 1 - alpha) with
    w = sqrt(1 - (2 alpha - 1) beta s); for alpha > 1/2 the domain ends where w = 0.
    """

    name = "eucm"
    parameters: tuple[str, ...] = ("alpha", "beta")
    start: tuple[float, ...] = (0.5, 1.0)
    bounds: tuple[tuple[float, float], ...] = ((0.0, 1.0), (1e-2, 1e2))
    wide = True

    def depth(self, s: Tensor, k: Parameters) -> tuple[Tensor, Tensor | None]:
        alpha, beta = k
        under_root = 1 - (2 * alpha - 1) * beta * s
        valid = under_root > 0
        w = torch.sqrt(torch.where(valid, under_root, torch.ones_like(under_root)))
        return (1 - beta * alpha * alpha * s) / (alpha * w + 1 - alpha), valid

    def jet(self, s: Tensor, k: Parameters) -> DepthJet:
        alpha, beta = k
        a2 = alpha * alpha
        curvature = (2 * alpha - 1) * beta
        under_root = 1 - curvature * s
        valid = under_root > 0
        s = torch.where(valid, s, torch.zeros_like(s))
        w = torch.sqrt(torch.where(valid, under_root, torch.ones_like(under_root)))
        half = 0.5 / w
        w1 = -curvature * half
        # depth = z = numerator / D; differentiate z D = numerator as often as needed.
        D = alpha * w + 1 - alpha
        z = (1 - beta * a2 * s) / D
        D1 = alpha * w1
        D2 = -2 * alpha * w1 * w1 * half
        z1 = (-beta * a2 - z * D1) / D
        z2 = -(2 * z1 * D1 + z * D2) / D

        def derivative(
            numerator: Tensor, numerator1: Tensor, w_k: Tensor, w1_k: Tensor, own: Tensor | float
        ) -> tuple[Tensor, Tensor]:
            """(z_k, z1_k) of a parameter; ``own`` is 1 for alpha, which D also holds bare."""
            D_k = alpha * w_k + own * (w - 1)
            D1_k = alpha * w1_k + own * w1
            z_k = (numerator - z * D_k) / D
            return z_k, (numerator1 - z_k * D1 - z * D1_k - z1 * D_k) / D

        w_alpha = -2 * beta * s * half
        w1_alpha = -2 * half * (beta + w1 * w_alpha)
        z_alpha, z1_alpha = derivative(
            -2 * beta * alpha * s, -2 * beta * alpha, w_alpha, w1_alpha, 1.0
        )
        w_beta = -(2 * alpha - 1) * s * half
        w1_beta = -2 * half * (alpha - 0.5 + w1 * w_beta)
        z_beta, z1_beta = derivative(-a2 * s, -a2, w_beta, w1_beta, 0.0)
        return DepthJet(z, z1, z2, (z_alpha, z_beta), (z1_alpha, z1_beta), valid)

    def radius(self, r: Tensor, z: Tensor, k: Parameters) -> tuple[Tensor, Tensor | None]:
        alpha, beta = k
        d = torch.sqrt(beta * r * r + z * z)
        valid = z > -_horizon(alpha) * d
        denominator = alpha * d + (1 - alpha) * z
        return r / torch.where(valid, denominator, torch.ones_like(denominator)), valid

    def limits(self, k: Parameters) -> Limits:
        alpha, beta = k
        curvature = (2 * alpha - 1) * beta
        ends = curvature > 0
        radius = torch.rsqrt(torch.where(ends, curvature, torch.ones_like(curvature)))
        edge = _horizon(alpha)
        # cos / sqrt(beta sin^2 + cos^2) = -edge
        angle = math.pi - torch.atan2(
            torch.sqrt((1 - edge * edge).clamp(min=0)), edge * torch.sqrt(beta)
        )
        return Limits(torch.where(ends, radius, torch.full_like(radius, torch.inf)), angle)


def _horizon(alpha: Tensor) -> Tensor:
    """Rays with Z <= -horizon d have no pixel."""
    return torch.minimum(alpha, 1 - alpha) / torch.maximum(alpha, 1 - alpha)
