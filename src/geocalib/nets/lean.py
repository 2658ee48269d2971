"""The lean network: a small pretrained encoder, global attention, and a light decoder.

Gravity and focal length are properties of the whole picture, so the coarse features attend to
each other globally before a pyramid brings them down to stride 4, where the finer features tell
the directions of edges. Every level knows where its cells lie relative to the principal point.

The decoder normalises with batch norms, which fold into its convolutions for inference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from geocalib.errors import ConfigError
from geocalib.nets.encoders import Encoder
from geocalib.nets.prediction import Prediction

CONTEXT_STRIDE = 16
HEAD_WIDTH = 32
"""Channels of an attention head."""
BANDS = 4
"""Octaves of the position code."""
SHORTEST_UP = 1e-3
"""Length below which a raw up-vector is no longer scaled to one, to bound the slope."""


@dataclass(frozen=True)
class LeanConfig:
    """What a lean network is built from: ``LeanConfig(**dataclasses.asdict(c)) == c``."""

    encoder: str = "efficientnet_lite2"
    widths: tuple[int, int, int] = (96, 160, 256)
    """Channels of the decoder at strides 4, 8 and 16."""
    blocks: int = 4
    """Number of blocks of global attention."""
    ranks: tuple[int, ...] = ()
    """Channels in the middle of the decoder's 3x3 convolutions at strides 4 and 8, which are then
    products of a 3x3 and a 1x1 one; none: they are in one piece."""
    expansion: int = 4
    """Hidden channels per channel in the MLPs of the attention."""

    def __post_init__(self) -> None:
        # A list, as JSON gives it, is as good.
        object.__setattr__(self, "widths", tuple(self.widths))
        object.__setattr__(self, "ranks", tuple(self.ranks))
        if self.ranks and (len(self.ranks) != 2 or min(self.ranks) < 1):
            raise ConfigError(f"ranks must be two, or none, got {self.ranks}")
        if len(self.widths) != 3 or self.widths[-1] % HEAD_WIDTH or min(self.widths) < 1:
            raise ConfigError(
                f"widths must be three, the last a multiple of {HEAD_WIDTH}, got {self.widths}"
            )


class LeanNetwork(nn.Module):
    """Images to perspective fields at stride 4. See ``geocalib.nets.prediction.Network``."""

    stride = 4
    multiple = 32

    def __init__(self, config: LeanConfig) -> None:
        super().__init__()
        self.config = config
        fine, middle, coarse = config.widths
        self.encoder = Encoder(config.encoder)
        self.context = Context(self.encoder, coarse, config.blocks, config.expansion)
        rank4, rank8 = config.ranks or (None, None)
        self.fuse8 = Fuse(coarse, self.encoder.widths[1], middle, rank8)
        self.fuse4 = Fuse(middle, self.encoder.widths[0], fine, rank4)
        self.heads = Heads(fine)

    def forward(self, image: Tensor) -> Prediction:
        """image: (B, 3, H, W) RGB in [0, 1], H and W multiples of 32."""
        levels = self.encoder(image)
        return self.decode(levels, self.context(levels))

    def decode(self, levels: tuple[Tensor, ...], context: Tensor) -> Prediction:
        """The fields, of the encoder's levels and what they are together."""
        x = self.fuse8(context, levels[1])
        x = self.fuse4(x, levels[0])
        prediction: Prediction = self.heads(x)
        return prediction


def cell_coordinates(height: int, width: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """x (W,) and y (H,) of the cells' centres relative to the image centre, in halves of the
    shorter side, so that they are in proportion to pixels whatever the aspect."""
    x, y = (
        (torch.arange(n, dtype=like.dtype, device=like.device) + 0.5 - n / 2)
        / (min(height, width) / 2)
        for n in (width, height)
    )
    return x, y


class Place(nn.Module):
    """Adds a learnt map of where each cell lies: coordinates and their waves, mixed linearly.

    Each input of the mix depends on x (those with even numbers) or on y.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mix = nn.Conv2d(2 + 4 * BANDS, width, kernel_size=1)
        nn.init.normal_(self.mix.weight, std=0.1)

    def forward(self, features: Tensor) -> Tensor:
        """(B, width, H, W) for features likewise."""
        count, _, height, width = features.shape
        weight = self.mix.weight
        x, y = map(_waves, cell_coordinates(height, width, weight))
        columns = x[:, None].expand(count, -1, height, -1)
        rows = y[:, :, None].expand(count, -1, -1, width)
        # One after the other, as convolutions of ONNX Runtime can add to what is there.
        features = features + functional.conv2d(columns, weight[:, ::2])
        return features + functional.conv2d(rows, weight[:, 1::2], self.mix.bias)


def _waves(x: Tensor) -> Tensor:
    """(1 + 2 * BANDS, N): coordinates (N,), and their sines and cosines by octave."""
    octaves = math.pi / 2 * 2 ** torch.arange(BANDS, dtype=x.dtype, device=x.device)
    phases = octaves[:, None] * x
    return torch.cat([x[None], phases.sin(), phases.cos()])


class Context(nn.Module):
    """The encoder's coarse levels, brought together at stride 16, attending to each other."""

    def __init__(self, encoder: Encoder, width: int, blocks: int, expansion: int) -> None:
        super().__init__()
        self.scales = [stride // CONTEXT_STRIDE for stride in encoder.strides[2:]]
        self.enter = nn.ModuleList(_project(before, width) for before in encoder.widths[2:])
        self.place = Place(width)
        self.blocks = nn.Sequential(*(AttentionBlock(width, expansion) for _ in range(blocks)))
        self.norm = nn.LayerNorm(width)

    def forward(self, levels: tuple[Tensor, ...]) -> Tensor:
        """All levels of the encoder to (B, width, H / 16, W / 16)."""
        entered = zip(levels[2:], self.enter, self.scales, strict=True)
        first, *others = (_enlarge(enter(level), scale) for level, enter, scale in entered)
        x = self.place(sum(others, first)).permute(0, 2, 3, 1)
        tokens: Tensor = self.norm(self.blocks(x.flatten(1, 2)))
        return tokens.view(x.shape).permute(0, 3, 1, 2)


class AttentionBlock(nn.Module):
    """Every token attends to all; (B, N, C) to the same shape."""

    def __init__(self, width: int, expansion: int) -> None:
        super().__init__()
        self.heads = width // HEAD_WIDTH
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.leave = nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, expansion * width),
            nn.GELU(),
            nn.Linear(expansion * width, width),
        )
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                nn.init.trunc_normal_(layer.weight, std=0.02)
                nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.leave(self.attend(self.norm(x)))
        refined: Tensor = x + self.mlp(x)
        return refined

    def attend(self, x: Tensor) -> Tensor:
        """What every token gathers from the others, before projection."""
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, HEAD_WIDTH)).unbind(-3)
        seen = functional.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        )
        return seen.transpose(1, 2).flatten(2)


class Fuse(nn.Module):
    """A coarser map enlarged twofold, joined with a level of the encoder, and refined."""

    def __init__(self, coarse: int, level: int, width: int, rank: int | None) -> None:
        super().__init__()
        self.narrow = nn.Conv2d(coarse, width, kernel_size=1)
        self.enter = _project(level, width)
        self.place = Place(width)
        self.refine = nn.Sequential(
            *_conv3(width, rank),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            *_conv3(width, rank),
            nn.BatchNorm2d(width),
        )

    def forward(self, coarse: Tensor, level: Tensor) -> Tensor:
        x = self.place(self.enter(level) + _enlarge(self.narrow(coarse), 2))
        x = functional.relu(x, inplace=True)
        return functional.relu(x + self.refine(x), inplace=True)


def _project(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(before, after, 1, bias=False), nn.BatchNorm2d(after))


def _conv3(width: int, rank: int | None) -> list[nn.Conv2d]:
    """A 3x3 convolution; with a rank, of so many channels, which a 1x1 one makes width again."""
    parts = [nn.Conv2d(width, rank or width, kernel_size=3, padding=1, bias=False)]
    if rank is not None:
        parts.append(nn.Conv2d(rank, width, kernel_size=1, bias=False))
    for part in parts:
        nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")
    return parts


def _enlarge(x: Tensor, scale: int) -> Tensor:
    if scale == 1:
        return x
    return functional.interpolate(x, scale_factor=scale, mode="bilinear", align_corners=False)


class Heads(nn.Module):
    """Features to fields and confidences: one 1x1 convolution, and what bounds its values.

    The latitude is gd(z) = 2 atan(tanh(z / 2)), which equals the published asin(tanh(z)) but has
    a finite slope in every part, so that it needs no clamp.

    A fresh head answers a level camera: up near (0, -1), latitude near 0, confidences near 1/2.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mix = nn.Conv2d(width, 5, kernel_size=1)
        nn.init.normal_(self.mix.weight, std=0.01)
        self.mix.bias = nn.Parameter(torch.tensor([0.0, -1.0, 0.0, 0.0, 0.0]))

    def forward(self, x: Tensor) -> Prediction:
        # In full precision: in bfloat16 the last step alone would cost a fifth of a degree.
        with torch.autocast(x.device.type, enabled=False):
            raw: Tensor = self.mix(x.to(self.mix.weight.dtype)).float()
        up, latitude = raw[:, :2], raw[:, 2:3]
        up_confidence, latitude_confidence = torch.sigmoid(raw[:, 3:]).unbind(1)
        return Prediction(
            up=functional.normalize(up, dim=1, eps=SHORTEST_UP),
            latitude=2 * torch.atan(torch.tanh(latitude / 2)),
            up_confidence=up_confidence,
            latitude_confidence=latitude_confidence,
        )
