"""Which side of a picture is up, read off what the lean network's encoder makes of it.

The confidences of the network do not show it: an upside-down wall looks like a wall. Its features
of skies, floors and faces do, by a linear classifier, which is fitted to one set of weights after
their training (``geocalib_lab.training.upright``) and valid for these only.
"""

from __future__ import annotations

from importlib.resources import as_file
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from geocalib.errors import WeightsError
from geocalib.nets.lean import LeanNetwork
from geocalib.nets.prediction import Prediction
from geocalib.nets.weights.catalogue import PACKAGES, is_here, packaged
from geocalib.nets.weights.files import LoadedNetwork

FILE = "upright.safetensors"
WEIGHTS_KEY = "weights"
"""In the file's metadata: the SHA-256 of the weights that it was fitted to."""


class Upright(nn.Module):
    """A network with its classifier."""

    weight: Tensor
    bias: Tensor

    def __init__(self, network: LeanNetwork, weight: Tensor, bias: Tensor) -> None:
        """weight: (4, F). bias: (4,)."""
        super().__init__()
        self.network = network
        self.register_buffer("weight", weight)
        self.register_buffer("bias", bias)

    def forward(self, image: Tensor) -> tuple[Prediction, Tensor]:
        """What the network makes of inputs (B, 3, H, W), and how they stand, as ``orientation``."""
        levels = self.network.encoder(image)
        context = self.network.context(levels)
        return self.network.decode(levels, context), self._judge(_summary(levels, context))

    def orientation(self, image: Tensor) -> Tensor:
        """(B, 4) log-probabilities that inputs (B, 3, H, W) stand turned by 0 to 3 quarters.
        Without fields, so it takes less than all of the network."""
        return self._judge(features(self.network, image))

    def _judge(self, seen: Tensor) -> Tensor:
        return functional.linear(seen, self.weight, self.bias).log_softmax(1)


def features(network: LeanNetwork, images: Tensor) -> Tensor:
    """(B, F) of inputs (B, 3, H, W)."""
    levels = network.encoder(images)
    return _summary(levels, network.context(levels))


def _summary(levels: tuple[Tensor, ...], context: Tensor) -> Tensor:
    """(B, F) of what the encoder saw, and what that is together: means over quarters."""
    return torch.cat([_quarters(level).flatten(1) for level in (*levels[2:], context)], 1).float()


def _quarters(level: Tensor) -> Tensor:
    """(B, C, 2, 2) means over the quarters of (B, C, H, W); those of odd sides share a middle."""
    rows, columns = level.shape[-2:]
    halves = level[..., : (rows + 1) // 2, :], level[..., rows // 2 :, :]
    tall = torch.stack([half.mean(-2) for half in halves], -2)
    halves = tall[..., : (columns + 1) // 2], tall[..., columns // 2 :]
    return torch.stack([half.mean(-1) for half in halves], -1)


def find_upright(loaded: LoadedNetwork) -> Upright | None:
    """The classifier that was fitted to a network; None if none was."""
    if not isinstance(loaded.network, LeanNetwork):
        return None
    for resource in (packaged(name, FILE) for name in filter(is_here, PACKAGES)):
        if resource.is_file():
            with as_file(resource) as path:
                weights, weight, bias = read_upright(path)
            if weights == loaded.card.sha256:
                return Upright(loaded.network, weight, bias)
    return None


def read_upright(path: Path) -> tuple[str, Tensor, Tensor]:
    """The SHA-256 of the weights, and weight and bias of the classifier of a file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            weights = (file.metadata() or {})[WEIGHTS_KEY]
            return weights, file.get_tensor("weight").float(), file.get_tensor("bias").float()
    except (SafetensorError, KeyError, OSError) as error:
        raise WeightsError(f"{path} is damaged ({error}); install geocalib again") from error
