"""The TinyViT-5M encoder, in the form MobileSAM distilled from SAM.

A convolutional stem and first stage, then three stages of window attention, each block being

    x <- x + attention(x) in windows,    x <- 3x3 depth-wise (x),    x <- x + mlp(x).

The last stage stays at stride 16, as in MobileSAM.

Windows. A map is covered by as few windows of at most the trained size as it takes, and these
are then shrunk to what covering it needs: the relative position biases depend on distances
alone, so that a smaller window uses a part of their table. A 20x20 map is thus cut into four
windows of 10x10, where four of 14x14 would attend mostly to padding. What padding remains is at
the right and the bottom, zeros before the norm and attended to, as in training.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTHS = (64, 128, 160, 320)
DEPTHS = (2, 2, 6, 2)
STRIDES = (4, 8, 16, 16)
WINDOWS = (7, 14, 7)
"""Largest window of each stage of attention, cells."""
HEAD_WIDTH = 32
"""Channels of an attention head."""
EXPANSION = 4
"""Hidden channels per channel, in the convolutional blocks and in the MLPs."""


class TinyVit(nn.Module):
    """Images to feature maps at strides 4, 8, 16 and 16.

    >>> [tuple(level.shape) for level in TinyVit()(torch.zeros(1, 3, 64, 96))][::3]
    [(1, 64, 16, 24), (1, 320, 4, 6)]
    """

    widths = WIDTHS
    strides = STRIDES

    def __init__(self) -> None:
        super().__init__()
        first, *_ = WIDTHS
        self.stem = nn.Sequential(
            _conv(3, first // 2, 3, stride=2), nn.GELU(), _conv(first // 2, first, 3, stride=2)
        )
        self.stages = nn.ModuleList(
            [nn.Sequential(*(ConvBlock(first) for _ in range(DEPTHS[0])))]
            + [
                nn.Sequential(*(AttentionBlock(width, window) for _ in range(depth)))
                for width, depth, window in zip(WIDTHS[1:], DEPTHS[1:], WINDOWS, strict=True)
            ]
        )
        self.merges = nn.ModuleList(
            _merge(WIDTHS[i], WIDTHS[i + 1], STRIDES[i + 1] // STRIDES[i])
            for i in range(len(WIDTHS) - 1)
        )

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """(B, 3, H, W) to one (B, widths[i], H / strides[i], W / strides[i]) per stage."""
        x = self.stages[0](self.stem(x))
        levels = [x]
        for merge, stage in zip(self.merges, self.stages[1:], strict=True):
            x = stage(merge(x))
            levels.append(x)
        return tuple(levels)


def _conv(before: int, after: int, size: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """Convolution and batch norm."""
    return nn.Sequential(
        nn.Conv2d(before, after, size, stride, padding=size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(after),
    )


def _merge(before: int, after: int, stride: int) -> nn.Sequential:
    """From one stage to the next."""
    return nn.Sequential(
        _conv(before, after, 1),
        nn.GELU(),
        _conv(after, after, 3, stride, groups=after),
        nn.GELU(),
        _conv(after, after, 1),
    )


class ConvBlock(nn.Module):
    """1x1, 3x3 depth-wise, 1x1, added to the input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        hidden = EXPANSION * width
        self.layers = nn.Sequential(
            _conv(width, hidden, 1),
            nn.GELU(),
            _conv(hidden, hidden, 3, groups=hidden),
            nn.GELU(),
            _conv(hidden, width, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return functional.gelu(x + self.layers(x))


class AttentionBlock(nn.Module):
    """Attention in windows, a depth-wise convolution across them, and an MLP."""

    def __init__(self, width: int, window: int) -> None:
        super().__init__()
        self.attention = WindowAttention(width, window)
        self.local = _conv(width, width, 3, groups=width)
        self.mlp = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, EXPANSION * width),
            nn.GELU(),
            nn.Linear(EXPANSION * width, width),
        )

    def forward(self, x: Tensor) -> Tensor:
        # Tokens are worked on with channels last, which costs nothing in that memory format.
        x = x.permute(0, 2, 3, 1)
        x = x + self.attention(x)
        x = self.local(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        x = x + self.mlp(x)
        return x.permute(0, 3, 1, 2)


class WindowAttention(nn.Module):
    """Multi-head attention within windows, with a learnt bias per distance (|dy|, |dx|)."""

    def __init__(self, width: int, window: int) -> None:
        super().__init__()
        self.window = window
        self.heads = width // HEAD_WIDTH
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.biases = nn.Parameter(torch.zeros(self.heads, window, window))
        self.leave = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, H, W, C) to the same shape."""
        batch, height, width, channels = x.shape
        rows, columns = _count(height, self.window), _count(width, self.window)
        h, w = _count(height, rows), _count(width, columns)
        x = functional.pad(x, (0, 0, 0, columns * w - width, 0, rows * h - height))
        x = x.view(batch, rows, h, columns, w, channels).transpose(2, 3)
        x = self.norm(x.reshape(-1, h * w, channels))
        # Each head's query, key and value lie side by side, as in the released weights.
        q, k, v = self.qkv(x).unflatten(-1, (self.heads, 3, HEAD_WIDTH)).unbind(-2)
        x = functional.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), attn_mask=self.bias(h, w)
        )
        x = self.leave(x.transpose(1, 2).flatten(2))
        x = x.view(batch, rows, columns, h, w, channels).transpose(2, 3)
        x = x.reshape(batch, rows * h, columns * w, channels)
        return x[:, :height, :width]

    def bias(self, h: int, w: int) -> Tensor:
        """(1, heads, h w, h w), from every cell of an h x w window to every other."""
        y = torch.arange(h, device=self.biases.device)
        x = torch.arange(w, device=self.biases.device)
        dy = (y[:, None] - y).abs()[:, None, :, None]
        dx = (x[:, None] - x).abs()[None, :, None, :]
        entry = (dy * self.window + dx).view(h * w, h * w)
        return self.biases.flatten(1)[None, :, entry]


def _count(length: int, part: int) -> int:
    """How many parts cover a length."""
    return (length + part - 1) // part


UNUSED = re.compile(r"(?!image_encoder\.)|image_encoder\.(norm_head|head|neck)\.")
"""Released tensors that the encoder leaves aside: the rest of MobileSAM, the classifier and the
neck."""

_RENAMES = (
    (r"^image_encoder\.", ""),
    (r"^patch_embed\.seq\.", "stem."),
    (r"^layers\.(\d)\.blocks\.", r"stages.\1."),
    (r"^layers\.(\d)\.downsample\.", r"merges.\1."),
    (r"^(stages\.0\.\d)\.", r"\1.layers."),
    (r"\.local_conv\.", ".local."),
    (r"\.attn\.attention_biases$", ".attention.biases"),
    (r"\.attn\.proj\.", ".attention.leave."),
    (r"\.attn\.", ".attention."),
    (r"\.mlp\.norm\.", ".mlp.0."),
    (r"\.mlp\.fc1\.", ".mlp.1."),
    (r"\.mlp\.fc2\.", ".mlp.3."),
    (r"\.conv1\.", ".0."),
    (r"\.conv2\.", ".2."),
    (r"\.conv3\.", ".4."),
    (r"\.c\.weight$", ".0.weight"),
    (r"\.bn\.", ".1."),
)


def translate(released: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """MobileSAM's tensors under the names of ``TinyVit``."""
    translated = {}
    for name, value in released.items():
        if UNUSED.match(name):
            continue
        for pattern, replacement in _RENAMES:
            name = re.sub(pattern, replacement, name)
        if name.endswith(".biases"):
            value = value.reshape(len(value), math.isqrt(value.shape[-1]), -1)
        translated[name] = value
    return translated
