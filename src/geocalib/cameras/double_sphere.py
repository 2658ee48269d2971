"""Double sphere model (Usenko et al. 2018)."""

from __future__ import annotations

from geocalib.arrays import Array, namespace
from geocalib.cameras.base import DepthJet, Limits, Parameters
from geocalib.cameras.eucm import root
from geocalib.cameras.ucm import Ucm


class DoubleSphere:
    """m = (X, Y) / (alpha d2 + (1 - alpha) (xi d1 + Z)), d1 = |P|, d2 = |(X, Y, xi d1 + Z)|.

    The second sphere is a unified model, whose depth h gives ours in
    closed form: depth = (h - xi T) / (1 - xi^2) with T = sqrt(h^2 + (1 - xi^2) s).
    """

    name = "double_sphere"
    parameters: tuple[str, ...] = ("xi", "alpha")
    start: tuple[float, ...] = (-0.2, 0.5)
    bounds: tuple[tuple[float, float], ...] = ((-0.95, 0.95), (0.0, 1.0))
    release: tuple[int, ...] = (1, 0)
    wide = True
    unit_centre = False

    _sphere = Ucm()

    def depth(self, s: Array, k: Parameters) -> tuple[Array, Array | None]:
        xp = namespace(s)
        xi, alpha = k
        h, valid = self._sphere.depth(s, (alpha,))
        s, _, _ = root(s, 2 * alpha - 1)
        shrink = 1 - xi * xi
        return (h - xi * xp.sqrt(h * h + shrink * s)) / shrink, valid

    def jet(self, s: Array, k: Parameters) -> DepthJet:
        xp = namespace(s)
        xi, alpha = k
        inner = self._sphere.jet(s, (alpha,))
        h, h1, h2 = inner.depth, inner.d_s, inner.d_ss
        assert h1 is not None
        assert h2 is not None
        assert inner.valid is not None
        h_alpha, h1_alpha = inner.d_k[0], inner.d_ks[0]
        s, _, _ = root(s, 2 * alpha - 1)
        shrink = 1 - xi * xi
        T = xp.sqrt(h * h + shrink * s)
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
        ).frozen_outside()

    def radius(self, r: Array, z: Array, k: Parameters) -> tuple[Array, Array | None]:
        xp = namespace(r)
        xi, alpha = k
        shifted = xi * xp.sqrt(r * r + z * z) + z
        return self._sphere.radius(r, shifted, (alpha,))

    def limits(self, k: Parameters) -> Limits:
        xp = namespace(k[0])
        xi, alpha = k
        inner = self._sphere.limits((alpha,))
        # The second centre sees the end of the domain at inner.angle; the first is xi away.
        turn = xp.asin(xi * xp.sin(inner.angle))
        return Limits(xp.broadcast_to(inner.radius, turn.shape), inner.angle + turn)
