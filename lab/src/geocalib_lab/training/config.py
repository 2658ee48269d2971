"""Settings of a training run: a TOML file, overridden from the command line."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from geocalib.errors import ConfigError
from geocalib.nets.lean import LeanConfig
from geocalib_lab.panoramas.views import ViewConfig
from geocalib_lab.panoramas.wide import WideConfig
from geocalib_lab.training.augment import AugmentConfig
from geocalib_lab.training.losses import LossConfig
from geocalib_lab.training.networks import Baseline
from geocalib_lab.training.photos import PhotoConfig
from geocalib_lab.training.schedule import ScheduleConfig

T = TypeVar("T")


@dataclass(frozen=True)
class OptimiserConfig:
    """AdamW and what surrounds it."""

    rate: float = 5e-4
    encoder_rate: float = 1.5e-4
    """Learning rate of the encoder, which is pretrained."""
    weight_decay: float = 0.05
    """On matrices and kernels alone."""
    clip: float = 1.0
    """Longest gradient."""
    average: float = 0.999
    """Decay of the running average of the weights, per step."""


@dataclass(frozen=True)
class ValidationConfig:
    """The fixed pictures of unseen panoramas, and how often to look at them."""

    every_seconds: float = 120.0
    size: tuple[int, int] = (320, 320)
    """Width and height."""
    per_panorama: int = 16
    """Pinhole views, sampled as published, of each panorama."""
    people: int = 200
    """Views as people take them."""
    people_size: tuple[int, int] = (384, 288)
    distorted: int = 200
    steep: int = 0
    """Views that look far up or down."""
    wide: int = 0
    """Wide views through each of three camera models."""
    batch: int = 128
    normalise: int = 512
    """Training pictures that the statistics of batch norms are recomputed on."""


@dataclass(frozen=True)
class WorldConfig:
    """Rendered panoramas to learn from besides the photographed ones."""

    count: int = 0
    width: int = 4096
    """Pixels."""
    supersample: int = 1
    """Rays along either side of a pixel."""
    seed: int = 0


@dataclass(frozen=True)
class TrainingConfig:
    """Everything a run is made of."""

    seed: int = 0
    """Another one draws other pictures: change it when going on from exported weights."""
    batch: int = 256
    """Pictures per step and process."""
    sizes: tuple[tuple[int, int], ...] = ((320, 320),)
    """Widths and heights of the inputs, taken in turn."""
    detail: int | None = None
    """Pixels across the shorter side in which pictures are rendered and changed, before they are
    enlarged to the size of an input: how much of a photo the network gets to see. The fewer, the
    narrower are the views that the panoramas can show sharply. None: all of the input's."""
    compress_again: int | None = None
    """Quality in which the smaller sizes of panoramas are compressed anew (``decode_folder``)."""
    worlds: WorldConfig = field(default_factory=WorldConfig)
    hidden_nadir: float = 0.5
    """How often what is straight below is painted over: logos there tell the way down."""
    panorama_width: int = 1792
    """Wider panoramas are shrunk to this."""
    compile: bool = True
    """Whether to compile the network; without a compiler it runs as it is."""
    log_every: int = 20
    """Steps per line of the log."""
    time_every: int = 200
    """Steps between those whose parts are timed."""
    checkpoint_seconds: float = 60.0
    closing_seconds: float = 25.0
    """Kept back from the minutes of a run for its last validation and checkpoint."""
    network: LeanConfig = field(default_factory=LeanConfig)
    baseline: Baseline | None = None
    """Another method to train in place of ours, with the encoder of ``network``."""
    views: ViewConfig = field(default_factory=ViewConfig)
    wide: WideConfig = field(default_factory=WideConfig)
    photos: PhotoConfig = field(default_factory=PhotoConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    validation: ValidationConfig = field(default_factory=ValidationConfig)

    def __post_init__(self) -> None:
        if not self.sizes:
            raise ConfigError("sizes is empty; give at least one [width, height]")
        if self.wide.share and self.baseline is not None:
            raise ConfigError(
                "wide.share is not for baselines: what they learn from has one camera model"
            )


def read_config(path: Path | None, overrides: Sequence[str] = ()) -> TrainingConfig:
    """The settings of a TOML file, changed by overrides such as ``optimiser.rate=1e-3``.

    A file may begin with ``like = "other.toml"``, beside it: it then says what is different.
    """
    table = {} if path is None else _read(path)
    for override in overrides:
        _apply(table, override)
    return build(TrainingConfig, table)


def _read(path: Path) -> dict[str, Any]:
    """The table of a file, on top of that of the file it is ``like``."""
    try:
        table = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is no TOML file: {error}") from error
    other = table.pop("like", None)
    return table if other is None else _changed(_read(path.parent / str(other)), table)


def _changed(table: dict[str, Any], by: dict[str, Any]) -> dict[str, Any]:
    """A table with the values of another one, also in the tables within."""
    both = dict(table)
    for key, value in by.items():
        inner = both.get(key)
        if isinstance(inner, dict) and isinstance(value, dict):
            value = _changed(inner, value)
        both[key] = value
    return both


def _apply(table: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals:
        raise ConfigError(f"cannot set {override!r}; write key=value")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        # A word without quotes.
        value = text
    *outer, name = key.split(".")
    for part in outer:
        table = table.setdefault(part, {})
    table[name] = value


def build(cls: Callable[..., T], table: dict[str, Any], where: str = "") -> T:
    """A frozen dataclass from a table; a key it does not have is an error."""
    hints = get_type_hints(cls)
    known = [f.name for f in fields(cls)]  # type: ignore[arg-type]
    values = {}
    for key, value in table.items():
        if key not in known:
            raise ConfigError(f"unknown setting {where}{key}; known: {', '.join(known)}")
        hint = hints[key]
        if isinstance(hint, type) and is_dataclass(hint) and isinstance(value, dict):
            values[key] = build(hint, value, f"{where}{key}.")
        else:
            values[key] = _convert(value, hint, f"{where}{key}")
    return cls(**values)


def _convert(value: Any, hint: Any, where: str) -> Any:
    """The value as the type wants it: lists become tuples, whole numbers floats."""
    origin, choices = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        for choice in choices:
            try:
                return _convert(value, choice, where)
            except ConfigError:
                continue
    elif origin is Literal:
        if value in choices:
            return value
    elif origin is tuple:
        if isinstance(value, list):
            repeated = len(choices) == 2 and choices[1] is Ellipsis
            kinds = choices[:1] * len(value) if repeated else choices
            if len(kinds) == len(value):
                pairs = zip(value, kinds, strict=True)
                return tuple(_convert(v, kind, where) for v, kind in pairs)
    elif type(value) is hint:
        return value
    elif hint is float and type(value) is int:
        return float(value)
    name = hint.__name__ if isinstance(hint, type) and origin is None else str(hint)
    raise ConfigError(f"{where} must be {name}, got {value!r}")
