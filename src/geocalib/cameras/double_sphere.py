"""Double sphere model (Usenko et al. 2018)."""

from __future__ import annotations

import torch
from torch import Tensor

from geocalib.cameras.base import DepthJet, Limits, Parameters
from geocalib.cameras.eucm import Eucm


class DoubleSphere:
    """m = (X, Y) / (alpha d2 + (1 - alpha) (xi d1 + Z)), d1 = |P|, d2 = |(X, Y, xi d1 + Z)|.

    The second sphere is a unified model (EUCM with beta = 1), whose depth h gives ours in
    closed form: depth = (h - xi T) / (1 - xi^2) with T = sqrt(h^2 + (1 - xi^2) s).
    """

    name = "double_sphere"
    parameters: tuple[str, ...] = ("xi", "alpha")
    start: tuple[float, ...] = (-0.2, 0.5)
    bounds: tuple[tuple[float, float], ...] = ((-0.95, 0.95), (0.0, 1.0))
    wide = True

    _sphere = Eucm()

    def depth(self, s: Tensor, k: Parameters) -> tuple[Tensor, Tensor | None]:
        xi, alpha = k
        h, valid = self._sphere.depth(s, (alpha, torch.ones_like(alpha)))
        shrink = 1 - xi * xi
        return (h - xi * torch.sqrt(h * h + shrink * s)) / shrink, valid

    def jet(self, s: Tensor, k: Parameters) -> DepthJet:
        xi, alpha = k
        inner = self._sphere.jet(s, (alpha, torch.ones_like(alpha)))
        h, h1, h2 = inner.depth, inner.d_s, inner.d_ss
        assert h1 is not None and h2 is not None and inner.valid is not None
        h_alpha, h1_alpha = inner.d_k[0], inner.d_ks[0]
        s = torch.where(inner.valid, s, torch.zeros_like(s))
        shrink = 1 - xi * xi
        T = torch.sqrt(h * h + shrink * s)
        T1 = (h * h1 + 0.5 * shrink) / T
        T2 = (h1 * h1 + h * h2 - T1 * T1) / T
        T_alpha = h * h_alpha / T
        T1_alpha = (h_alpha * h1 + h * h1_alpha - T_alpha * T1) / T
        T_xi = -xi * s / T
        T1_xi = -(xi + T_xi * T1) / T
        z, z1, z2 = ((a - xi * b) / shrink for a, b in ((h, T), (h1, T1), (h2, T2)))
        return DepthJet(
            z,
            z1,
            z2,
            ((2 * xi * z - T - xi * T_xi) / shrink, (h_alpha - xi * T_alpha) / shrink),
            ((2 * xi * z1 - T1 - xi * T1_xi) / shrink, (h1_alpha - xi * T1_alpha) / shrink),
            inner.valid,
        )

    def radius(self, r: Tensor, z: Tensor, k: Parameters) -> tuple[Tensor, Tensor | None]:
        xi, alpha = k
        d1 = torch.sqrt(r * r + z * z)
        valid = z > self._lowest_cosine(k) * d1
        shifted = xi * d1 + z
        denominator = alpha * torch.sqrt(r * r + shifted * shifted) + (1 - alpha) * shifted
        return r / torch.where(valid, denominator, torch.ones_like(denominator)), valid

    def limits(self, k: Parameters) -> Limits:
        xi, alpha = k
        inner = self._sphere.limits((alpha, torch.ones_like(alpha)))
        return Limits(inner.radius.expand_as(xi), torch.acos(self._lowest_cosine(k)))

    @staticmethod
    def _lowest_cosine(k: Parameters) -> Tensor:
        """Rays with cos(theta) at or below this have no pixel."""
        xi, alpha = k
        edge = torch.minimum(alpha, 1 - alpha) / torch.maximum(alpha, 1 - alpha)
        return -(edge + xi) / torch.sqrt(2 * edge * xi + xi * xi + 1)
