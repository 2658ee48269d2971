"""Which direction a segment belongs to, if any: a mixture of directions and clutter.

Against the direction that it belongs to, the residual of a segment (an angle in the picture) is
normal around 0, with a sigma of the noise of its ends and of how well the world keeps to its
directions. The angle of a segment that points anywhere is as likely in all of a half turn. The
ratio of both densities, weighed by how common each kind is, says which it is. Next to its
vanishing point a segment's sigma is large: there everything points at it, and tells nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

CLUTTER = 0.4
"""Share of segments that belong to no direction, beforehand."""


@dataclass(frozen=True)
class Noise:
    """What stays fixed while a minimum is sought, (B, K, N) each."""

    sigma: Tensor
    """Of the residuals."""
    log_ratio: Tensor
    """log of share times density at residual 0, over the density of clutter; -inf where there is
    no such direction or segment."""


def noise_model(
    length: Tensor, nearness: Tensor, pixels: Tensor, usable: Tensor, waywardness: float
) -> Noise:
    """Of segments with a length (B, N), whose ends have a noise of pixels (B,), and of how near
    (B, K, N) the vanishing points are; usable (B, K, N): which may follow which direction;
    waywardness: radians in the picture by which lines miss their direction."""
    # Opposite noise of the ends turns a segment; common noise shifts it, which turns the
    # direction to a near vanishing point.
    turn = 2 / (length * length).clamp(min=1e-6)
    variance = pixels[:, None, None] ** 2 * (turn[:, None] + 0.5 * nearness * nearness)
    sigma = torch.sqrt(variance + waywardness**2)
    share = (1 - CLUTTER) / usable.any(-1).sum(1)[:, None, None].clamp(min=1)
    ratio = torch.log(share * math.sqrt(math.pi / 2) / sigma)
    return Noise(sigma, torch.where(usable, ratio, -torch.inf))


@dataclass(frozen=True)
class Weighing:
    """What a mixture says of residuals."""

    gain: Tensor
    """(B, N) log likelihood against that of clutter alone."""
    share: Tensor
    """(B, K, N) probability of each direction; the rest is clutter."""


def weigh(residual: Tensor, noise: Noise) -> Weighing:
    """The mixture's verdict on residuals (B, K, N)."""
    each = noise.log_ratio - 0.5 * (residual / noise.sigma) ** 2
    clutter = torch.full_like(each[:, :1], math.log(CLUTTER))
    gain = torch.logsumexp(torch.cat([clutter, each], 1), 1)
    return Weighing(gain, torch.exp(each - gain[:, None]))
