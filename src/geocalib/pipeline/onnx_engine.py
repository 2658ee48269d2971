"""``OnnxEngine``: a network in an ONNX file, run by ONNX Runtime, which starts at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import as_file
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from PIL import Image

from geocalib.errors import ConfigError, WeightsError
from geocalib.geometry.fields import Fields
from geocalib.imaging import InputSpec
from geocalib.nets.card import CARD_KEY, WeightCard
from geocalib.nets.catalogue import OPINION, PACKAGES, PUBLISHED, existing_file, packaged
from geocalib.nets.glance import glance_size
from geocalib.nets.onnx_names import (
    FIELDS,
    IMAGE,
    LOGITS,
    MULTIPLE_KEY,
    STANDING,
    SUFFIX,
    WANTED,
)
from geocalib.nets.opinion import as_it_sees, focal_of
from geocalib.pipeline.predict import batch_on
from geocalib.pipeline.threads import threads

PROVIDERS = {
    "cuda": "CUDAExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "cpu": "CPUExecutionProvider",
}
"""Of ONNX Runtime, by the names of devices. "auto" tries the first and the last of them: the others
may compute in half precision, and have to be asked for."""

CUDA = {"use_tf32": "0", "cudnn_conv_algo_search": "HEURISTIC"}
"""In full precision, and without a search for the fastest way at each new size."""

ERRORS_ONLY = 3
"""What ONNX Runtime says by itself."""

Floats = npt.NDArray[np.float32]


class OnnxEngine:
    """A network in a file. See ``geocalib.pipeline.predict.Engine``."""

    def __init__(self, weights: str | Path = "lean", device: str = "auto") -> None:
        """weights: "lean", "large", or a file that ``geocalib export onnx`` wrote. device: "auto",
        or a name of ``PROVIDERS``, with the number of a card: "cuda:1"."""
        with _file(weights) as path:
            self._session = _session(path, device)
            self.card, multiple = _description(self._session, path, FIELDS)
        self._second: onnxruntime.InferenceSession | None = None
        if isinstance(weights, str) and weights in PACKAGES:
            resource = packaged(weights, OPINION + SUFFIX)
            if resource.is_file():
                with as_file(resource) as path:
                    self._second = _session(path, device)
                    self._opinion_card, _ = _description(self._second, path, (LOGITS,))
        kinds = {provider: kind for kind, provider in PROVIDERS.items()}
        kind = kinds[self._session.get_providers()[0]]
        self.device = device if device.partition(":")[0] == kind else kind
        card = self.card
        self.spec = InputSpec(card.short_side, multiple, card.largest_aspect, card.detail)
        self.batch = batch_on(kind)
        self.on_processor = kind == "cpu"
        self.confidence_scale = card.confidence_scale

    @property
    def knows_upright(self) -> bool:
        """Whether it can glance."""
        return STANDING in _names(self._session.get_outputs())

    @property
    def has_opinion(self) -> bool:
        """Whether a second network tells the focal length."""
        return self._second is not None

    def predict(self, images: Floats) -> Fields:
        """The fields of (B, 3, H, W) images."""
        values = self._run(FIELDS, {IMAGE: _single(images)})
        return Fields(**dict(zip(FIELDS, values, strict=True)))

    def glance(self, images: Floats) -> Floats:
        """(B, 4) log probability of each side to be up."""
        seen = _single(images)
        height, width = glance_size(seen.shape[-2], seen.shape[-1], self.spec.multiple)
        planes = seen.reshape(-1, *seen.shape[-2:])
        small = np.stack([_shrunk(plane, (width, height)) for plane in planes])
        given = {IMAGE: small.reshape(-1, 3, height, width), WANTED: np.array(False)}
        chance: Floats = self._run((STANDING,), given)[0]
        return chance

    def opinion(self, images: Floats) -> npt.NDArray[np.float64]:
        """(B, 2) the logarithm of the focal length by the diagonal, and its sigma."""
        assert self._second is not None
        seen = as_it_sees(images, self._opinion_card)
        logits: Floats = self._second.run((LOGITS,), {IMAGE: seen})[0]
        return focal_of(logits, images.shape, self._opinion_card)

    def _run(self, names: Sequence[str], given: dict[str, npt.NDArray[Any]]) -> list[Floats]:
        values: list[Floats] = self._session.run(names, given)
        return values


def _single(images: Floats) -> Floats:
    """In single precision, in one piece."""
    return np.ascontiguousarray(images, np.float32)


def _shrunk(plane: Floats, size: tuple[int, int]) -> Floats:
    """(h, w) of (H, W), each pixel a mean of those that it covers. size: (w, h)."""
    return np.asarray(Image.fromarray(plane).resize(size, Image.Resampling.BILINEAR))


@contextmanager
def _file(weights: str | Path) -> Iterator[Path]:
    """Where the network lies."""
    if isinstance(weights, str) and weights in PUBLISHED:
        raise WeightsError(f"{weights} runs in torch alone: choose that engine, or other weights")
    if not (isinstance(weights, str) and weights in PACKAGES):
        yield existing_file(weights)
        return
    with as_file(packaged(weights, weights + SUFFIX)) as path:
        yield path


def _session(path: Path, device: str) -> onnxruntime.InferenceSession:
    asked, _, number = device.partition(":")
    there = [kind for kind, name in PROVIDERS.items() if name in available()]
    if asked not in ("auto", *there) or (number and not (asked == "cuda" and number.isdecimal())):
        raise _no_device(device, there)
    wanted = [kind for kind in ("cuda", "cpu") if kind in there] if asked == "auto" else [asked]
    providers = [
        (PROVIDERS[kind], {**CUDA, "device_id": number or "0"} if kind == "cuda" else {})
        for kind in dict.fromkeys((*wanted, "cpu"))
    ]
    try:
        session = onnxruntime.InferenceSession(path, _options(), providers=providers)
    except Exception as error:  # Its errors have no class in common.
        raise WeightsError(
            f"{path} is no ONNX file, or damaged; write one with geocalib export onnx"
        ) from error
    if asked != "auto" and session.get_providers()[0] != PROVIDERS[asked]:
        raise _no_device(device, [kind for kind in there if kind != asked])
    return session


def available() -> Sequence[str]:
    """The providers that are installed."""
    names: Sequence[str] = onnxruntime.get_available_providers()
    return names


def _no_device(name: str, there: Sequence[str]) -> ConfigError:
    return ConfigError(f"there is no device {name!r} here; use auto or one of: {', '.join(there)}")


def _options() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads()
    options.inter_op_num_threads = 1
    # Threads that wait for work in a loop would keep OpenCV and BLAS from theirs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # To plan which results share memory takes longer than everything else at the start, and saves
    # none: the arena reuses it anyway.
    options.enable_mem_reuse = False
    options.use_deterministic_compute = True
    options.log_severity_level = ERRORS_ONLY
    return options


def _description(
    session: onnxruntime.InferenceSession, path: Path, expected: Sequence[str]
) -> tuple[WeightCard, int]:
    """The card in a file, and what its inputs are multiples of. expected: its first outputs."""
    metadata = session.get_modelmeta().custom_metadata_map
    outputs = _names(session.get_outputs())
    multiple = metadata.get(MULTIPLE_KEY, "")
    ours = _names(session.get_inputs()) == [IMAGE] and outputs[: len(expected)] == list(expected)
    if not ours or CARD_KEY not in metadata or not multiple.isdecimal():
        raise WeightsError(f"{path} is no network of geocalib; write one with geocalib export onnx")
    try:
        return WeightCard.from_json(metadata[CARD_KEY]), int(multiple)
    except WeightsError as error:
        raise WeightsError(f"{path}: {error}") from error


def _names(values: Sequence[Any]) -> list[str]:
    return [value.name for value in values]
