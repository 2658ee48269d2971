"""Brown's radial model with one parameter (COLMAP's SIMPLE_RADIAL, OpenCV's k1)."""

from __future__ import annotations

import torch
from torch import Tensor

from geocalib.cameras.base import Parameters
from geocalib.cameras.tangent_polynomial import TangentPolynomial


class SimpleRadial(TangentPolynomial):
    """d = 1 + k1 x^2; k1 < 0 is barrel distortion."""

    name = "simple_radial"
    parameters: tuple[str, ...] = ("k1",)
    start: tuple[float, ...] = (0.0,)
    bounds: tuple[tuple[float, float], ...] = ((-50.0, 50.0),)

    def tangent_limit(self, k: Parameters) -> Tensor:
        (k1,) = k
        ends = k1 < 0
        X = -1 / (3 * torch.where(ends, k1, -torch.ones_like(k1)))
        return torch.sqrt(torch.where(ends, X, torch.full_like(X, torch.inf)))
