"""Unified camera model (Mei and Rives 2007), in the form of Usenko et al. 2018."""

from __future__ import annotations

from dataclasses import replace

from geocalib.arrays import Array, namespace
from geocalib.cameras.base import DepthJet, Limits, Parameters
from geocalib.cameras.eucm import Eucm


class Ucm:
    """m = (X, Y) / (alpha d + (1 - alpha) Z), d = |P|: EUCM with beta = 1.

    Mei's xi is alpha / (1 - alpha), and his focal length f / (1 - alpha).
    """

    name = "ucm"
    parameters: tuple[str, ...] = ("alpha",)
    start: tuple[float, ...] = (0.5,)
    bounds: tuple[tuple[float, float], ...] = ((0.0, 1.0),)
    release: tuple[int, ...] = ()
    wide = True
    unit_centre = True

    _enhanced = Eucm()

    def depth(self, s: Array, k: Parameters) -> tuple[Array, Array | None]:
        return self._enhanced.depth(s, _with_beta(k))

    def jet(self, s: Array, k: Parameters) -> DepthJet:
        jet = self._enhanced.jet(s, _with_beta(k))
        return replace(jet, d_k=jet.d_k[:1], d_ks=jet.d_ks[:1])

    def radius(self, r: Array, z: Array, k: Parameters) -> tuple[Array, Array | None]:
        return self._enhanced.radius(r, z, _with_beta(k))

    def limits(self, k: Parameters) -> Limits:
        return self._enhanced.limits(_with_beta(k))


def _with_beta(k: Parameters) -> Parameters:
    (alpha,) = k
    return alpha, namespace(alpha).ones_like(alpha)
