"""Whether segments follow directions for a reason, or as any segments would by chance."""

from __future__ import annotations

import numpy as np

from geocalib.lines.mixture import CLUTTER, Noise, densities
from geocalib.lines.unknowns import Array, times

CLUTTER_TRIED = (0.2, 0.5, 0.8, 0.95)
"""Shares of clutter: the likeliest one counts."""

FITTED = 5.0
"""Unknowns that make residuals smaller than they should be."""


def support(residual: Array, noise: Noise, repeats: float) -> Array:
    """(..., K) by how much each direction raises the log likelihood of all segments (with residuals
    (..., K, N)), given the other directions, counted in independent segments."""
    ratio = likelihood_ratio(residual, noise)
    every = ratio.sum(-2, keepdims=True)
    found = likelihood(np.concatenate([every, every - ratio], -2), noise)
    return np.asarray((found[..., :1] - found[..., 1:]) / repeats)


def likelihood_ratio(residual: Array, noise: Noise) -> Array:
    """(..., K, N) density of residuals against each direction, over that of clutter."""
    return np.asarray(
        densities(residual, noise) * (_directions(noise) / (1 - CLUTTER))[..., None, None]
    )


def likelihood(ratio: Array, noise: Noise) -> Array:
    """(..., M) log likelihood of segments against that of clutter alone, given their sums of
    ratios (..., M, N) over all directions, with the likeliest share of clutter. In their
    precision."""
    count, there = (value.astype(ratio.dtype) for value in (_directions(noise), noise.there))
    mean = np.maximum(ratio, 0) / count[..., None, None]
    best = np.zeros(ratio.shape[:-1], ratio.dtype)
    for clutter in CLUTTER_TRIED:
        each = mean * (1 - clutter)
        each += clutter
        np.maximum(best, times(np.log(each, out=each), there), out=best)
    return best


def misfit(residual: Array, noise: Noise, share: Array) -> Array:
    """(R,) mean square, in sigmas, of the residuals (R, B, K, N) of segments, each with the share
    that it has in directions: 1 where these are kept as well as expected."""
    squared = noise.information * residual * residual
    left = share.sum((-1, -2, -3)) - FITTED
    return np.asarray((share * squared).sum((-1, -2, -3)) / np.maximum(left, 1.0))


def _directions(noise: Noise) -> Array:
    """(...) directions that there are."""
    return np.asarray((noise.ratio > 0).any(-1).sum(-1).clip(min=1), np.float64)
