"""The networks that a run may train: ours, and the baselines to compare it with."""

from __future__ import annotations

from typing import Literal

from geocalib.nets.direct import DeepCalib, ParamNet
from geocalib.nets.lean import LeanConfig, LeanNetwork
from geocalib.nets.weights.files import Trained

Baseline = Literal["deepcalib", "paramnet"]
"""Another method to train: direct classification; regression from fields, which are learnt without
the camera and without confidences."""


def build_network(config: LeanConfig, baseline: Baseline | None = None) -> Trained:
    """A fresh network of ours, or of a baseline."""
    if baseline == "deepcalib":
        return DeepCalib(config)
    if baseline == "paramnet":
        return _without_confidences(ParamNet(config))
    return LeanNetwork(config)


def _without_confidences(network: ParamNet) -> ParamNet:
    """Makes all confidences 1/2. They stay so: losses of fields have no gradient in them, and what
    is zero does not decay."""
    network.fields.heads.mix.weight.data[3:] = 0.0
    return network
