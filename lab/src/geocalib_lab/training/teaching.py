"""A larger network that shows a smaller one what it sees.

The teacher looks at pictures in its own, larger size and before they are changed (blurred,
compressed, darkened), the pupil at what is left of them. So pictures teach of which nobody knows
the truth, and where it is known the pupil learns what can be seen of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from geocalib.errors import ConfigError
from geocalib.nets.lean import LeanNetwork
from geocalib.nets.prediction import Prediction
from geocalib.nets.weights import load_network


@dataclass(frozen=True)
class Teacher:
    """A trained network and the pictures that it wants."""

    network: LeanNetwork
    short_side: int
    """Of its inputs, pixels."""
    detail: int
    """Pixels across the shorter side that inputs are enlarged from."""

    @torch.no_grad()
    def fields(self, images: Tensor, size: tuple[int, int]) -> Prediction:
        """What it sees in pictures (B, 3, H, W), for a pupil whose input has a width and height."""
        scale = self.short_side / min(size)
        step = self.network.multiple
        wanted = [step * round(scale * side / step) for side in reversed(size)]
        height, width = (side // self.network.stride for side in reversed(size))
        with torch.autocast(images.device.type, torch.bfloat16, enabled=images.is_cuda):
            seen = functional.interpolate(images, wanted, mode="bilinear", align_corners=False)
            seen = seen.contiguous(memory_format=torch.channels_last)
            prediction: Prediction = self.network(seen)
        up, latitude, *confidences = (_resized(value, height, width) for value in prediction)
        # A shape in whole steps is not quite the pupil's: what it stretches, turns.
        stretch = up.new_tensor([wanted[1] / size[0], wanted[0] / size[1]])
        up = functional.normalize(up / stretch[:, None, None], dim=1)
        return Prediction(up, latitude, *confidences)


def _resized(values: Tensor, height: int, width: int) -> Tensor:
    """A field (B, C, H, W) or confidences (B, H, W) in another size."""
    maps = values.float().reshape(len(values), -1, *values.shape[-2:])
    resized = functional.interpolate(maps, (height, width), mode="bilinear", align_corners=False)
    return resized.reshape(*values.shape[:-2], height, width)


def read_teacher(path: Path, device: torch.device) -> Teacher:
    """The network of a file of weights, or of packaged ones by their name."""
    loaded = load_network(str(path))
    if not isinstance(loaded.network, LeanNetwork):
        raise ConfigError(f"{path} is no network of ours, so it cannot teach")
    network, card = loaded.network.to(device), loaded.card
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return Teacher(network, card.short_side, card.detail or card.short_side)
