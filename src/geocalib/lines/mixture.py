"""Which direction a segment belongs to, if any: a mixture of directions and clutter.

Against the direction that it belongs to, the residual of a segment (an angle in the picture) is
normal around 0, with a sigma of the noise of its ends and of how well the world keeps to its
directions. The angle of a segment that points anywhere is as likely in all of a half turn. The
ratio of both densities, weighed by how common each kind is, says which it is. Next to its
vanishing point a segment's sigma is large: there everything points at it, and tells nothing.

How much a direction raises the log likelihood of all segments is its support: it tells directions
that are there for a reason from those that any segments would follow by chance.
"""

from __future__ import annotations

import math

import numpy as np

from geocalib.lines.unknowns import Array, Flags
from geocalib.records import dataclass

CLUTTER = 0.4
"""Share of segments that belong to no direction, beforehand."""
LEAST_EXPONENT = -80.0
"""What is less likely than this, against clutter, does not count."""


@dataclass(frozen=True)
class Noise:
    """The noise model, which stays fixed while a minimum is sought; (..., K, N) each."""

    information: Array
    """1 / sigma^2 of the residuals."""
    ratio: Array
    """Share times density at residual 0, over the density of clutter; 0 where there is no such
    direction or segment."""
    there: Flags
    """(..., N) which segments may follow any direction."""


def noise_model(
    length: Array, nearness: Array, pixels: Array, usable: Flags, direction_noise: float
) -> Noise:
    """Return the noise of segments with a length (B, N), whose ends have a noise of pixels (B,).

    nearness: (..., B, K, N) 1 / distance of vanishing points; usable (..., B, K, N): which segments
    may follow which direction; direction_noise: radians in the picture by which lines miss their
    direction.
    """
    # Opposite noise of the ends turns a segment; common noise shifts it, which turns the
    # direction to a near vanishing point.
    squared = (pixels * pixels)[..., None]
    turn = 2 * squared / np.maximum(length * length, 1e-6) + direction_noise**2
    variance = nearness * nearness
    variance *= (0.5 * squared)[..., None]
    variance += turn[..., None, :]
    information = 1 / variance
    share = math.sqrt(0.5 * math.pi) * (1 - CLUTTER) / np.maximum(usable.any(-1).sum(-1), 1)
    ratio = np.sqrt(information)
    ratio *= share[..., None, None]
    ratio *= usable
    return Noise(information, ratio, np.asarray(usable.any(-2)))


@dataclass(frozen=True)
class Assignment:
    """How segments are assigned to directions, and the likelihood that they gain by it."""

    gain: Array
    """(..., N) log likelihood against that of clutter alone."""
    share: Array
    """(..., K, N) probability of each direction; the rest is clutter."""


def densities(residual: Array, noise: Noise) -> Array:
    """(..., K, N) share times density of residuals against each direction, over the density of
    clutter."""
    exponent = noise.information * residual * residual
    exponent *= -0.5
    # Processors take many times as long for numbers that are nearly 0.
    np.maximum(exponent, LEAST_EXPONENT, out=exponent)
    np.exp(exponent, out=exponent)
    exponent *= noise.ratio
    return np.asarray(exponent)


def assign(residual: Array, noise: Noise) -> Assignment:
    """Assign segments with residuals (..., K, N) to directions."""
    each = densities(residual, noise)
    every = each.sum(-2)
    every += CLUTTER
    each /= every[..., None, :]
    return Assignment(np.log(every), each)


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
        np.maximum(best, np.matvec(np.log(each, out=each), there), out=best)
    return best


def misfit(residual: Array, noise: Noise, share: Array) -> Array:
    """(R,) mean square, in sigmas, of the residuals (R, B, K, N) of segments, each with the share
    that it has in directions: 1 where these are kept as well as expected."""
    squared = noise.information * residual * residual
    left = share.sum((-1, -2, -3)) - FITTED
    return np.asarray((share * squared).sum((-1, -2, -3)) / np.maximum(left, 1.0))


def _directions(noise: Noise) -> Array:
    """Return the number (...) of directions that there are."""
    return np.asarray((noise.ratio > 0).any(-1).sum(-1).clip(min=1), np.float64)
