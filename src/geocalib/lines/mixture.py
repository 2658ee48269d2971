"""Which direction a segment belongs to, if any: a mixture of directions and clutter.

Against the direction that it belongs to, the residual of a segment (an angle in the picture) is
normal around 0, with a sigma of the noise of its ends and of how well the world keeps to its
directions. The angle of a segment that points anywhere is as likely in all of a half turn. The
ratio of both densities, weighed by how common each kind is, says which it is. Next to its
vanishing point a segment's sigma is large: there everything points at it, and tells nothing.
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
    """What stays fixed while a minimum is sought, (..., K, N) each."""

    information: Array
    """1 / sigma^2 of the residuals."""
    ratio: Array
    """Share times density at residual 0, over the density of clutter; 0 where there is no such
    direction or segment."""
    there: Flags
    """(..., N) which segments may follow any direction."""


def noise_model(
    length: Array, nearness: Array, pixels: Array, usable: Flags, waywardness: float
) -> Noise:
    """Of segments with a length (B, N), whose ends have a noise of pixels (B,), and of how near
    (..., B, K, N) the vanishing points are; usable (..., B, K, N): which may follow which
    direction; waywardness: radians in the picture by which lines miss their direction."""
    # Opposite noise of the ends turns a segment; common noise shifts it, which turns the
    # direction to a near vanishing point.
    squared = (pixels * pixels)[..., None]
    turn = 2 * squared / np.maximum(length * length, 1e-6) + waywardness**2
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
class Weighing:
    """What a mixture says of residuals."""

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


def weigh(residual: Array, noise: Noise) -> Weighing:
    """The mixture's verdict on residuals (..., K, N)."""
    each = densities(residual, noise)
    every = each.sum(-2)
    every += CLUTTER
    each /= every[..., None, :]
    return Weighing(np.log(every), each)
