"""``OnnxEngine``: a network in an ONNX file, run by ONNX Runtime, which starts at once.

To open a network takes one thread a while, and leaves Python alone: meanwhile other threads import
what is around it. So nothing is imported here at the top that opening does not need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.resources import as_file
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import onnxruntime

from geocalib.errors import ConfigError, WeightsError
from geocalib.nets.onnx_names import (
    FIELDS,
    IMAGE,
    LOGITS,
    MULTIPLE_KEY,
    QUARTER_TURN,
    SUFFIX,
    WANTED,
)
from geocalib.nets.weights.card import CARD_KEY, WeightCard
from geocalib.nets.weights.catalogue import FOCAL_HEAD, PACKAGES, PUBLISHED, existing_file, packaged
from geocalib.pipeline.parallel.threads import batch_on, low_priority, threads

if TYPE_CHECKING:
    from geocalib.geometry.fields import Fields

Floats = npt.NDArray[np.float32]

PROVIDERS = {
    "cuda": "CUDAExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "cpu": "CPUExecutionProvider",
}
"""Execution providers of ONNX Runtime, by the names of devices. "auto" tries the first and the last
of them: the others may compute in half precision, and have to be named."""

CUDA = {"use_tf32": "0", "cudnn_conv_algo_search": "HEURISTIC"}
"""In full precision, and without a search for the fastest way at each new size."""

ERRORS_ONLY = 3
"""What ONNX Runtime says by itself."""


class OnnxEngine:
    """A network in a file. See ``geocalib.pipeline.predict.Engine``."""

    def __init__(self, weights: str | Path = "lean", device: str = "auto") -> None:
        """weights: "lean", "large", or a file that ``geocalib export onnx`` wrote. device: "auto",
        or a name of ``PROVIDERS``, with the number of a card: "cuda:1"."""
        first, self._second = open_networks(weights, device)
        from geocalib.imaging import InputSpec

        self._session, self.card, kind = first.session, first.card, first.kind
        self.device = device if device.partition(":")[0] == kind else kind
        card = self.card
        self.spec = InputSpec(card.short_side, first.multiple, card.largest_aspect, card.detail)
        self.batch = batch_on(kind)
        self.on_processor = kind == "cpu"
        self.confidence_scale = card.confidence_scale

    @property
    def has_orientation(self) -> bool:
        """Whether it can tell how pictures stand."""
        return QUARTER_TURN in outputs(self._session)

    @property
    def has_focal_head(self) -> bool:
        """Whether a second network tells the focal length."""
        return self._second is not None

    def predict(self, images: Floats) -> Fields:
        """The fields of (B, 3, H, W) images."""
        return _fields(self._run(FIELDS, {IMAGE: _single(images)}))

    def predict_oriented(self, images: Floats) -> tuple[Fields, Floats]:
        """The fields of (B, 3, H, W) images, and how they stand, as ``orientation`` tells it."""
        *values, stands = self._run((*FIELDS, QUARTER_TURN), {IMAGE: _single(images)})
        return _fields(values), stands

    def orientation(self, images: Floats) -> Floats:
        """(B, 4) log-probabilities that (B, 3, H, W) images stand turned by 0 to 3 quarters."""
        given = {IMAGE: _single(images), WANTED: np.array(False)}
        return self._run((QUARTER_TURN,), given)[0]

    def focal_estimate(self, images: Floats) -> npt.NDArray[np.float64]:
        """(B, 2) the logarithm of the focal length by the diagonal, and its sigma."""
        assert self._second is not None
        from geocalib.nets.focal_head import focal_of, network_input

        card = self._second.card
        logits: Floats = self._second.session.run((LOGITS,), {IMAGE: network_input(images, card)})[
            0
        ]
        return focal_of(logits, images.shape, card)

    def _run(self, names: Sequence[str], given: dict[str, npt.NDArray[Any]]) -> list[Floats]:
        values: list[Floats] = self._session.run(names, given)
        return values


def _single(images: Floats) -> Floats:
    """In single precision, in one piece."""
    return np.ascontiguousarray(images, np.float32)


def _fields(values: Sequence[Floats]) -> Fields:
    """The fields that the outputs ``FIELDS`` hold."""
    from geocalib.geometry.fields import Fields

    return Fields(**dict(zip(FIELDS, values, strict=True)))


class Opened(NamedTuple):
    """A network, ready to run."""

    session: onnxruntime.InferenceSession
    card: WeightCard
    multiple: int
    """The sides of its inputs are multiples of this."""

    @property
    def kind(self) -> str:
        """The device that it runs on: a name of ``PROVIDERS``."""
        kinds = {provider: kind for kind, provider in PROVIDERS.items()}
        return kinds[self.session.get_providers()[0]]


def open_networks(weights: str | Path, device: str) -> tuple[Opened, Opened | None]:
    """The network of weights, and the second one that comes with them, if one does. All as
    ``OnnxEngine`` takes it."""
    with _file(weights) as path:
        first = _open(path, device, FIELDS)
    if isinstance(weights, str) and weights in PACKAGES:
        resource = packaged(weights, FOCAL_HEAD + SUFFIX)
        if resource.is_file():
            with as_file(resource) as path:
                return first, _open(path, device, (LOGITS,))
    return first, None


def outputs(session: onnxruntime.InferenceSession) -> list[str]:
    """The names of what it tells."""
    return _names(session.get_outputs())


@contextmanager
def _file(weights: str | Path) -> Iterator[Path]:
    """The path of the file of the network."""
    if isinstance(weights, str) and weights in PUBLISHED:
        raise WeightsError(f"{weights} runs in torch alone: choose that engine, or other weights")
    if not (isinstance(weights, str) and weights in PACKAGES):
        yield existing_file(weights)
        return
    with as_file(packaged(weights, weights + SUFFIX)) as path:
        yield path


def _session(path: Path, device: str) -> onnxruntime.InferenceSession:
    chosen, _, number = device.partition(":")
    there = [kind for kind, name in PROVIDERS.items() if name in available()]
    if chosen not in ("auto", *there) or (number and not (chosen == "cuda" and number.isdecimal())):
        raise _no_device(device, there)
    wanted = [kind for kind in ("cuda", "cpu") if kind in there] if chosen == "auto" else [chosen]
    providers = [
        (PROVIDERS[kind], {**CUDA, "device_id": number or "0"} if kind == "cuda" else {})
        for kind in dict.fromkeys((*wanted, "cpu"))
    ]
    try:
        session = low_priority(
            partial(onnxruntime.InferenceSession, path, _options(), providers=providers)
        )
    except Exception as error:  # Its errors have no class in common.
        raise WeightsError(
            f"{path} is no ONNX file, or damaged; write one with geocalib export onnx"
        ) from error
    if chosen != "auto" and session.get_providers()[0] != PROVIDERS[chosen]:
        raise _no_device(device, [kind for kind in there if kind != chosen])
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
    # Work is taken block by block, by who is free: in equal shares, all threads would wait for one
    # whose core others use.
    options.add_session_config_entry("session.dynamic_block_base", "4")
    # To plan which results share memory takes longer than everything else at the start, and saves
    # none: the arena reuses it anyway.
    options.enable_mem_reuse = False
    options.use_deterministic_compute = True
    options.log_severity_level = ERRORS_ONLY
    return options


def _open(path: Path, device: str, expected: Sequence[str]) -> Opened:
    """expected: the first of its outputs."""
    session = _session(path, device)
    metadata = session.get_modelmeta().custom_metadata_map
    multiple = metadata.get(MULTIPLE_KEY, "")
    names = outputs(session)[: len(expected)]
    ours = _names(session.get_inputs()) == [IMAGE] and names == list(expected)
    if not ours or CARD_KEY not in metadata or not multiple.isdecimal():
        raise WeightsError(f"{path} is no network of geocalib; write one with geocalib export onnx")
    try:
        return Opened(session, WeightCard.from_json(metadata[CARD_KEY]), int(multiple))
    except WeightsError as error:
        raise WeightsError(f"{path}: {error}") from error


def _names(values: Sequence[Any]) -> list[str]:
    return [value.name for value in values]
