"""The record of an image, read back: every value is checked, and every error says where."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import torch

from geocalib.cameras import Camera, get_model
from geocalib.cameras.exchange import LONGEST_SIDE
from geocalib.errors import CameraError, FormatError
from geocalib.result.calibration import SCHEMA, Calibration, Failure, Outcome
from geocalib.result.lines import Lines, Verdict
from geocalib.result.prior_check import PriorCheck
from geocalib.result.uncertainty import Uncertainty

FOCAL_RANGE = (1e-6, 1e6)
"""Focal lengths in units of the longer side, beyond which a record is damaged."""

UNIT_TOLERANCE = 1e-6
"""How far from 1 the length of a gravity vector may be."""


def parse(text: str | bytes, source: str) -> dict[str, Any]:
    """The record that a piece of JSON holds, unchecked but for its schema."""
    try:
        record = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{source}: this is not JSON: {error}") from None
    if not isinstance(record, dict):
        raise FormatError(f"{source}: a record is a JSON object, got {record!r:.40}")
    _check_schema(record, source)
    return record


def read_outcome(record: Mapping[str, Any], source: str) -> Outcome:
    """The calibration or failure of a record."""
    _check_schema(record, source)
    values = _Values(record, source)
    image = None if values["image"] is None else values.text("image")
    if values["error"] is not None:
        width, height = (None if values[k] is None else values.pixels(k) for k in _SIZE)
        status = None if values["status"] is None else values.text("status")
        return Failure(image, width, height, values.text("error"), status)
    camera = _camera(values)
    gravity = values.numbers("gravity", 3)
    if abs(math.hypot(*gravity) - 1) > UNIT_TOLERANCE:
        values.fail("gravity", "a unit vector")
    parameters = values.texts("parameters")
    return Calibration(
        image=image,
        camera=camera,
        gravity=torch.tensor(gravity, dtype=torch.float64),
        sigma=_sigma(values.part("sigma"), len(camera.model.parameters)),
        covariance=values.matrix("covariance", len(parameters)),
        parameters=parameters,
        status=values.text("status"),
        lines=_lines(values.part("lines")) if record.get("lines") is not None else None,
        warnings=values.texts("warnings"),
        priors=_priors(values) if "priors" in record else (),
    )


_SIZE = ("width", "height")


def _check_schema(record: Mapping[str, Any], source: str) -> None:
    schema = record.get("schema")
    if schema != SCHEMA:
        raise FormatError(f"{source}: unknown schema {schema!r}; this version reads {SCHEMA!r}")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number; what is not known is null")


@dataclass(frozen=True)
class _Values:
    """The values of a record or of a part of it, each checked as it is read."""

    record: Mapping[str, Any]
    source: str
    prefix: str = ""

    def __getitem__(self, key: str) -> Any:
        if key not in self.record:
            raise FormatError(f"{self.source}: {self.prefix}{key} is missing")
        return self.record[key]

    def fail(self, key: str, wanted: str) -> NoReturn:
        raise FormatError(
            f"{self.source}: {self.prefix}{key} must be {wanted}, got {self[key]!r:.80}"
        )

    def part(self, key: str) -> _Values:
        if not isinstance(self[key], Mapping):
            self.fail(key, "an object")
        return _Values(self[key], self.source, f"{self.prefix}{key}.")

    def text(self, key: str) -> str:
        value = self[key]
        if not isinstance(value, str) or not value:
            self.fail(key, "text")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self[key]
        if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
            self.fail(key, "a list of texts")
        return tuple(value)

    def pixels(self, key: str) -> int:
        value = self[key]
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= LONGEST_SIDE:
            self.fail(key, "a positive whole number of pixels")
        return value

    def count(self, key: str) -> int:
        value = self[key]
        if not _is_count(value):
            self.fail(key, "a whole number that is not negative")
        return int(value)

    def flag(self, key: str) -> bool:
        value = self[key]
        if not isinstance(value, bool):
            self.fail(key, "true or false")
        return value

    def number(self, key: str) -> float:
        value = self[key]
        if not _is_number(value):
            self.fail(key, "a number")
        return float(value)

    def known(self, key: str) -> float:
        """A number, or null for NaN."""
        return math.nan if self[key] is None else self.number(key)

    def numbers(self, key: str, count: int) -> list[float]:
        value = self[key]
        if not (isinstance(value, list) and len(value) == count and all(map(_is_number, value))):
            self.fail(key, f"a list of {count} numbers")
        return list(map(float, value))

    def knowns(self, key: str, count: int) -> list[float]:
        """Numbers, or null for NaN."""
        value = self[key]
        if not (isinstance(value, list) and len(value) == count and all(map(_is_known, value))):
            self.fail(key, f"a list of {count} numbers or nulls")
        return [math.nan if part is None else float(part) for part in value]

    def matrix(self, key: str, size: int) -> torch.Tensor:
        """(size, size) float64, NaN for null."""
        value = self[key]
        if not (isinstance(value, list) and len(value) == size):
            self.fail(key, f"a list of {size} rows, one per name in parameters")
        rows = _Values(
            {f"[{i}]": row for i, row in enumerate(value)}, self.source, f"{self.prefix}{key}"
        )
        numbers = [rows.knowns(row, size) for row in rows.record]
        return torch.tensor(numbers, dtype=torch.float64).reshape(size, size)


def _is_number(value: Any) -> bool:
    # JSON has no NaN, but 1e999 reads as infinity, and whole numbers may be longer than a float.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) <= sys.float_info.max


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_known(value: Any) -> bool:
    return value is None or _is_number(value)


def _camera(values: _Values) -> Camera:
    try:
        model = get_model(values.text("camera_model"))
    except CameraError as error:
        raise FormatError(f"{values.source}: {error}") from None
    fx, fy, cx, cy = (values.number(key) for key in ("fx", "fy", "cx", "cy"))
    size = [values.pixels(key) for key in _SIZE]
    low, high = (share * max(size) for share in FOCAL_RANGE)
    for key, value in (("fx", fx), ("fy", fy)):
        if not low <= value <= high:
            values.fail(key, f"positive, between {low:g} and {high:g} pixels")
    count = len(model.parameters)
    distortion = values["distortion"]
    if not isinstance(distortion, list) or len(distortion) != count:
        names = ", ".join(model.parameters) or "none"
        values.fail("distortion", f"a list of {count} numbers ({names}) for {model.name}")
    return Camera.create(
        model,
        f=torch.tensor(fy, dtype=torch.float64),
        size=size,
        distortion=values.numbers("distortion", count),
        c=(cx, cy),
        aspect=_aspect(fx, fy),
    )


def _aspect(fx: float, fy: float) -> float:
    """The ratio that gives exactly fx when multiplied by fy, if there is one."""
    ratio = fx / fy
    near = (ratio, math.nextafter(ratio, 0), math.nextafter(ratio, math.inf))
    return next((a for a in near if fy * a == fx), ratio)


def _sigma(values: _Values, distortions: int) -> Uncertainty:
    cx, cy = values.knowns("principal_point", 2)
    return Uncertainty(
        roll_deg=values.known("roll_deg"),
        pitch_deg=values.known("pitch_deg"),
        gravity_deg=values.known("gravity_deg"),
        vfov_deg=values.known("vfov_deg"),
        hfov_deg=values.known("hfov_deg"),
        focal=values.known("focal"),
        distortion=tuple(values.knowns("distortion", distortions)),
        principal_point=(cx, cy),
    )


def _lines(values: _Values) -> Lines | None:
    """What became of straight lines; None if they were not looked for."""
    if values["verdict"] is None:
        return None
    try:
        verdict = Verdict(values.text("verdict"))
    except ValueError:
        values.fail("verdict", f"one of {', '.join(map(repr, map(str, Verdict)))}")
    level = values["level"]
    if not isinstance(level, list) or not all(map(_is_count, level)):
        values.fail("level", "a list of whole numbers")
    return Lines(
        verdict,
        values.count("vertical"),
        tuple(level),
        values.count("unused"),
        values.number("probability"),
        values.known("roll_deg"),
        values.known("pitch_deg"),
        values.known("vfov_deg"),
    )


def _priors(values: _Values) -> tuple[PriorCheck, ...]:
    """What sensors said, which only records of calibrations that asked them hold."""
    if not isinstance(values["priors"], list):
        values.fail("priors", "a list")
    parts = {f"priors[{i}]": part for i, part in enumerate(values["priors"])}
    every = _Values(parts, values.source)
    return tuple(_prior(every.part(key)) for key in parts)


def _prior(values: _Values) -> PriorCheck:
    count = {"focal": 1, "gravity": 3}.get(quantity := values.text("quantity"))
    if count is None:
        values.fail("quantity", "focal or gravity")
    return PriorCheck(
        quantity="focal" if quantity == "focal" else "gravity",
        source=values.text("source"),
        prior=tuple(values.numbers("prior", count)),
        prior_sigma=values.number("prior_sigma"),
        estimate=tuple(values.numbers("estimate", count)),
        estimate_sigma=values.known("estimate_sigma"),
        tension=values.known("tension"),
        used=values.flag("used") if "used" in values.record else True,
    )
