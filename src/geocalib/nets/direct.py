"""Networks that answer the camera themselves, without a fit: what others do, to compare with.

Both are made of parts of the lean network, so that they differ from it, and from each other, in the
way to the camera alone. Both answer the same four numbers of a picture (``PARAMETERS``).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from geocalib.nets.encoders import Encoder
from geocalib.nets.focal_head import BINS, HIGH, LOW, PARAMETERS
from geocalib.nets.lean import Context, LeanConfig, LeanNetwork, cell_coordinates
from geocalib.nets.prediction import Prediction

LEVEL = (0.0, 0.0, 1.0, 0.0)
"""What a fresh regressor answers."""

REGRESSOR_WIDTHS = (64, 128, 256)


class Binned(NamedTuple):
    """How likely each bin of each parameter of B pictures is."""

    logits: Tensor
    """(B, 4, BINS)."""

    @property
    def values(self) -> Tensor:
        """(B, 4) the median of each parameter, which loses less than the middle of a bin."""
        chance = self.logits.float().softmax(-1)
        below = chance.cumsum(-1)
        middle = (below < 0.5).sum(-1, keepdim=True).clamp(max=BINS - 1)
        here, up_to = (part.gather(-1, middle) for part in (chance, below))
        share = (middle + (0.5 - up_to + here) / here)[..., 0] / BINS
        low, high = _range(share)
        return torch.lerp(low.expand_as(share), high.expand_as(share), share)


class Regressed(NamedTuple):
    """The parameters of B pictures, and the fields that they were read off."""

    fields: Prediction
    values: Tensor
    """(B, 4)."""


def bins_of(values: Tensor) -> Tensor:
    """(B, 4) numbers of the bins of parameters (B, 4); beyond their range, the outermost."""
    low, high = _range(values)
    return ((values - low) / (high - low) * BINS).long().clamp(0, BINS - 1)


def _range(like: Tensor) -> tuple[Tensor, Tensor]:
    return like.new_tensor(LOW), like.new_tensor(HIGH)


class DeepCalib(nn.Module):
    """Direct classification, in the manner of DeepCalib: an encoder, a mean, a row of bins each.

    The encoder and the attention above it are the lean network's. The pitch stands in for the
    horizon's offset, which is far outside of pictures that look steeply down.
    """

    def __init__(self, config: LeanConfig) -> None:
        super().__init__()
        self.config = config
        width = config.widths[-1]
        self.encoder = Encoder(config.encoder)
        self.context = Context(self.encoder, width, config.blocks, config.expansion)
        self.classify = nn.Linear(width, len(PARAMETERS) * BINS)

    def forward(self, image: Tensor) -> Binned:
        """image: (B, 3, H, W) RGB in [0, 1], H and W multiples of 32."""
        return _classified(self.context(self.encoder(image)), self.classify)


class ParamNet(nn.Module):
    """Regression from fields, in the manner of Perspective Fields: the lean network sees fields,
    and a small network reads the camera off them.

    The fields learn nothing from the camera: so they are those of a network that was trained
    without a camera in the loop, too, and one run serves both baselines.
    """

    def __init__(self, config: LeanConfig) -> None:
        super().__init__()
        self.config = config
        self.fields = LeanNetwork(config)
        # The fields, and where each cell lies.
        channels = (5, *REGRESSOR_WIDTHS)
        self.read = nn.Sequential(*map(_halve, channels, channels[1:]))
        self.regress = nn.Linear(channels[-1], len(PARAMETERS))
        nn.init.normal_(self.regress.weight, std=0.01)
        self.regress.bias = nn.Parameter(torch.tensor(LEVEL))

    @property
    def encoder(self) -> Encoder:
        """The part that may be pretrained."""
        return self.fields.encoder

    def forward(self, image: Tensor) -> Regressed:
        """image: (B, 3, H, W) RGB in [0, 1], H and W multiples of 32."""
        fields: Prediction = self.fields(image)
        batch, _, height, width = fields.latitude.shape
        x, y = cell_coordinates(height, width, fields.latitude)
        places = torch.stack([x.expand(height, width), y[:, None].expand(height, width)])
        seen = torch.cat(
            [fields.up.detach(), fields.latitude.detach(), places.expand(batch, -1, -1, -1)], 1
        )
        return Regressed(fields, _summed_up(self.read(seen), self.regress))


def _halve(before: int, after: int) -> nn.Sequential:
    """A map of half the size."""
    return nn.Sequential(
        nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU(inplace=True),
        nn.Conv2d(after, after, 3, padding=1, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU(inplace=True),
    )


def _classified(context: Tensor, layer: nn.Linear) -> Binned:
    return Binned(_summed_up(context, layer).reshape(-1, len(PARAMETERS), BINS))


def _summed_up(features: Tensor, layer: nn.Linear) -> Tensor:
    """(B, outputs) of the mean of features (B, C, H, W), in full precision."""
    with torch.autocast(features.device.type, enabled=False):
        answer: Tensor = layer(features.to(layer.weight.dtype).mean((2, 3)))
    return answer
