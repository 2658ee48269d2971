"""``OnnxEngine``: a network in an ONNX file, run by ONNX Runtime, which starts at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from geocalib.geometry.fields import Fields
from geocalib.imaging import InputSpec
from geocalib.nets.onnx_names import FIELDS, IMAGE, LOGITS, STANDING, WANTED
from geocalib.nets.opinion import as_it_sees, focal_of
from geocalib.pipeline.onnx_session import Opened, open_networks, outputs
from geocalib.pipeline.predict import batch_on

Floats = npt.NDArray[np.float32]


class OnnxEngine:
    """A network in a file. See ``geocalib.pipeline.predict.Engine``."""

    def __init__(self, weights: str | Path = "lean", device: str = "auto") -> None:
        """weights: "lean", "large", or a file that ``geocalib export onnx`` wrote. device: "auto",
        or a name of ``onnx_session.PROVIDERS``, with the number of a card: "cuda:1"."""
        self._take(open_networks(weights, device), device)

    @classmethod
    def of(cls, networks: tuple[Opened, Opened | None], device: str) -> OnnxEngine:
        """That of networks which were opened for this device."""
        engine = cls.__new__(cls)
        engine._take(networks, device)
        return engine

    def _take(self, networks: tuple[Opened, Opened | None], device: str) -> None:
        first, self._second = networks
        self._session, self.card, kind = first.session, first.card, first.kind
        self.device = device if device.partition(":")[0] == kind else kind
        card = self.card
        self.spec = InputSpec(card.short_side, first.multiple, card.largest_aspect, card.detail)
        self.batch = batch_on(kind)
        self.on_processor = kind == "cpu"
        self.confidence_scale = card.confidence_scale

    @property
    def knows_upright(self) -> bool:
        """Whether it can tell how pictures stand."""
        return STANDING in outputs(self._session)

    @property
    def has_opinion(self) -> bool:
        """Whether a second network tells the focal length."""
        return self._second is not None

    def predict(self, images: Floats) -> Fields:
        """The fields of (B, 3, H, W) images."""
        return _fields(self._run(FIELDS, {IMAGE: _single(images)}))

    def look(self, images: Floats) -> tuple[Fields, Floats]:
        """The fields of (B, 3, H, W) images, and how they stand, as ``standing`` tells it."""
        *values, stands = self._run((*FIELDS, STANDING), {IMAGE: _single(images)})
        return _fields(values), stands

    def standing(self, images: Floats) -> Floats:
        """(B, 4) log-probabilities that (B, 3, H, W) images stand turned by 0 to 3 quarters."""
        given = {IMAGE: _single(images), WANTED: np.array(False)}
        return self._run((STANDING,), given)[0]

    def opinion(self, images: Floats) -> npt.NDArray[np.float64]:
        """(B, 2) the logarithm of the focal length by the diagonal, and its sigma."""
        assert self._second is not None
        card = self._second.card
        logits: Floats = self._second.session.run((LOGITS,), {IMAGE: as_it_sees(images, card)})[0]
        return focal_of(logits, images.shape, card)

    def _run(self, names: Sequence[str], given: dict[str, npt.NDArray[Any]]) -> list[Floats]:
        values: list[Floats] = self._session.run(names, given)
        return values


def _single(images: Floats) -> Floats:
    """In single precision, in one piece."""
    return np.ascontiguousarray(images, np.float32)


def _fields(values: Sequence[Floats]) -> Fields:
    """Of the outputs ``FIELDS``."""
    return Fields(**dict(zip(FIELDS, values, strict=True)))
