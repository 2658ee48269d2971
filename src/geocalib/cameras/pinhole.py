"""Pinhole camera: no distortion."""

from __future__ import annotations

import math

import torch
from torch import Tensor

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

    def depth(self, s: Tensor, k: Parameters) -> tuple[Tensor, Tensor | None]:
        return torch.ones_like(s), None

    def jet(self, s: Tensor, k: Parameters) -> DepthJet:
        return DepthJet(torch.ones_like(s), None, None, (), (), None)

    def radius(self, r: Tensor, z: Tensor, k: Parameters) -> tuple[Tensor, Tensor | None]:
        valid = z > 0
        return r / torch.where(valid, z, torch.ones_like(z)), valid

    def limits(self, k: Parameters) -> Limits:
        return Limits(
            torch.tensor(math.inf, dtype=torch.float64),
            torch.tensor(math.pi / 2, dtype=torch.float64),
        )
