"""Weights: how each set of them is kept, and the network it makes.

A file of ours is a safetensors file of the network as it was trained, with its card as metadata.
A file of the published network is the torch checkpoint its authors released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.resources import as_file
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from geocalib.errors import ConfigError, WeightsError
from geocalib.files import replacing, sha256_of
from geocalib.nets.direct import DeepCalib, ParamNet
from geocalib.nets.folding import fold_batch_norm
from geocalib.nets.lean import LeanConfig, LeanNetwork
from geocalib.nets.published import PublishedNetwork, load_published
from geocalib.nets.weights.card import CARD_KEY, Architecture, WeightCard
from geocalib.nets.weights.catalogue import (
    FOCAL_HEAD,
    PACKAGES,
    PUBLISHED,
    WEIGHT_NAMES,
    existing_file,
    is_here,
    packaged,
)
from geocalib.nets.weights.download import check, fetch, record

Trained = LeanNetwork | DeepCalib | ParamNet
"""What a file of ours may hold."""

ARCHITECTURES: dict[Architecture, type[Trained]] = {
    "lean": LeanNetwork,
    "deepcalib": DeepCalib,
    "paramnet": ParamNet,
}
"""By the names that cards have for them; all are built from a ``LeanConfig``."""

TORCH_STARTS = (b"PK\x03\x04", b"\x80")
"""How a torch file begins: an archive, or, in old ones, a pickle."""

HALF_LOSS = 1e-2
"""Largest error relative to a row of a tensor that half precision may make."""

SEED = 0
"""Seed of the weights of an untrained network."""


_PLACEHOLDER = WeightCard(
    name="lean",
    architecture="lean",
    config=asdict(LeanConfig()),
    trained=False,
    licence="Apache-2.0",
    source="random numbers",
    description="a placeholder that was never trained: its answers mean nothing",
)


@dataclass(frozen=True)
class LoadedNetwork:
    """A network ready to use, and what its weights are."""

    network: LeanNetwork | PublishedNetwork
    """For evaluation: float32 on the CPU, batch norms folded, no gradients of parameters."""
    card: WeightCard


def load_network(weights: str | Path = "lean") -> LoadedNetwork:
    """The network of a name of ``WEIGHT_NAMES``, or of a file of ours or of the published network.

    Of a ParamNet it is the part that sees fields.

    The published weights are downloaded at their first use. Random numbers drawn by the caller
    are the same with and without this call.
    """
    if isinstance(weights, str) and weights in PACKAGES:
        return _load_packaged(weights)
    if isinstance(weights, str) and weights in PUBLISHED:
        return _load_published(PUBLISHED[weights])
    mend = f"copy it again, or use one of {', '.join(WEIGHT_NAMES)}"
    return _load_file(existing_file(weights), mend)


def read_weights(path: str | Path) -> tuple[LeanNetwork, WeightCard]:
    """The network and card that ``save_weights`` wrote, to be changed and saved again."""
    with _advising(Path(path), "give a file that save_weights wrote"):
        network, card = _read(Path(path))
        if not isinstance(network, LeanNetwork):
            raise WeightsError(f"{path} holds the {card.architecture} network")
        return network, card


def read_direct(path: str | Path) -> tuple[DeepCalib | ParamNet, WeightCard]:
    """A network that answers cameras, ready to use, and its card with the file's checksum."""
    path = Path(path)
    with _advising(path, "train it again (docs/training.md)"):
        network, card = _read(path)
        if not isinstance(network, DeepCalib | ParamNet):
            raise WeightsError(f"{path} holds {card.name}, which sees fields and needs a fit")
        ready = fold_batch_norm(network).float().requires_grad_(False)
        return ready, replace(card, sha256=sha256_of(path))


def is_direct(path: Path) -> bool:
    """Whether a file of weights says that it is of a ``DeepCalib``."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get(CARD_KEY)
        return text is not None and WeightCard.from_json(text).architecture == "deepcalib"
    except (SafetensorError, WeightsError, OSError):
        return False


def find_opinion(card: WeightCard) -> tuple[DeepCalib, WeightCard] | None:
    """The network whose focal lengths go with packaged weights, ready to use, and its card; None if
    there is none."""
    if card.name not in filter(is_here, PACKAGES):
        return None
    resource = packaged(card.name, f"{FOCAL_HEAD}.safetensors")
    if not resource.is_file():
        return None
    with as_file(resource) as path:
        network, own = read_direct(path)
    assert isinstance(network, DeepCalib)
    return network, own


def save_weights(path: str | Path, network: Trained, card: WeightCard) -> None:
    """Write a network as it is trained (batch norms not folded) and its card.

    The card's ``config`` becomes the network's. Numbers are stored in half precision, except in
    tensors with a row (a value of a vector) that would change by more than 1% of its length or
    overflow, as small variances do: these stay in single precision. Integers stay integers.
    """
    from safetensors.torch import save

    if card.architecture != (mine := architecture_of(network)):
        raise WeightsError(f"a {mine} network cannot have the card of a {card.architecture!r} one")
    state = network.state_dict()
    with _unfilled():
        expected = type(network)(network.config).state_dict()
    if faults := _faults(state, expected):
        raise WeightsError(f"{path}: {faults}; save the network whose batch norms are not folded")
    for name, value in state.items():
        if not bool(value.isfinite().all()):
            raise WeightsError(f"{path}: {name} has values that are not finite; training failed")
    card = replace(card, config=asdict(network.config), sha256=None)
    stored = {name: _compact(value) for name, value in state.items()}
    with replacing(Path(path)) as file:
        file.write(save(stored, metadata={CARD_KEY: card.to_json()}))


def architecture_of(network: Trained) -> Architecture:
    """The name that cards have for it."""
    return next(name for name, kind in ARCHITECTURES.items() if isinstance(network, kind))


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


def _load_packaged(name: str) -> LoadedNetwork:
    resource = packaged(name)
    if name != "lean" or resource.is_file():
        with as_file(resource) as path:
            return _load_file(path, mend=f"install {PACKAGES[name]} again")
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
        card = replace(card, sha256=sha256_of(path))
    if isinstance(network, ParamNet):
        # Its fields are those of a lean network, which a fit can be made of as well.
        seen = f"the fields of {card.name} ({card.description})"
        card = replace(card, name="fields", architecture="lean", description=seen)
        network = network.fields
    if isinstance(network, DeepCalib):
        raise WeightsError(
            f"{path} is the baseline {card.architecture}, which only geocalib eval "
            "--baseline-weights can use"
        )
    return _ready(network, card)


@contextmanager
def _advising(path: Path, mend: str) -> Iterator[None]:
    """Adds what to do to what is wrong with a file."""
    try:
        yield
    except OSError as error:
        raise WeightsError(f"{path} cannot be read ({error.strerror}); {mend}") from error
    except WeightsError as error:
        raise WeightsError(f"{error}; {mend}") from error


def _read(path: Path) -> tuple[Trained | PublishedNetwork, WeightCard]:
    """A file of either kind: its first bytes tell which."""
    with path.open("rb") as file:
        start = file.read(9)
    if start[8:] == b"{":
        return _read_ours(path)
    if start.startswith(TORCH_STARTS):
        return _read_published(path)
    raise WeightsError(f"{path} is neither a safetensors file nor a torch checkpoint")


def _read_ours(path: Path) -> tuple[Trained, WeightCard]:
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
        if card.architecture not in ARCHITECTURES:
            raise WeightsError(f"it claims to be {card.architecture!r}, which is kept otherwise")
        with _unfilled():
            network = ARCHITECTURES[card.architecture](LeanConfig(**card.config))
    except (WeightsError, ConfigError, TypeError) as error:
        raise WeightsError(f"{path}: {error}") from error
    expected = network.state_dict()
    if faults := _faults(state, expected):
        raise WeightsError(f"{path} does not hold the network of its card: {faults}")
    # Copies: what was read may be the file itself, which others may write.
    own = {name: value.to(expected[name].dtype, copy=True) for name, value in state.items()}
    network.load_state_dict(own, assign=True)
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
def _unfilled() -> Iterator[None]:
    """Networks made within have tensors of shapes alone: no time is spent on random numbers that
    those of a file replace."""
    with torch.device("meta"), _NothingDrawn():
        yield


class _NothingDrawn(TorchFunctionMode):
    """Initialisers draw no normal numbers: for tensors of shapes alone, torch imports its compiler
    to do so, which takes longer than all else of reading a network."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        drawn = func in (Tensor.normal_, nn.init.normal_)
        return None if drawn else func(*args, **(kwargs or {}))


@contextmanager
def _own_randomness() -> Iterator[None]:
    """Fresh networks made within are the same every time, and no other random number changes."""
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.default_generator.manual_seed(SEED)
        yield


def _ready(network: LeanNetwork | PublishedNetwork, card: WeightCard) -> LoadedNetwork:
    return LoadedNetwork(fold_batch_norm(network).float().requires_grad_(False), card)
