"""Enhanced unified camera model (Khomutenko et al. 2016)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from geocalib.cameras.base import DepthJet, Limits, Parameters

EDGE = 1e-5
"""Where w^2 is held outside the domain, which ends at 0."""


class Eucm:
    """m = (X, Y) / (alpha d + (1 - alpha) Z), d = sqrt(beta (X^2 + Y^2) + Z^2).

    Unprojection is closed form: depth = (1 - beta alpha^2 s) / (alpha w + 1 - alpha) with
    w = sqrt(1 - (2 alpha - 1) beta s); for alpha > 1/2 the domain ends where w = 0.
    """

    name = "eucm"
    parameters: tuple[str, ...] = ("alpha", "beta")
    start: tuple[float, ...] = (0.5, 1.0)
    bounds: tuple[tuple[float, float], ...] = ((0.0, 1.0), (1e-2, 1e2))
    release: tuple[int, ...] = (0, 1)
    wide = True
    unit_centre = True

    def depth(self, s: Tensor, k: Parameters) -> tuple[Tensor, Tensor | None]:
        alpha, beta = k
        s, w, valid = root(s, (2 * alpha - 1) * beta)
        return (1 - beta * alpha * alpha * s) / (alpha * w + 1 - alpha), valid

    def jet(self, s: Tensor, k: Parameters) -> DepthJet:
        alpha, beta = k
        a2 = alpha * alpha
        curvature = (2 * alpha - 1) * beta
        s, w, valid = root(s, curvature)
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
        return DepthJet(z, z1, z2, (z_alpha, z_beta), (z1_alpha, z1_beta), valid).frozen_outside()

    def radius(self, r: Tensor, z: Tensor, k: Parameters) -> tuple[Tensor, Tensor | None]:
        alpha, beta = k
        d = torch.sqrt(beta * r * r + z * z)
        # For z < 0 the denominator's terms cancel, and so does z > -edge d: use their conjugates.
        edge, complement = _edge(alpha)
        beta_r2, z2 = beta * r * r, z * z
        valid = (z > 0) | (complement * z2 < edge * edge * beta_r2)
        denominator = torch.where(
            z < 0,
            (alpha * alpha * beta_r2 + (2 * alpha - 1) * z2) / (alpha * d + (1 - alpha) * z.abs()),
            alpha * d + (1 - alpha) * z,
        )
        return r / torch.where(valid, denominator, torch.ones_like(denominator)), valid

    def limits(self, k: Parameters) -> Limits:
        alpha, beta = k
        curvature = (2 * alpha - 1) * beta
        ends = curvature > 0
        radius = torch.rsqrt(torch.where(ends, curvature, torch.ones_like(curvature)))
        edge, complement = _edge(alpha)
        # cos / sqrt(beta sin^2 + cos^2) = -edge
        angle = math.pi - torch.atan2(torch.sqrt(complement), edge * torch.sqrt(beta))
        return Limits(torch.where(ends, radius, torch.full_like(radius, torch.inf)), angle)


def _edge(alpha: Tensor) -> tuple[Tensor, Tensor]:
    """Rays with Z <= -edge d have no pixel; also 1 - edge^2, without cancellation."""
    larger = torch.maximum(alpha, 1 - alpha)
    return (1 - larger) / larger, (2 * alpha - 1).abs() / (larger * larger)


def root(s: Tensor, curvature: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """s held at the domain's end, w = sqrt(1 - curvature s), and where s lies inside."""
    under_root = 1 - curvature * s
    valid = under_root > 0
    end = (1 - EDGE) / torch.where(valid, torch.ones_like(s), curvature)
    return (
        torch.where(valid, s, end),
        torch.sqrt(torch.where(valid, under_root, torch.full_like(s, EDGE))),
        valid,
    )
