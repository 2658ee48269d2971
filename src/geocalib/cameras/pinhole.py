"""The pinhole camera, which has no distortion."""

from __future__ import annotations

import math

from geocalib.arrays import Array, namespace
from geocalib.cameras.base import DepthJet, Limits, Parameters


class Pinhole:
    """m = (X, Y) / Z: the depth profile is constant."""

    name = "pinhole"
    parameters: tuple[str, ...] = ()
    start: tuple[float, ...] = ()
    bounds: tuple[tuple[float, float], ...] = ()
    release: tuple[int, ...] = ()
    wide = False
    unit_centre = True

    def depth(self, s: Array, k: Parameters) -> tuple[Array, Array | None]:
        return namespace(s).ones_like(s), None

    def jet(self, s: Array, k: Parameters) -> DepthJet:
        return DepthJet(namespace(s).ones_like(s), None, None, (), (), None)

    def radius(self, r: Array, z: Array, k: Parameters) -> tuple[Array, Array | None]:
        valid = z > 0
        return r / namespace(z).where(valid, z, 1.0), valid

    def limits(self, k: Parameters) -> Limits:
        return Limits(
            math.inf,
            math.pi / 2,
        )
