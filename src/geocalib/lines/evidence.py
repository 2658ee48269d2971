"""Whether segments follow directions for a reason, or as any segments would by chance."""

from __future__ import annotations

import torch
from torch import Tensor

from geocalib.lines.mixture import CLUTTER, Noise

CLUTTER_TRIED = (0.2, 0.5, 0.8, 0.95)
"""Shares of clutter: the likeliest one counts."""


def support(residual: Tensor, noise: Noise, repeats: float) -> Tensor:
    """(B, K) by how much each direction raises the log likelihood of all segments (with residuals
    (B, K, N)), given the other directions, counted in independent segments."""
    ratio = likelihood_ratio(residual, noise)
    every = ratio.sum(1)
    whole = likelihood(every, noise)
    return (whole[:, None] - likelihood(every[:, None] - ratio, noise)) / repeats


def likelihood_ratio(residual: Tensor, noise: Noise) -> Tensor:
    """(B, K, N) density of residuals against each direction, over that of clutter."""
    weighed = torch.exp(noise.log_ratio - 0.5 * (residual / noise.sigma) ** 2)
    return weighed * (_directions(noise) / (1 - CLUTTER))[:, None, None]


def likelihood(ratio: Tensor, noise: Noise) -> Tensor:
    """(B, ...) log likelihood of segments against that of clutter alone, given their sums of
    ratios (B, ..., N) over all directions, with the likeliest share of clutter."""
    shape = (-1, *(1,) * (ratio.dim() - 1))
    mean = ratio.clamp(min=0) / _directions(noise).reshape(shape)
    there = torch.isfinite(noise.log_ratio).any(1)
    there = there.reshape(len(there), *(1,) * (ratio.dim() - 2), -1)
    best = torch.zeros_like(ratio[..., 0])
    for clutter in CLUTTER_TRIED:
        best = torch.maximum(best, (torch.log(clutter + (1 - clutter) * mean) * there).sum(-1))
    return best


def _directions(noise: Noise) -> Tensor:
    """(B,) directions that there are."""
    return torch.isfinite(noise.log_ratio).any(-1).sum(1).clamp(min=1).double()
