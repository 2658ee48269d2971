"""``TorchEngine``: a network in torch, on a device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.utils import convert_conv2d_weight_memory_format

from geocalib.arrays import to_numpy
from geocalib.errors import ConfigError
from geocalib.geometry.fields import Fields
from geocalib.imaging import InputSpec
from geocalib.imaging.read import quiet
from geocalib.nets.direct import Binned
from geocalib.nets.focal_head import focal_of, network_input
from geocalib.nets.prediction import Prediction
from geocalib.nets.upright import find_upright
from geocalib.nets.weights.files import LoadedNetwork, find_opinion
from geocalib.pipeline.parallel.threads import batch_on

Floats = npt.NDArray[np.float32]


class TorchEngine:
    """A network on a device. See ``geocalib.pipeline.predict.Engine``."""

    def __init__(self, loaded: LoadedNetwork, device: torch.device, compile: bool) -> None:
        """compile: whether the network is compiled by torch.compile."""
        network, card = loaded.network.to(device), loaded.card
        self.card = card
        convert_conv2d_weight_memory_format(network, torch.channels_last)
        self.device = device
        self.network = torch.compile(network) if compile else network
        self.spec = InputSpec(card.short_side, network.multiple, card.largest_aspect, card.detail)
        self.batch = batch_on(device.type)
        self.on_processor = device.type == "cpu"
        self.confidence_scale = card.confidence_scale
        self._upright = find_upright(loaded)
        if self._upright is not None:
            self._upright.to(device)
            if compile:
                self._upright.compile()
        self._opinion = find_opinion(card)
        if self._opinion is not None:
            self._opinion[0].to(device)

    @property
    def has_orientation(self) -> bool:
        """Whether it can tell how pictures stand."""
        return self._upright is not None

    @property
    def has_focal_head(self) -> bool:
        """Whether a second network tells the focal length."""
        return self._opinion is not None

    def predict(self, images: Floats) -> Fields:
        """The fields of (B, 3, H, W) images: of CUDA there, and else in NumPy."""
        with self._running():
            seen = self.network(self._moved(images))
        return self._fields(seen)

    def predict_oriented(self, images: Floats) -> tuple[Fields, Floats]:
        """The fields of (B, 3, H, W) images, and how they stand, as ``orientation`` tells it."""
        assert self._upright is not None
        with self._running():
            seen, stands = self._upright(self._moved(images))
        return self._fields(seen), to_numpy(stands)

    def orientation(self, images: Floats) -> Floats:
        """(B, 4) log-probabilities that (B, 3, H, W) images stand turned by 0 to 3 quarters."""
        assert self._upright is not None
        with self._running():
            stands = self._upright.orientation(self._moved(images))
        return np.asarray(to_numpy(stands))

    def focal_estimate(self, images: Floats) -> npt.NDArray[np.float64]:
        """(B, 2) the logarithm of the focal length by the diagonal, and its sigma."""
        assert self._opinion is not None
        network, card = self._opinion
        with self._running():
            answer: Binned = network(self._moved(network_input(images, card)))
        return focal_of(to_numpy(answer.logits.float()), images.shape, card)

    def _fields(self, seen: Prediction) -> Fields:
        fields = Fields(**{name: value.float() for name, value in seen._asdict().items()})
        # The fit needs double precision, which mps does not have; on processors it is NumPy's.
        return fields.map(torch.clone if self.device.type == "cuda" else to_numpy)

    def _moved(self, images: Floats) -> Tensor:
        whole = torch.from_numpy(np.ascontiguousarray(images))
        return whole.to(self.device, memory_format=torch.channels_last)

    @contextmanager
    def _running(self) -> Iterator[None]:
        """As networks run: without gradients."""
        with torch.inference_mode(), quiet():
            yield


def find_device(name: str) -> torch.device:
    """The device of a name; "auto" is the fastest kind there is."""
    counts = {
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "mps": int(torch.backends.mps.is_available()),
        "cpu": 1,
    }
    there = [kind for kind, count in counts.items() if count]
    if name == "auto":
        return torch.device(there[0])
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or (device.index or 0) >= counts.get(device.type, 0):
        raise ConfigError(
            f"there is no device {name!r} here; use auto or one of: {', '.join(there)}"
        )
    return device
