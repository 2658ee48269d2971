"""The multi-scale convolutional attention encoder (MSCAN of SegNeXt).

Four stages, each a strided convolution, some blocks and a layer norm over channels. A block is

    x <- x + s1 * attention(bn(x)),    x <- x + s2 * mlp(bn(x)),

with per-channel scales s1, s2. The attention gates its features with what strips of several
lengths see around each pixel.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from geocalib.nets.folding import affine_of, fold_into_next, scaled_output

STRIPS = (7, 11, 21)
"""Lengths of the strip pairs of the attention, pixels."""

SCALE_START = 0.01
"""What s1 and s2 start from, so that a fresh block is nearly the identity."""


class MscanShape(NamedTuple):
    """The arguments of ``Mscan``, one entry per stage."""

    widths: tuple[int, ...]
    depths: tuple[int, ...]
    mlp_ratios: tuple[int, ...] = (8, 8, 4, 4)


TINY = MscanShape(widths=(32, 64, 160, 256), depths=(3, 3, 5, 2))
SMALL = MscanShape(widths=(64, 128, 320, 512), depths=(2, 2, 4, 2))
BASE = MscanShape(widths=(64, 128, 320, 512), depths=(3, 3, 12, 3))


class Mscan(nn.Module):
    """Images to feature maps at strides 4, 8, 16 and 32.

    >>> [tuple(level.shape) for level in Mscan(*TINY)(torch.zeros(1, 3, 64, 96))][::3]
    [(1, 32, 16, 24), (1, 256, 2, 3)]
    """

    def __init__(
        self, widths: Sequence[int], depths: Sequence[int], mlp_ratios: Sequence[int]
    ) -> None:
        super().__init__()
        self.widths = tuple(widths)
        self.strides = tuple(4 * 2**i for i in range(len(self.widths)))
        entries = [_stem(self.widths[0])] + [
            nn.Sequential(_halve(before, after), nn.BatchNorm2d(after))
            for before, after in zip(self.widths[:-1], self.widths[1:], strict=True)
        ]
        self.stages = nn.ModuleList(
            Stage(entry, width, depth, ratio)
            for entry, width, depth, ratio in zip(
                entries, self.widths, depths, mlp_ratios, strict=True
            )
        )

    def forward(self, x: Tensor) -> list[Tensor]:
        """(B, 3, H, W) to one (B, widths[i], H / strides[i], W / strides[i]) per stage."""
        levels = []
        for stage in self.stages:
            x = stage(x)
            levels.append(x)
        return levels


def _halve(channels: int, width: int) -> nn.Conv2d:
    return nn.Conv2d(channels, width, kernel_size=3, stride=2, padding=1)


def _stem(width: int) -> nn.Sequential:
    half = width // 2
    return nn.Sequential(
        _halve(3, half), nn.BatchNorm2d(half), nn.GELU(), _halve(half, width), nn.BatchNorm2d(width)
    )


class Stage(nn.Module):
    """Entry (which shrinks the map), blocks, layer norm over channels."""

    def __init__(self, entry: nn.Sequential, width: int, depth: int, mlp_ratio: int) -> None:
        super().__init__()
        self.entry = entry
        self.blocks = nn.Sequential(*(Block(width, mlp_ratio) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(self.entry(x))
        normed: Tensor = self.norm(x.permute(0, 2, 3, 1))
        return normed.permute(0, 3, 1, 2)


class Block(nn.Module):
    """Attention and MLP, each normalised, scaled and added to its input."""

    def __init__(self, width: int, mlp_ratio: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(width)
        self.attention = Attention(width)
        self.scale1 = nn.Parameter(torch.full((width,), SCALE_START))
        self.norm2 = nn.BatchNorm2d(width)
        self.mlp = Mlp(width, mlp_ratio * width)
        self.scale2 = nn.Parameter(torch.full((width,), SCALE_START))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.norm1(x)
        x = x + _per_channel(self.scale1) * (self.attention(y) + y)
        z: Tensor = self.mlp(self.norm2(x))
        return x + _per_channel(self.scale2) * z

    def folded(self) -> nn.Module:
        return FoldedBlock(self)


class FoldedBlock(nn.Module):
    """The same block in evaluation, with norms and scales inside the 1x1 convolutions.

    The attention's input bn(x) = a x + b is also added to its output, which leaves of
    x + s1 * (attention(bn(x)) + bn(x)) one factor per channel, 1 + s1 a.
    """

    keep: Tensor

    def __init__(self, block: Block) -> None:
        super().__init__()
        gain, offset = affine_of(block.norm1)
        scale1, scale2 = block.scale1.detach(), block.scale2.detach()
        self.register_buffer("keep", _per_channel(1 + scale1 * gain))
        self.attention = copy.deepcopy(block.attention)
        self.attention.enter = fold_into_next(block.norm1, self.attention.enter)
        self.attention.leave = scaled_output(self.attention.leave, scale1, scale1 * offset)
        self.mlp = copy.deepcopy(block.mlp)
        self.mlp.enter = fold_into_next(block.norm2, self.mlp.enter)
        self.mlp.leave = scaled_output(self.mlp.leave, scale2)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.addcmul(self.attention(x), self.keep, x)
        y: Tensor = self.mlp(x)
        return x + y


class Attention(nn.Module):
    """1x1, GELU, gate, 1x1. The gate multiplies its input by a 1x1 mix of what a 5x5 and three
    strip pairs on top of it see, channel by channel."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.enter = nn.Conv2d(width, width, kernel_size=1)
        self.square = nn.Conv2d(width, width, kernel_size=5, padding=2, groups=width)
        self.strips = nn.ModuleList(_strip_pair(width, length) for length in STRIPS)
        self.mix = nn.Conv2d(width, width, kernel_size=1)
        self.leave = nn.Conv2d(width, width, kernel_size=1)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.gelu(self.enter(x))
        seen = self.square(x)
        context = seen
        for strip in self.strips:
            context = context + strip(seen)
        left: Tensor = self.leave(x * self.mix(context))
        return left


def _strip_pair(width: int, length: int) -> nn.Sequential:
    """A row of that many pixels, then a column."""
    half = length // 2
    return nn.Sequential(
        nn.Conv2d(width, width, kernel_size=(1, length), padding=(0, half), groups=width),
        nn.Conv2d(width, width, kernel_size=(length, 1), padding=(half, 0), groups=width),
    )


class Mlp(nn.Module):
    """1x1, 3x3 depth-wise, GELU, 1x1."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.enter = nn.Conv2d(width, hidden, kernel_size=1)
        self.spread = nn.Conv2d(hidden, hidden, kernel_size=3, padding=1, groups=hidden)
        self.leave = nn.Conv2d(hidden, width, kernel_size=1)

    def forward(self, x: Tensor) -> Tensor:
        left: Tensor = self.leave(functional.gelu(self.spread(self.enter(x))))
        return left


def _per_channel(values: Tensor) -> Tensor:
    """(C,) shaped to multiply (B, C, H, W)."""
    return values[:, None, None]
