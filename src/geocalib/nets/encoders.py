"""Encoders by name: an image to feature maps at several strides.

An encoder is a trunk with the input normalisation it was trained with, so that all of them take
RGB in [0, 1].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import torch
from torch import Tensor, nn

from geocalib.errors import ConfigError, WeightsError
from geocalib.nets import efficientnet_lite
from geocalib.nets.published import TINY, Mscan

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


class Trunk(Protocol):
    """What turns a normalised image into feature maps, finest first."""

    widths: tuple[int, ...]
    """Channels of each map."""
    strides: tuple[int, ...]
    """Input pixels per cell of each map."""

    def __call__(self, x: Tensor, /) -> list[Tensor] | tuple[Tensor, ...]: ...


@dataclass(frozen=True)
class EncoderSpec:
    """How an encoder is made, what it expects, and how its released weights are renamed."""

    build: Callable[[], nn.Module]
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    translate: Callable[[Mapping[str, Tensor]], dict[str, Tensor]] | None = None


ENCODERS = {
    "efficientnet_lite2": EncoderSpec(
        efficientnet_lite.EfficientNetLite,
        (127 / 255,) * 3,
        (128 / 255,) * 3,
        efficientnet_lite.translate,
    ),
    "mscan_tiny": EncoderSpec(lambda: Mscan(*TINY), IMAGENET_MEAN, IMAGENET_STD),
}


class Encoder(nn.Module):
    """The encoder of that name, with fresh weights.

    >>> Encoder("mscan_tiny").widths
    (32, 64, 160, 256)
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, name: str) -> None:
        super().__init__()
        if name not in ENCODERS:
            raise ConfigError(f"no encoder is named {name!r}; there are {', '.join(ENCODERS)}")
        spec = ENCODERS[name]
        self.name = name
        self.trunk = spec.build()
        trunk = cast(Trunk, self.trunk)
        self.widths, self.strides = trunk.widths, trunk.strides
        # Part of the architecture, not of the weights: known also where these are yet to be read.
        mean, std = (torch.tensor(each, device="cpu") for each in (spec.mean, spec.std))
        self.register_buffer("mean", mean[:, None, None], persistent=False)
        self.register_buffer("scale", 1 / std[:, None, None], persistent=False)

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        """(B, 3, H, W) RGB in [0, 1], H and W multiples of 32, to one
        (B, widths[i], H / strides[i], W / strides[i]) per stage."""
        return tuple(self.trunk((image - self.mean) * self.scale))


def load_pretrained(encoder: Encoder, path: Path | str) -> None:
    """Fill the encoder from a released file, or from a copy of its own state dict, in any
    floating-point precision; by torch, or ``.safetensors``. Every tensor must be there and fit;
    released tensors that the encoder has no use for (``UNUSED`` in its module) are left aside, any
    other is refused."""
    stored = _read(Path(path))
    if not isinstance(stored, dict) or not all(isinstance(v, Tensor) for v in stored.values()):
        raise WeightsError(f"{path} must hold one flat state dict of tensors")
    translate = ENCODERS[encoder.name].translate
    if translate is not None and not any(name.startswith("trunk.") for name in stored):
        stored = {f"trunk.{name}": value for name, value in translate(stored).items()}
    wanted = encoder.state_dict()
    problems = [f"{name} is missing" for name in wanted if name not in stored]
    problems += [f"{name} has no place" for name in stored if name not in wanted]
    problems += [
        f"{name} is {tuple(stored[name].shape)} instead of {tuple(value.shape)}"
        for name, value in wanted.items()
        if name in stored and stored[name].shape != value.shape
    ]
    if problems:
        more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
        raise WeightsError(
            f"{path} does not hold the weights of {encoder.name}: {problems[0]}{more}"
        )
    encoder.load_state_dict(stored)


def _read(path: Path) -> object:
    try:
        if path.suffix == ".safetensors":
            # Not at the top: a machine to train on may lack it.
            from safetensors.torch import load

            return load(path.read_bytes())
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise WeightsError(f"{path} cannot be read as a file of weights: {reason}") from error
