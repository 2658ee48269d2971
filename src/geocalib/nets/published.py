"""The network of the GeoCalib paper, which its published checkpoints fit.

One encoder (``Mscan``), a shallow branch at full resolution, and two decoders of one shape, for the
up-vectors and for the latitude, each with a global context (``Hamburger``). Unlike the published
code, which starts its factorisations from random bases, this one gives the same answer every time.

The encoder is the multi-scale convolutional attention network of SegNeXt: four stages, each a
strided convolution, some blocks and a layer norm over channels. A block is

    x <- x + s1 * attention(bn(x)),    x <- x + s2 * mlp(bn(x)),

with per-channel scales s1, s2. The attention gates its features with what strips of several
lengths see around each pixel.

The context is the Hamburger of Geng et al.: the features X (D x N, one column per pixel) are
replaced by a product B C' of low rank, found from fixed bases B by multiplicative updates, which
keep everything non-negative.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from geocalib.errors import WeightsError
from geocalib.nets.folding import affine_of, fold_into_next, scaled_output
from geocalib.nets.prediction import Prediction

SINE_LIMIT = 1 - 1e-5
"""Largest sine of a latitude: beyond, the derivative of asin blows up."""

STRIPS = (7, 11, 21)
"""Lengths of the strip pairs of the attention, pixels."""

SCALE_START = 0.01
"""What s1 and s2 start from, so that a fresh block is nearly the identity."""

EVALUATION_ROUNDS = 7
TRAINING_ROUNDS = 6

FLOOR = 1e-6
"""Added to the denominators of the updates."""


class MscanShape(NamedTuple):
    """The arguments of ``Mscan``, one entry per stage."""

    widths: tuple[int, ...]
    depths: tuple[int, ...]
    mlp_ratios: tuple[int, ...] = (8, 8, 4, 4)


TINY = MscanShape(widths=(32, 64, 160, 256), depths=(3, 3, 5, 2))
SMALL = MscanShape(widths=(64, 128, 320, 512), depths=(2, 2, 4, 2))
BASE = MscanShape(widths=(64, 128, 320, 512), depths=(3, 3, 12, 3))


class PublishedNetwork(nn.Module):
    """The published architecture; other sizes than the default ones do not fit its weights."""

    stride = 1
    multiple = 32

    def __init__(
        self, encoder: MscanShape = BASE, width: int = 64, context_width: int = 512, rank: int = 64
    ) -> None:
        super().__init__()
        self.encoder = Mscan(*encoder)
        self.low_level = nn.Sequential(
            _conv3x3(3, width), nn.ReLU(), _conv3x3(width, width), nn.ReLU()
        )
        channels = sum(encoder.widths)
        self.up_decoder = Decoder(channels, context_width, rank, width, outputs=2)
        self.latitude_decoder = Decoder(channels, context_width, rank, width, outputs=1)

    def forward(self, image: Tensor) -> Prediction:
        """(B, 3, H, W) RGB in [0, 1] to the fields at every pixel."""
        # The encoder was trained on BGR bytes, the low-level branch on what comes in.
        levels = self.encoder(255 * image.flip(1))
        details = self.low_level(image)
        up, up_confidence = self.up_decoder(levels, details)
        sine, latitude_confidence = self.latitude_decoder(levels, details)
        return Prediction(
            up=functional.normalize(up, dim=1),
            latitude=torch.asin(torch.tanh(sine).clamp(-SINE_LIMIT, SINE_LIMIT)),
            up_confidence=up_confidence,
            latitude_confidence=latitude_confidence,
        )


class Decoder(nn.Module):
    """Encoder levels and low-level features to a raw field and its confidence."""

    def __init__(
        self, channels: int, context_width: int, rank: int, width: int, outputs: int
    ) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(channels, context_width, kernel_size=1)
        self.hamburger = Hamburger(context_width, rank)
        self.align = nn.Conv2d(context_width, width, kernel_size=1)
        self.refine = _conv3x3(width, width, bias=False)
        self.fusion = Fusion(width)
        self.head = nn.Conv2d(width, outputs, kernel_size=1)
        self.confidence = nn.Sequential(
            _conv3x3(width, width, bias=False), nn.ReLU(), nn.Conv2d(width, 1, kernel_size=1)
        )

    def forward(self, levels: list[Tensor], details: Tensor) -> tuple[Tensor, Tensor]:
        """levels: (B, ., H/4, W/4) and smaller; details: (B, width, H, W).

        Returns (B, outputs, H, W) and (B, H, W) in [0, 1].
        """
        size = levels[0].shape[-2:]
        x = torch.cat([levels[0], *(_resize(level, size) for level in levels[1:])], 1)
        x = self.hamburger(functional.relu(self.squeeze(x)))
        x = _double(functional.relu(self.align(x)))
        x = _double(functional.relu(self.refine(x)))
        x = self.fusion(x, details)
        return self.head(x), torch.sigmoid(self.confidence(x)).squeeze(1)


class Fusion(nn.Module):
    """Adds the low-level features, with a residual unit before and one after."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.before = ResidualUnit(width)
        self.after = ResidualUnit(width)

    def forward(self, x: Tensor, details: Tensor) -> Tensor:
        fused: Tensor = self.after(x + self.before(details))
        return fused


class ResidualUnit(nn.Module):
    """relu(x) + conv(relu(conv(relu(x)))). The published weights were trained with the ReLU on
    the skip as well."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = _conv3x3(width, width)
        self.conv2 = _conv3x3(width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(x)
        y: Tensor = self.conv2(functional.relu(self.conv1(x)))
        return x + y


def _conv3x3(channels: int, width: int, bias: bool = True) -> nn.Conv2d:
    return nn.Conv2d(channels, width, kernel_size=3, padding=1, bias=bias)


def _resize(x: Tensor, size: torch.Size) -> Tensor:
    return functional.interpolate(x, size=size, mode="bilinear", align_corners=False)


def _double(x: Tensor) -> Tensor:
    return functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)


_GATE = ".attn.spatial_gating_unit."

RENAMED = {
    "encoder.stages.0.entry.": "backbone.patch_embed1.proj.",
    **{f"encoder.stages.{i}.entry.0.": f"backbone.patch_embed{i + 1}.proj." for i in range(1, 4)},
    **{f"encoder.stages.{i}.entry.1.": f"backbone.patch_embed{i + 1}.norm." for i in range(1, 4)},
    **{f"encoder.stages.{i}.blocks.": f"backbone.block{i + 1}." for i in range(4)},
    **{f"encoder.stages.{i}.norm.": f"backbone.norm{i + 1}." for i in range(4)},
    ".scale1": ".layer_scale_1",
    ".scale2": ".layer_scale_2",
    ".attention.enter.": ".attn.proj_1.",
    ".attention.square.": f"{_GATE}conv0.",
    **{f".attention.strips.{i}.{j}.": f"{_GATE}conv{i}_{j + 1}." for i in range(3) for j in (0, 1)},
    ".attention.mix.": f"{_GATE}conv3.",
    ".attention.leave.": ".attn.proj_2.",
    ".mlp.enter.": ".mlp.fc1.",
    ".mlp.spread.": ".mlp.dwconv.dwconv.",
    ".mlp.leave.": ".mlp.fc2.",
    "low_level.0.": "ll_enc.conv1.conv.",
    "low_level.2.": "ll_enc.conv2.conv.",
    "up_decoder.head.": "perspective_decoder.up_head.linear_pred_up.",
    "latitude_decoder.head.": "perspective_decoder.latitude_head.linear_pred_latitude.",
    "up_decoder.": "perspective_decoder.up_head.decoder.",
    "latitude_decoder.": "perspective_decoder.latitude_head.decoder.",
    ".squeeze.": ".squeeze.conv.",
    ".hamburger.enter.": ".hamburger.ham_in.conv.",
    ".hamburger.leave.": ".hamburger.ham_out.conv.",
    ".align.": ".align.conv.",
    ".refine.": ".out_conv.conv.",
    ".fusion.before.": ".ll_fusion.resConfUnit1.",
    ".fusion.after.": ".ll_fusion.resConfUnit2.",
    ".confidence.0.": ".linear_pred_uncertainty.0.conv.",
    ".confidence.2.": ".linear_pred_uncertainty.1.",
}
"""Parts of our names and what the published checkpoints call them, applied in this order."""


def published_name(name: str) -> str:
    """What the published checkpoints call a tensor of ``PublishedNetwork``.

    >>> published_name("encoder.stages.2.blocks.0.mlp.spread.bias")
    'backbone.block3.0.mlp.dwconv.dwconv.bias'
    """
    for ours, theirs in RENAMED.items():
        name = name.replace(ours, theirs)
    return name


def load_published(
    source: str | os.PathLike[str] | Mapping[str, Any], network: PublishedNetwork | None = None
) -> PublishedNetwork:
    """The network with the weights of a published checkpoint, in evaluation mode.

    source: a torch file, or what one holds: {"model": state dict}, or the state dict itself.
    network: the network to load into, by default a new one of the published size. Every tensor
    must be there, in its shape, and no other.
    """
    network = PublishedNetwork() if network is None else network
    place = "the given state dict" if isinstance(source, Mapping) else os.fspath(source)
    content = source if isinstance(source, Mapping) else _read(source)
    state = content.get("model", content)
    if not isinstance(state, Mapping):
        raise WeightsError(f"{place}: 'model' is a {type(state).__name__}, not a state dict")
    expected = {published_name(name): (name, t) for name, t in network.state_dict().items()}
    wrong = {
        "missing": [name for name in expected if name not in state],
        "unexpected": [str(name) for name in state if name not in expected],
        "of the wrong shape": [
            f"{name} {_shape(state[name])} instead of {_shape(tensor)}"
            for name, (_, tensor) in expected.items()
            if name in state and _shape(state[name]) != _shape(tensor)
        ],
    }
    if any(wrong.values()):
        faults = "; ".join(f"{what}: {_few(names)}" for what, names in wrong.items() if names)
        raise WeightsError(f"{place} does not hold the published network: {faults}")
    network.load_state_dict({ours: state[name] for name, (ours, _) in expected.items()})
    return network.eval()


def _read(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise WeightsError(f"{os.fspath(path)}: no such file of weights") from None
    except Exception as error:  # Torch's reader raises anything on a file that is not its own.
        raise WeightsError(
            f"{os.fspath(path)} cannot be read as a torch file of plain tensors "
            f"({type(error).__name__}): it is damaged, or holds other objects too"
        ) from error
    if not isinstance(content, Mapping):
        raise WeightsError(f"{os.fspath(path)} holds a {type(content).__name__}, not a state dict")
    return content


def _shape(value: object) -> str:
    return str(tuple(value.shape)) if isinstance(value, Tensor) else type(value).__name__


def _few(names: list[str], most: int = 3) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


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
            MscanStage(entry, width, depth, ratio)
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


class MscanStage(nn.Module):
    """Entry (which shrinks the map), blocks, layer norm over channels."""

    def __init__(self, entry: nn.Sequential, width: int, depth: int, mlp_ratio: int) -> None:
        super().__init__()
        self.entry = entry
        self.blocks = nn.Sequential(*(MscanBlock(width, mlp_ratio) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(self.entry(x))
        normed: Tensor = self.norm(x.permute(0, 2, 3, 1))
        return normed.permute(0, 3, 1, 2)


class MscanBlock(nn.Module):
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

    def __init__(self, block: MscanBlock) -> None:
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


def fixed_bases(dim: int, rank: int) -> Tensor:
    """(dim, rank) uniform random numbers, the same on every call, with columns of unit norm."""
    uniform = torch.rand(dim, rank, generator=torch.Generator().manual_seed(0))
    return functional.normalize(uniform, dim=0)


def factorise(X: Tensor, bases: Tensor, rounds: int) -> Tensor:
    """The approximation B C' of X (B, D, N) >= 0 after some rounds from bases (D, R) >= 0."""
    bases = bases.expand(len(X), -1, -1)
    match = X.mT @ bases
    coefficients = match.softmax(-1)
    for _ in range(rounds):
        coefficients = _update(coefficients, match, bases)
        bases = _update(bases, X @ coefficients, coefficients)
        match = X.mT @ bases
    return bases @ _update(coefficients, match, bases).mT


def _update(factor: Tensor, match: Tensor, other: Tensor) -> Tensor:
    """One multiplicative step of a factor, given the data times the other factor."""
    return factor * match / (factor @ (other.mT @ other) + FLOOR)


class Hamburger(nn.Module):
    """1x1 and ReLU, factorisation, 1x1 and ReLU; added to the input, and ReLU."""

    bases: Tensor
    """(width, rank) where the factorisation starts. Not trained and not part of the weights;
    assign to it to start elsewhere."""

    def __init__(self, width: int, rank: int) -> None:
        super().__init__()
        self.enter = nn.Conv2d(width, width, kernel_size=1)
        self.leave = nn.Conv2d(width, width, kernel_size=1)
        self.register_buffer("bases", fixed_bases(width, rank), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """(B, width, H, W) to the same shape."""
        columns = functional.relu(self.enter(x)).flatten(2)
        rounds = TRAINING_ROUNDS if self.training else EVALUATION_ROUNDS
        context = factorise(columns, self.bases, rounds).reshape(x.shape)
        return functional.relu(x + functional.relu(self.leave(context)))
