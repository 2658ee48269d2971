"""A wider network that starts where a narrower one stands.

Channels are copied, and what reads a channel's copies shares its weight between them, so that the
wider network first answers as the narrower one does. The shares are drawn at random: copies that
are read alike would learn alike for ever.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from geocalib.errors import ConfigError

SHARE_SPREAD = 0.5
"""Of the random numbers added to the shares, which are then brought to a sum of one."""


def widened(
    narrow: Mapping[str, Tensor], wanted: Mapping[str, Tensor], generator: torch.Generator
) -> dict[str, Tensor]:
    """The weights of a lean network in the shapes of a wider one that has as many layers.

    Its coarsest width must be a multiple of the narrow one's: layer norms and attention may not
    notice.
    """
    if narrow.keys() != wanted.keys():
        raise ConfigError("the weights to start from are of another encoder or number of blocks")
    wide = {}
    for name, value in narrow.items():
        after = wanted[name].shape
        if value.dim() > 0 and after[0] != value.shape[0]:
            value = _written(value, name, after[0])
        if value.dim() > 1 and after[1] != value.shape[1]:
            value = _read(value, after[1], generator)
        uneven = name == "context.norm.weight" and after[0] % len(narrow[name])
        shrinks = any(new < old for new, old in zip(after, narrow[name].shape, strict=True))
        if value.shape != after or uneven or shrinks:
            raise ConfigError(
                f"{name} of {tuple(narrow[name].shape)} cannot be widened to {tuple(after)}"
            )
        wide[name] = value
    return wide


def _written(value: Tensor, name: str, after: int) -> Tensor:
    """The channels that a layer writes, copied in turn until there are enough."""
    # Queries, keys and values stay apart.
    groups = 3 if ".qkv." in name else 1
    grouped = value.reshape(groups, -1, *value.shape[1:])
    return grouped[:, torch.arange(after // groups) % grouped.shape[1]].flatten(0, 1)


def _read(value: Tensor, after: int, generator: torch.Generator) -> Tensor:
    """The channels that a layer reads, copied in the same order, each with a share of a weight."""
    before = value.shape[1]
    source = torch.arange(after) % before
    copies = value[:, source]
    shares = 1 + SHARE_SPREAD * torch.randn(copies.shape, generator=generator, dtype=value.dtype)
    sums = torch.zeros_like(value).index_add_(1, source, shares)
    count = torch.bincount(source, minlength=before).to(value)
    # Moved, not scaled: a sum near zero would blow up.
    surplus = (sums - 1) / count.reshape(1, -1, *(1,) * (value.dim() - 2))
    return copies * (shares - surplus[:, source])
