"""``WeightCard``: what a set of weights is, and all that its users must know to use it."""

from __future__ import annotations

import json
import math
from dataclasses import MISSING, asdict, dataclass, field, fields
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from geocalib.errors import WeightsError

SIGMAS = ("gravity", "focal", "distortion")
"""What a fit's standard deviations may be corrected for."""

CARD_KEY = "geocalib"
"""Name of the card in a file's metadata."""

Architecture = Literal["lean", "published", "deepcalib", "paramnet"]
"""The last two are baselines (``nets.direct``)."""


@dataclass(frozen=True, kw_only=True)
class WeightCard:
    """What a set of weights is, and all that its users must know to use it."""

    name: str
    architecture: Architecture
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
    """SHA-256 of the file that was loaded."""
    url: str | None = None
    """Address of the file to download."""

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
