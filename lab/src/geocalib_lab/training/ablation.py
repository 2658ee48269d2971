"""What is taken away, or put in place of ours, to learn what it is good for: confidences, the lean
decoder, panoramas; the whole way to the camera."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from geocalib.nets.direct import DeepCalib, ParamNet, TellingNetwork
from geocalib.nets.encoders import Encoder
from geocalib.nets.lean import LeanConfig, LeanNetwork
from geocalib.nets.prediction import Prediction
from geocalib.nets.published import SINE_LIMIT, Decoder
from geocalib_lab.panoramas.panorama import owner_of
from geocalib_lab.training.owners import among

Baseline = Literal["deepcalib", "paramnet"]
"""Another method to train: direct classification; regression from fields, which are learnt without
the camera and without confidences."""


@dataclass(frozen=True)
class AblationConfig:
    """By default, nothing is taken away."""

    decoder: Literal["lean", "published"] = "lean"
    confidences: Literal["learnt", "alike"] = "learnt"
    """alike: every pixel counts the same, in training and in validation."""
    panorama_share: float = 1.0
    """Part of the owners whose panoramas are learnt from."""


def build_network(
    config: LeanConfig,
    ablation: AblationConfig,
    baseline: Baseline | None = None,
    tells: bool = False,
) -> nn.Module:
    """A fresh network, with a part ``encoder``. Of a baseline, and of one that also tells the
    camera directly, nothing is taken away."""
    if tells:
        return TellingNetwork(config)
    if baseline == "deepcalib":
        return DeepCalib(config)
    if baseline == "paramnet":
        return _without_confidences(ParamNet(config))
    network: nn.Module = LeanNetwork(config)
    if ablation.decoder == "published":
        network = PublishedDecoders(config.encoder)
    return AllAlike(network) if ablation.confidences == "alike" else network


def _without_confidences(network: ParamNet) -> ParamNet:
    """With confidences that are all 1/2. They stay so: losses of fields have no gradient in them,
    and what is zero does not decay."""
    network.fields.heads.mix.weight.data[3:] = 0.0
    return network


def keep_owners(names: list[str], share: float) -> list[str]:
    """The files of a share of the owners: always the same ones, the fewer among the more."""
    chosen = among(share)
    return [name for name in names if chosen(owner_of(name))] if share < 1 else names


class AllAlike(nn.Module):
    """A network whose confidences are all 1."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    @property
    def encoder(self) -> nn.Module:
        """The part that may be pretrained."""
        return self.network.get_submodule("encoder")

    def forward(self, image: Tensor) -> Prediction:
        prediction: Prediction = self.network(image)
        ones = torch.ones_like(prediction.latitude_confidence)
        return prediction._replace(up_confidence=ones, latitude_confidence=ones)


class PublishedDecoders(nn.Module):
    """Any encoder with the decoders of the published network."""

    def __init__(
        self, encoder: str, width: int = 64, context_width: int = 512, rank: int = 64
    ) -> None:
        super().__init__()
        self.encoder = Encoder(encoder)
        self.low_level = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
        )
        channels = sum(self.encoder.widths)
        self.up_decoder = Decoder(channels, context_width, rank, width, outputs=2)
        self.latitude_decoder = Decoder(channels, context_width, rank, width, outputs=1)

    def forward(self, image: Tensor) -> Prediction:
        """(B, 3, H, W) RGB in [0, 1] to the fields at every pixel."""
        levels, details = list(self.encoder(image)), self.low_level(image)
        up, up_confidence = self.up_decoder(levels, details)
        sine, latitude_confidence = self.latitude_decoder(levels, details)
        # In full precision, as the last step is where half precision would show.
        sine = torch.tanh(sine.float()).clamp(-SINE_LIMIT, SINE_LIMIT)
        return Prediction(
            up=functional.normalize(up.float(), dim=1),
            latitude=torch.asin(sine),
            up_confidence=up_confidence.float(),
            latitude_confidence=latitude_confidence.float(),
        )
