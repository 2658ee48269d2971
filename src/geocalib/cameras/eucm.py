"""Enhanced unified camera model (Khomutenko et al. 2016)."""

from __future__ import annotations

import math

from geocalib.arrays import Array, inverse_root, namespace
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

    def depth(self, s: Array, k: Parameters) -> tuple[Array, Array | None]:
        alpha, beta = k
        s, w, valid = root(s, (2 * alpha - 1) * beta)
        return (1 - beta * alpha * alpha * s) / (alpha * w + 1 - alpha), valid

    def jet(self, s: Array, k: Parameters) -> DepthJet:
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
            numerator: Array, numerator1: Array, w_k: Array, w1_k: Array, own: Array | float
        ) -> tuple[Array, Array]:
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

    def radius(self, r: Array, z: Array, k: Parameters) -> tuple[Array, Array | None]:
        xp = namespace(r)
        alpha, beta = k
        d = xp.sqrt(beta * r * r + z * z)
        # For z < 0 the denominator's terms cancel, and so does z > -edge d: use their conjugates.
        edge, complement = _edge(alpha)
        beta_r2, z2 = beta * r * r, z * z
        valid = (z > 0) | (complement * z2 < edge * edge * beta_r2)
        denominator = xp.where(
            z < 0,
            (alpha * alpha * beta_r2 + (2 * alpha - 1) * z2) / (alpha * d + (1 - alpha) * abs(z)),
            alpha * d + (1 - alpha) * z,
        )
        return r / xp.where(valid, denominator, 1.0), valid

    def limits(self, k: Parameters) -> Limits:
        xp = namespace(k[0])
        alpha, beta = k
        curvature = (2 * alpha - 1) * beta
        ends = curvature > 0
        radius = inverse_root(xp.where(ends, curvature, 1.0))
        edge, complement = _edge(alpha)
        # cos / sqrt(beta sin^2 + cos^2) = -edge
        angle = math.pi - xp.atan2(xp.sqrt(complement), edge * xp.sqrt(beta))
        return Limits(xp.where(ends, radius, math.inf), angle)


def _edge(alpha: Array) -> tuple[Array, Array]:
    """Rays with Z <= -edge d have no pixel; also 1 - edge^2, without cancellation."""
    xp = namespace(alpha)
    larger = xp.maximum(alpha, 1 - alpha)
    return (1 - larger) / larger, abs(2 * alpha - 1) / (larger * larger)


def root(s: Array, curvature: Array) -> tuple[Array, Array, Array]:
    """s held at the domain's end, w = sqrt(1 - curvature s), and where s lies inside."""
    xp = namespace(s)
    under_root = 1 - curvature * s
    valid = under_root > 0
    end = (1 - EDGE) / xp.where(valid, 1.0, curvature)
    return (
        xp.where(valid, s, end),
        xp.sqrt(xp.where(valid, under_root, EDGE)),
        valid,
    )
