"""The network of the GeoCalib paper, which its published checkpoints fit.

One encoder (MSCAN-B), a shallow branch at full resolution, and two decoders of one shape: up and
latitude. Unlike the published code, which starts its factorisations from random bases, this
one gives the same answer every time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from geocalib.errors import WeightsError
from geocalib.nets.hamburger import Hamburger
from geocalib.nets.mscan import BASE, Mscan, MscanShape
from geocalib.nets.prediction import Prediction

SINE_LIMIT = 1 - 1e-5
"""Largest sine of a latitude: beyond, the derivative of asin blows up."""


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
