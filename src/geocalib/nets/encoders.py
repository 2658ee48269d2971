"""Encoders by name: an image to feature maps at several strides.

An encoder is a trunk with the input normalisation it was trained with, so that all of them take
RGB in [0, 1].

The default is EfficientNet-Lite2: inverted residuals with ReLU6 and nothing else. Its strided
convolutions pad as TensorFlow's "SAME" does, which the weights were trained with: an even map gets
its odd padding pixel at the right and the bottom.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from geocalib.errors import ConfigError, WeightsError
from geocalib.nets.published import TINY, Mscan

STEM_WIDTH = 32
NORM_EPS = 1e-3


class Stage(NamedTuple):
    """A run of blocks; the first one changes stride and width."""

    depth: int
    kernel: int
    stride: int
    expansion: int
    width: int


STAGES = (
    Stage(depth=1, kernel=3, stride=1, expansion=1, width=16),
    Stage(depth=3, kernel=3, stride=2, expansion=6, width=24),
    Stage(depth=3, kernel=5, stride=2, expansion=6, width=48),
    Stage(depth=4, kernel=3, stride=2, expansion=6, width=88),
    Stage(depth=4, kernel=5, stride=1, expansion=6, width=120),
    Stage(depth=5, kernel=5, stride=2, expansion=6, width=208),
    Stage(depth=1, kernel=3, stride=1, expansion=6, width=352),
)

OUTPUTS = (1, 2, 4, 6)
"""The stages whose ends are handed out: the last ones at strides 4, 8, 16 and 32."""


class EfficientNetLite(nn.Module):
    """Images to feature maps at strides 4, 8, 16 and 32; H and W multiples of 32.

    >>> import torch
    >>> [tuple(level.shape) for level in EfficientNetLite()(torch.zeros(1, 3, 64, 96))][::3]
    [(1, 24, 16, 24), (1, 352, 2, 3)]
    """

    widths = tuple(STAGES[i].width for i in OUTPUTS)
    strides = (4, 8, 16, 32)

    def __init__(self) -> None:
        super().__init__()
        self.stem = _conv(3, STEM_WIDTH, 3, stride=2).append(_relu6())
        self.stages = nn.ModuleList()
        before = STEM_WIDTH
        for stage in STAGES:
            blocks = nn.Sequential()
            for i in range(stage.depth):
                stride = stage.stride if i == 0 else 1
                blocks.append(Block(before, stage.width, stage.kernel, stride, stage.expansion))
                before = stage.width
            self.stages.append(blocks)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """(B, 3, H, W) to one (B, widths[i], H / strides[i], W / strides[i]) per output."""
        x = self.stem(x)
        levels = []
        for i, stage in enumerate(self.stages):
            x = stage(x)
            if i in OUTPUTS:
                levels.append(x)
        return tuple(levels)


class Block(nn.Module):
    """1x1 to the hidden width, depth-wise, 1x1 back; added to the input where shapes allow."""

    def __init__(self, before: int, after: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = expansion * before
        self.expand = _conv(before, hidden, 1).append(_relu6()) if expansion > 1 else None
        self.spread = _conv(hidden, hidden, kernel, stride, groups=hidden).append(_relu6())
        self.project = _conv(hidden, after, 1)
        self.residual = stride == 1 and before == after

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x if self.expand is None else self.expand(x)
        y = self.project(self.spread(y))
        return x + y if self.residual else y


def _conv(before: int, after: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """Convolution with "SAME" padding, and batch norm. A stride of 2 expects an even map."""
    conv = (
        nn.Conv2d(before, after, kernel, padding=kernel // 2, groups=groups, bias=False)
        if stride == 1
        else HalvingConv(before, after, kernel, groups)
    )
    return nn.Sequential(OrderedDict(conv=conv, norm=nn.BatchNorm2d(after, eps=NORM_EPS)))


def _relu6() -> nn.ReLU6:
    # What comes before, a norm or a convolution, needs its output no more.
    return nn.ReLU6(inplace=True)


class HalvingConv(nn.Conv2d):
    """A convolution with a stride of 2 and an odd kernel, for even maps: these are padded by one
    pixel less at the left and the top than at the right and the bottom."""

    def __init__(self, before: int, after: int, kernel: int, groups: int) -> None:
        super().__init__(before, after, kernel, stride=2, groups=groups, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        last = self.kernel_size[0] // 2
        return super().forward(functional.pad(x, (last - 1, last, last - 1, last)))

    def folded(self) -> nn.Conv2d:
        """The same with equal padding, which costs no copy of the map: the kernel gets a row at
        the top and a column at the left that are zero."""
        kernel = self.kernel_size[0]
        conv = nn.Conv2d(
            self.in_channels,
            self.out_channels,
            kernel + 1,
            stride=2,
            padding=kernel // 2,
            groups=self.groups,
            bias=False,
            device="meta",  # No random weights are drawn.
        )
        conv.weight = nn.Parameter(functional.pad(self.weight.detach(), (1, 0, 1, 0)))
        return conv.eval()


UNUSED = re.compile(r"_(conv_head|bn1|fc)\.")
"""Released tensors that the encoder leaves aside: the classifier."""

_PARTS = {
    "_expand_conv": "expand.conv",
    "_bn0": "expand.norm",
    "_depthwise_conv": "spread.conv",
    "_bn1": "spread.norm",
    "_project_conv": "project.conv",
    "_bn2": "project.norm",
}


def translate(released: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The released tensors under the names of ``EfficientNetLite``; unknown names stay."""
    renames = {"_conv_stem": "stem.conv", "_bn0": "stem.norm"}
    places = [f"stages.{i}.{j}" for i, stage in enumerate(STAGES) for j in range(stage.depth)]
    for i, place in enumerate(places):
        renames |= {f"_blocks.{i}.{old}": f"{place}.{new}" for old, new in _PARTS.items()}
    translated = {}
    for name, value in released.items():
        module, _, tensor = name.rpartition(".")
        if not UNUSED.match(name):
            translated[f"{renames.get(module, module)}.{tensor}"] = value
    return translated


IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


class Trunk(Protocol):
    """What turns a normalised image into feature maps, finest first."""

    widths: tuple[int, ...]
    """Number of channels of each map."""
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
        EfficientNetLite,
        (127 / 255,) * 3,
        (128 / 255,) * 3,
        translate,
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
