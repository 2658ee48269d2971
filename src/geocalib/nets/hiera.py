"""The Hiera-Tiny encoder of SAM 2, with or without its last stage.

A 7x7 convolution to stride 4, positions, then stages of 1, 2, 7 and 2 blocks, each block being

    x <- shortcut + attention(norm(x)),    x <- x + mlp(x).

The first block of each later stage halves the map and doubles the width: its queries are the
largest of 2x2 cells, and so is its shortcut.

Windows. The first two stages attend within windows of 8 and 4 cells, as they were trained; a
halving block has the windows of the stage before. SAM 2's third and fourth stages, made for
inputs of 1024 pixels, had windows of 14 and 7 cells too, and three blocks without. There is no bias
that depends on a distance, so windows may be changed: ours, for smaller inputs, attend everywhere.
Inputs in multiples of 32 pixels are thus cut into whole windows: nothing is ever padded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTHS = (96, 192, 384, 768)
DEPTHS = (1, 2, 7, 2)
STRIDES = (4, 8, 16, 32)
WINDOWS = (8, 4, None, None)
"""Cells along a window of each stage; None: all of the map."""
HEAD_WIDTH = 96
"""Channels of an attention head."""
EXPANSION = 4
"""Hidden channels per channel in the MLPs."""
NORM_EPS = 1e-6
COARSE = 7
"""Cells along the map of positions that is enlarged to any size."""


class Hiera(nn.Module):
    """Images to feature maps at strides 4, 8, 16 and 32, or to the first ``stages`` of them; H and
    W multiples of 32.

    >>> [tuple(level.shape) for level in Hiera(3)(torch.zeros(1, 3, 64, 96))]
    [(1, 96, 16, 24), (1, 192, 8, 12), (1, 384, 4, 6)]
    """

    def __init__(self, stages: int = len(WIDTHS)) -> None:
        super().__init__()
        self.widths, self.strides = WIDTHS[:stages], STRIDES[:stages]
        first = WIDTHS[0]
        self.stem = nn.Conv2d(3, first, kernel_size=7, stride=4, padding=3)
        self.coarse_position = nn.Parameter(torch.zeros(1, first, COARSE, COARSE))
        self.window_position = nn.Parameter(torch.zeros(1, first, WINDOWS[0], WINDOWS[0]))
        self.stages = nn.ModuleList(_stage(i) for i in range(stages))
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                nn.init.trunc_normal_(layer.weight, std=0.02)
                nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """(B, 3, H, W) to one (B, widths[i], H / strides[i], W / strides[i]) per stage."""
        x = self.stem(x)
        x = (x + self.position(x.shape[-2], x.shape[-1])).permute(0, 2, 3, 1)
        levels = []
        for stage in self.stages:
            x = stage(x)
            levels.append(x.permute(0, 3, 1, 2))
        return tuple(levels)

    def position(self, height: int, width: int) -> Tensor:
        """(1, C, height, width): where a cell lies in the map, and where in its window."""
        coarse = functional.interpolate(self.coarse_position, (height, width), mode="bicubic")
        side = self.window_position.shape[-1]
        return coarse + self.window_position.repeat(1, 1, height // side, width // side)


def _stage(i: int) -> nn.Sequential:
    """The blocks of a stage, the first of which comes from the stage before."""
    before = max(i - 1, 0)
    blocks = [Block(WIDTHS[before], WIDTHS[i], WINDOWS[before])]
    blocks += [Block(WIDTHS[i], WIDTHS[i], WINDOWS[i]) for _ in range(DEPTHS[i] - 1)]
    return nn.Sequential(*blocks)


class Block(nn.Module):
    """Attention and an MLP: (B, H, W, before) to (B, H, W, after), or, if it grows wider, to
    (B, H / 2, W / 2, after)."""

    def __init__(self, before: int, after: int, window: int | None) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(before, NORM_EPS)
        self.attention = Attention(before, after, window)
        self.widen = nn.Linear(before, after) if after > before else None
        self.mlp = nn.Sequential(
            nn.LayerNorm(after, NORM_EPS),
            nn.Linear(after, EXPANSION * after),
            nn.GELU(),
            nn.Linear(EXPANSION * after, after),
        )

    def forward(self, x: Tensor) -> Tensor:
        seen = self.norm(x)
        # Under autocast too, what all blocks add to is as precise as it was.
        shortcut = x if self.widen is None else _halve(self.widen(seen)).to(x.dtype)
        x = shortcut + self.attention(seen)
        refined: Tensor = x + self.mlp(x)
        return refined


class Attention(nn.Module):
    """Multi-head attention within windows, or everywhere; shapes as of ``Block``."""

    def __init__(self, before: int, after: int, window: int | None) -> None:
        super().__init__()
        self.window = window
        self.heads = after // HEAD_WIDTH
        self.halves = after > before
        self.qkv = nn.Linear(before, 3 * after)
        self.leave = nn.Linear(after, after)

    def forward(self, x: Tensor) -> Tensor:
        if self.window is None:
            return self.attend(x)
        batch, height, width, channels = x.shape
        rows, columns = height // self.window, width // self.window
        cut = x.reshape(batch, rows, self.window, columns, self.window, channels)
        # The windows, one after the other.
        seen = self.attend(cut.transpose(2, 3).flatten(0, 2))
        _, h, w, after = seen.shape
        together = seen.view(batch, rows, columns, h, w, after).transpose(2, 3)
        return together.reshape(batch, rows * h, columns * w, after)

    def attend(self, x: Tensor) -> Tensor:
        """Every cell of (N, h, w, before) to all others of its map."""
        q, k, v = self.qkv(x).chunk(3, -1)
        if self.halves:
            q = _halve(q)
        seen = functional.scaled_dot_product_attention(
            self._by_head(q), self._by_head(k), self._by_head(v)
        )
        left: Tensor = self.leave(seen.transpose(1, 2).reshape(q.shape))
        return left

    def _by_head(self, x: Tensor) -> Tensor:
        """(N, h, w, C) to (N, heads, h w, HEAD_WIDTH)."""
        return x.reshape(len(x), -1, self.heads, HEAD_WIDTH).transpose(1, 2)


def _halve(x: Tensor) -> Tensor:
    """(N, h, w, C) to (N, h / 2, w / 2, C): the largest of 2x2 cells."""
    return functional.max_pool2d(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1)


_RENAMES = (
    (r"^patch_embed\.proj\.", "stem."),
    (r"^pos_embed$", "coarse_position"),
    (r"^pos_embed_window$", "window_position"),
    (r"\.norm1\.", ".norm."),
    (r"\.attn\.proj\.", ".attention.leave."),
    (r"\.attn\.", ".attention."),
    (r"\.proj\.", ".widen."),
    (r"\.norm2\.", ".mlp.0."),
    (r"\.mlp\.layers\.0\.", ".mlp.1."),
    (r"\.mlp\.layers\.1\.", ".mlp.3."),
)


def translate(released: Mapping[str, Tensor], stages: int = len(WIDTHS)) -> dict[str, Tensor]:
    """The tensors of SAM 2's trunk under the names of ``Hiera``, without those of later stages."""
    places = [f"stages.{i}.{j}." for i, depth in enumerate(DEPTHS) for j in range(depth)]
    used = sum(DEPTHS[:stages])
    translated = {}
    for name, value in released.items():
        if block := re.match(r"blocks\.(\d+)\.", name):
            number = int(block[1])
            if used <= number < len(places):
                continue
            if number < used:
                name = places[number] + name[block.end() :]
        for pattern, replacement in _RENAMES:
            name = re.sub(pattern, replacement, name)
        translated[name] = value
    return translated
