"""Weights: what each set of them is, how it is kept, and the network it makes.

A file of ours is a safetensors file of the network as it was trained, with its card as metadata.
A file of the published network is the torch checkpoint its authors released.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from importlib.resources import as_file, files
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import torch
from torch import Tensor

from geocalib.errors import ConfigError, WeightsError
from geocalib.files import replacing, sha256_of
from geocalib.nets.download import check, fetch, record
from geocalib.nets.folding import fold_batch_norm
from geocalib.nets.lean import LeanConfig, LeanNetwork
from geocalib.nets.published import PublishedNetwork, load_published

SIGMAS = ("gravity", "focal", "distortion")
"""What a fit's standard deviations may be corrected for."""

CARD_KEY = "geocalib"
"""Name of the card in a file's metadata."""

TORCH_STARTS = (b"PK\x03\x04", b"\x80")
"""How a torch file begins: an archive, or, in old ones, a pickle."""

HALF_LOSS = 1e-2
"""Largest error relative to a row of a tensor that half precision may make."""

SEED = 0
"""Of the weights of a network that was never trained."""


@dataclass(frozen=True, kw_only=True)
class WeightCard:
    """What a set of weights is, and all that its users must know to use it."""

    name: str
    architecture: Literal["lean", "published"]
    config: dict[str, Any] = field(default_factory=dict)
    """Plain values that rebuild the network: the fields of ``LeanConfig``; none if published."""
    short_side: int = 320
    """Pixels across the shorter side of an input."""
    largest_aspect: float = 2.5
    """Longer to shorter side of an input; may be infinite."""
    detail: int | None = None
    """Pixels across the shorter side to which photos are shrunk before they are enlarged to an
    input: what the network was trained to see. None: as many as an input has."""
    legacy_up_field: bool = False
    """Whether distortion is to be fitted with ``cameras.legacy.LegacySimpleRadial``."""
    camera_models: str = ""
    """A note: which lenses it has seen."""
    confidence_scale: float | None = None
    """s^2, which turns confidences into information. None: from the residuals."""
    sigma_scale: dict[str, float] = field(default_factory=dict)
    """Factors on the standard deviations of a fit, by a name of ``SIGMAS``; 1 if absent."""
    trained: bool
    """False: a placeholder whose answers mean nothing."""
    licence: str
    source: str
    description: str
    sha256: str | None = None
    """Of the file that was loaded."""
    url: str | None = None
    """Where to download it."""

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(WeightCard).items():
            if not _is(getattr(self, name), kind):
                raise WeightsError(f"{name} of a weight card cannot be {getattr(self, name)!r}")
        if self.detail is not None and not 1 <= self.detail <= self.short_side:
            raise WeightsError(
                f"detail of a weight card must be within short_side, got {self.detail}"
            )
        if self.short_side < 1 or not self.largest_aspect >= 1:
            raise WeightsError(
                "a weight card needs short_side >= 1 and largest_aspect >= 1, got "
                f"{self.short_side} and {self.largest_aspect}"
            )
        for name in self.sigma_scale:
            if name not in SIGMAS:
                raise WeightsError(f"sigma_scale has no {name!r}; there are {', '.join(SIGMAS)}")
        scales: dict[str, Any] = dict(self.sigma_scale)
        if self.confidence_scale is not None:
            scales["confidence_scale"] = self.confidence_scale
        for name, scale in scales.items():
            if not (_is(scale, float) and 0 < scale < math.inf):
                raise WeightsError(f"the scale {name} must be positive and finite, got {scale!r}")
        try:
            plain = json.loads(json.dumps(self.config))
        except TypeError as error:
            raise WeightsError(f"config of a weight card must be plain values: {error}") from None
        object.__setattr__(self, "config", plain)

    def to_json(self) -> str:
        """One JSON object with all fields; an infinite aspect is null."""
        values = asdict(self)
        if math.isinf(self.largest_aspect):
            values["largest_aspect"] = None
        return json.dumps(values, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> WeightCard:
        """The card that ``to_json`` wrote. Nothing is ignored."""
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise WeightsError(f"its weight card is no JSON: {error}") from None
        if not isinstance(values, dict):
            raise WeightsError(f"its weight card is a {type(values).__name__}, not an object")
        known = {f.name: f for f in fields(cls)}
        for name in values:
            if name not in known:
                raise WeightsError(f"its weight card has an unknown {name!r}: update geocalib")
        for name, f in known.items():
            if name not in values and f.default is MISSING and f.default_factory is MISSING:
                raise WeightsError(f"its weight card lacks {name!r}")
        if "largest_aspect" in values and values["largest_aspect"] is None:
            values["largest_aspect"] = math.inf
        return cls(**values)


def _is(value: object, kind: Any) -> bool:
    """Whether a value is of an annotated kind; an integer is a float too, a bool is neither."""
    origin, options = get_origin(kind), get_args(kind)
    if origin is Literal:
        return value in options
    if origin is UnionType:
        return any(_is(value, option) for option in options)
    if kind in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, (int, float) if kind is float else origin or kind)


_RELEASE = "https://github.com/cvg/GeoCalib/releases/download/v1.0/"

_PINHOLE = WeightCard(
    name="published-pinhole",
    architecture="published",
    largest_aspect=math.inf,
    camera_models="trained on pinhole cameras alone",
    trained=True,
    licence="CC-BY-4.0",
    source="Veicht, Sarlin, Lindenberger, Pollefeys: GeoCalib, ECCV 2024",
    description="the published network for images without distortion",
    url=_RELEASE + "geocalib-pinhole.tar",
)

PUBLISHED = {
    "published-pinhole": _PINHOLE,
    "published-distorted": replace(
        _PINHOLE,
        name="published-distorted",
        legacy_up_field=True,
        camera_models="trained on simple_radial cameras",
        description="the published network for images with radial distortion",
        url=_RELEASE + "geocalib-distorted.tar",
    ),
}
"""The published weights by name."""

_PLACEHOLDER = WeightCard(
    name="lean",
    architecture="lean",
    config=asdict(LeanConfig()),
    trained=False,
    licence="Apache-2.0",
    source="random numbers",
    description="a placeholder that was never trained: its answers mean nothing",
)

WEIGHT_NAMES = ("lean", *PUBLISHED)

LEAN = "weights/lean.safetensors"
"""The packaged weights, in the package."""


@dataclass(frozen=True)
class LoadedNetwork:
    """A network ready to use, and what its weights are."""

    network: LeanNetwork | PublishedNetwork
    """For evaluation: float32 on the CPU, batch norms folded, no gradients of parameters."""
    card: WeightCard


def load_network(weights: str | Path = "lean") -> LoadedNetwork:
    """The network of a name of ``WEIGHT_NAMES``, or of a file of ours or of the published network.

    The published weights are downloaded at their first use. Random numbers drawn by the caller
    are the same with and without this call.
    """
    if isinstance(weights, str) and weights == "lean":
        return _load_lean()
    if isinstance(weights, str) and weights in PUBLISHED:
        return _load_published(PUBLISHED[weights])
    mend = f"copy it again, or use one of {', '.join(WEIGHT_NAMES)}"
    return _load_file(_existing(weights), mend)


def identify(weights: str | Path) -> str:
    """Words that are equal for equal weights of ``load_network``, without loading or fetching."""
    if isinstance(weights, str) and weights in PUBLISHED:
        return weights
    if weights == "lean":
        resource = files("geocalib") / LEAN
        if not resource.is_file():
            return "lean, never trained"
        with as_file(resource) as path:
            return f"lean {sha256_of(path)[:16]}"
    return sha256_of(_existing(weights))[:16]


def _existing(weights: str | Path) -> Path:
    path = Path(weights)
    if not path.is_file():
        raise WeightsError(
            f"no weights are named {str(weights)!r}, and no file is; there are "
            f"{', '.join(WEIGHT_NAMES)}"
        )
    return path


def read_weights(path: str | Path) -> tuple[LeanNetwork, WeightCard]:
    """The network and card that ``save_weights`` wrote, to be changed and saved again."""
    with _advising(Path(path), "give a file that save_weights wrote"):
        network, card = _read(Path(path))
        if not isinstance(network, LeanNetwork):
            raise WeightsError(f"{path} holds the published network")
        return network, card


def save_weights(path: str | Path, network: LeanNetwork, card: WeightCard) -> None:
    """Write a network as it is trained (batch norms not folded) and its card.

    The card's ``config`` becomes the network's. Numbers are stored in half precision, except in
    tensors with a row (a value of a vector) that would change by more than 1% of its length or
    overflow, as small variances do: these stay in single precision. Integers stay integers.
    """
    from safetensors.torch import save

    if card.architecture != "lean":
        raise WeightsError(f"a lean network cannot have the card of a {card.architecture!r} one")
    state = network.state_dict()
    with _own_randomness():
        expected = LeanNetwork(network.config).state_dict()
    if faults := _faults(state, expected):
        raise WeightsError(f"{path}: {faults}; save the network whose batch norms are not folded")
    for name, value in state.items():
        if not bool(value.isfinite().all()):
            raise WeightsError(f"{path}: {name} has values that are not finite; training failed")
    card = replace(card, config=asdict(network.config), sha256=None)
    stored = {name: _compact(value) for name, value in state.items()}
    with replacing(Path(path)) as file:
        file.write(save(stored, metadata={CARD_KEY: card.to_json()}))


def _compact(value: Tensor) -> Tensor:
    """In half precision where that is as good, else in single precision."""
    value = value.detach().cpu().contiguous()
    if not value.is_floating_point():
        return value
    half = value.half()
    # In double precision, where squares of small numbers do not vanish.
    rows = (value.flatten(1) if value.dim() > 1 else value.reshape(-1, 1)).double()
    lost = (half.double().reshape(rows.shape) - rows).norm(dim=1)
    return half if bool((lost <= HALF_LOSS * rows.norm(dim=1)).all()) else value.float()


def _load_lean() -> LoadedNetwork:
    resource = files("geocalib") / LEAN
    if resource.is_file():
        with as_file(resource) as path:
            return _load_file(path, mend="install geocalib again")
    with _own_randomness():
        network = LeanNetwork(LeanConfig())
    return _ready(network, _PLACEHOLDER)


def _load_published(card: WeightCard) -> LoadedNetwork:
    assert card.url is not None
    path = fetch(card.url, card.url.rpartition("/")[2])
    with _advising(path, "delete it and any .sha256 beside it, and it is fetched again"):
        sha256 = check(path)
        with _own_randomness():
            network = load_published(path)
    record(path, sha256)
    return _ready(network, replace(card, sha256=sha256))


def _load_file(path: Path, mend: str) -> LoadedNetwork:
    with _advising(path, mend):
        network, card = _read(path)
        return _ready(network, replace(card, sha256=sha256_of(path)))


@contextmanager
def _advising(path: Path, mend: str) -> Iterator[None]:
    """Adds what to do to what is wrong with a file."""
    try:
        yield
    except OSError as error:
        raise WeightsError(f"{path} cannot be read ({error.strerror}); {mend}") from error
    except WeightsError as error:
        raise WeightsError(f"{error}; {mend}") from error


def _read(path: Path) -> tuple[LeanNetwork | PublishedNetwork, WeightCard]:
    """A file of either kind: its first bytes tell which."""
    with path.open("rb") as file:
        start = file.read(9)
    if start[8:] == b"{":
        return _read_ours(path)
    if start.startswith(TORCH_STARTS):
        return _read_published(path)
    raise WeightsError(f"{path} is neither a safetensors file nor a torch checkpoint")


def _read_ours(path: Path) -> tuple[LeanNetwork, WeightCard]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get(CARD_KEY)
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise WeightsError(f"{path} is damaged ({error})") from error
    if text is None:
        raise WeightsError(f"{path} has no weight card, so it is no file of geocalib")
    try:
        card = WeightCard.from_json(text)
        if card.architecture != "lean":
            raise WeightsError(f"it claims to be {card.architecture!r}, which is kept otherwise")
        with _own_randomness():
            network = LeanNetwork(LeanConfig(**card.config))
    except (WeightsError, ConfigError, TypeError) as error:
        raise WeightsError(f"{path}: {error}") from error
    if faults := _faults(state, network.state_dict()):
        raise WeightsError(f"{path} does not hold the network of its card: {faults}")
    network.load_state_dict(state)
    return network, card


def _read_published(path: Path) -> tuple[PublishedNetwork, WeightCard]:
    """Both published files hold the same tensors: only the name tells which field they learnt."""
    with _own_randomness():
        network = load_published(path)
    card = PUBLISHED["published-distorted" if "distorted" in path.name else "published-pinhole"]
    licence = f"{card.licence}, if it is the published file"
    return network, replace(card, name=path.name, licence=licence, url=None)


def _faults(state: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> str:
    """The first tensor that is not as expected, and how many more there are; or nothing."""
    found = [f"{name} is missing" for name in expected if name not in state]
    found += [f"{name} has no place" for name in state if name not in expected]
    found += [
        f"{name} is {tuple(state[name].shape)} instead of {tuple(value.shape)}"
        for name, value in expected.items()
        if name in state and state[name].shape != value.shape
    ]
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return found[0] + more if found else ""


@contextmanager
def _own_randomness() -> Iterator[None]:
    """Fresh networks made within are the same every time, and no other random number changes."""
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.default_generator.manual_seed(SEED)
        yield


def _ready(network: LeanNetwork | PublishedNetwork, card: WeightCard) -> LoadedNetwork:
    return LoadedNetwork(fold_batch_norm(network).float().requires_grad_(False), card)
