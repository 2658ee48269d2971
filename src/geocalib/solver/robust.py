"""The Huber kernel on squared residual norms."""

from __future__ import annotations

import torch
from torch import Tensor


def huber_weight(squared: Tensor, threshold: float | None) -> Tensor:
    """Weight with which a residual enters the normal equations; no threshold: 1."""
    if threshold is None:
        return torch.ones_like(squared)
    return threshold * torch.rsqrt(squared.clamp(min=threshold**2))


def huber_cost(squared: Tensor, threshold: float | None) -> Tensor:
    """The cost: ``squared`` up to the threshold, 2 threshold sqrt(squared) - threshold^2 beyond."""
    if threshold is None:
        return squared
    outside = squared.clamp(min=threshold**2)
    return torch.minimum(squared, 2 * threshold * torch.sqrt(outside) - threshold**2)
