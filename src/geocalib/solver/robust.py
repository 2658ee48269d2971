"""The Huber kernel on squared residual norms."""

from __future__ import annotations

import torch
from torch import Tensor


def huber(squared: Tensor, threshold: float | None) -> tuple[Tensor, Tensor]:
    """Cost of each residual and the weight with which it enters the normal equations.

    The cost is ``squared`` up to the threshold and 2 threshold norm - threshold^2 beyond.
    """
    if threshold is None:
        return squared, torch.ones_like(squared)
    outside = squared.clamp(min=threshold**2)
    weight = threshold * torch.rsqrt(outside)
    return torch.minimum(squared, 2 * outside * weight - threshold**2), weight
