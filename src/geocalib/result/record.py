"""The record of an image, read back: every value is checked, and every error says where.

Records of earlier versions are brought to the layout of today. Those of ``geocalib/1`` had some
keys only sometimes. Until ``geocalib/2`` all were of upright pictures, and none said how the pixels
lie in the file. Until ``geocalib/3`` all lenses were named, there were no drawn lines, and parts
of an answer were not trusted separately.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Literal, NoReturn, get_args

from geocalib.arrays import Array, as_doubles
from geocalib.cameras import Camera, get_model
from geocalib.cameras.exchange import LONGEST_SIDE
from geocalib.errors import CameraError, ConfigError, FormatError
from geocalib.geometry.drawn import checked_lines
from geocalib.geometry.fields import LOG_ASPECT
from geocalib.geometry.ruler import checked_ruler
from geocalib.records import dataclass
from geocalib.result.evidence import DrawnCheck, Lens, LensFamily, Lines, PriorCheck, Verdict
from geocalib.result.ruler import MeasuredRuler
from geocalib.result.schema import OLDER, RECORD, SCHEMA, Many, Null, RecordPlace, read
from geocalib.result.uncertainty import EVERYTHING, Trust, Uncertainty
from geocalib.solver.result import Status

FIRST, SECOND = OLDER[:2]

_NOT_ALWAYS: dict[str, Any] = {"lines": None, "priors": []}
"""What records lack whose writers did not know of it."""

_EMPTY: dict[str, Any] = {
    field.name: []
    for field in RECORD.fields
    if field.null is Null.NEVER and isinstance(field.kind, Many)
}
"""The lists of a failure, which were null."""


def upgraded(record: Mapping[str, Any]) -> dict[str, Any]:
    """The same answer as a record of today; what is damaged in it stays for the reader to find."""
    new = _second(record) if record["schema"] == FIRST else dict(record)
    answered = new.get("error") is None
    if record["schema"] in (FIRST, SECOND):
        new |= {"frame": "upright" if answered else None, "orientation": None}
    # A warning was one about everything.
    good = new.get("status") == Status.CONVERGED and not new.get("warnings")
    trusted = {f"trusted_{quantity}": good if answered else None for quantity in EVERYTHING}
    added = {
        "lens": [],
        "drawn": [],
        "ruler": None,
        "priors": _with("against", None, new.get("priors")),
    }
    return {**new, "schema": SCHEMA, **added, **trusted}


def _with(key: str, value: Any, priors: Any) -> Any:
    """Priors with a key that their writers did not know of."""
    if not isinstance(priors, list):
        return priors
    return [{key: value, **each} if isinstance(each, Mapping) else each for each in priors]


def _second(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record of ``geocalib/1`` in the layout of ``geocalib/2``.

    How sure the aspect is was not recorded: it is known only where the aspect was held fixed. The
    options and the file were recorded in another form; nothing is added to such files, so they are
    left out.
    """
    new = {**_NOT_ALWAYS, **record, "request": None, "photo": None}
    if new.get("error") is not None:
        return new | _EMPTY
    names, sigma, lines = new.get("parameters"), new.get("sigma"), new["lines"]
    if isinstance(sigma, Mapping):
        free = isinstance(names, list) and LOG_ASPECT in names
        new["sigma"] = {**sigma, "aspect": None if free else 0.0}
    new["priors"] = _with("used", True, new["priors"])
    if isinstance(lines, Mapping) and lines.get("verdict", "") is None:
        new["lines"] = None
    return new


Frame = Literal["upright", "stored"]
"""The frame of a picture: upright, or as its pixels are stored (``geocalib.result.frame``)."""
FRAMES: tuple[Frame, ...] = get_args(Frame)

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


def to_text(record: Mapping[str, Any]) -> str:
    """A record on one line of ASCII, the inverse of ``parse``."""
    # ASCII, so that file names of any bytes pass and no character is taken for a line's end.
    return json.dumps(record, allow_nan=False)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number; what is not known is null")


def _check_schema(record: Mapping[str, Any], source: str) -> None:
    schema = record.get("schema")
    if schema not in (SCHEMA, *OLDER):
        known = ", ".join(map(repr, OLDER))
        raise FormatError(
            f"{source}: unknown schema {schema!r}; this version reads {known} and {SCHEMA!r}"
        )


@dataclass(frozen=True)
class Values:
    """The values of a record, each of its kind, and the objects that they describe."""

    values: Mapping[str, Any]
    """The values, as ``layout.read`` gives them."""
    record: Mapping[str, Any]
    """The original record."""
    place: RecordPlace

    @classmethod
    def of(cls, record: Mapping[str, Any], source: str) -> Values:
        """Those of a record of any version that is known."""
        _check_schema(record, source)
        if record["schema"] in OLDER:
            record = upgraded(record)
        place = RecordPlace(source, failed=record.get("error") is not None)
        return cls(read(record, RECORD, place), record, place)

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    @property
    def failed(self) -> bool:
        """Whether there is no answer."""
        return self.place.failed

    def _fail(self, key: str, wanted: str) -> NoReturn:
        self.place.key(key).fail(wanted, self.record[key])

    def pixels(self, key: str) -> int | None:
        """The width or height; None where a failure does not know it."""
        value: int | None = self[key]
        if value is not None and not 0 < value <= LONGEST_SIDE:
            self._fail(key, "a positive whole number of pixels")
        return value

    def camera(self) -> Camera:
        """In float64, a batch of 1."""
        try:
            model = get_model(self["camera_model"])
        except CameraError as error:
            raise FormatError(f"{self.place.source}: {error}") from None
        size = [self.pixels(key) or 0 for key in ("width", "height")]
        low, high = (share * max(size) for share in FOCAL_RANGE)
        for key in ("fx", "fy"):
            if not low <= self[key] <= high:
                self._fail(key, f"positive, between {low:g} and {high:g} pixels")
        count = len(model.parameters)
        if len(self["distortion"]) != count:
            names = ", ".join(model.parameters) or "none"
            self._fail("distortion", f"a list of {count} numbers ({names}) for {model.name}")
        return Camera.create(
            model,
            f=as_doubles(self["fy"]),
            size=size,
            distortion=list(self["distortion"]),
            c=(self["cx"], self["cy"]),
            aspect=_aspect(self["fx"], self["fy"]),
        )

    def gravity(self) -> Array:
        """The direction of gravity, a (3,) float64 unit vector."""
        if abs(math.hypot(*self["gravity"]) - 1) > UNIT_TOLERANCE:
            self._fail("gravity", "a unit vector")
        return as_doubles(self["gravity"])

    def sigma(self) -> Uncertainty:
        sigma, count = Uncertainty(**self["sigma"]), len(self["distortion"])
        if len(sigma.distortion) != count:
            wanted = f"a list of {count} numbers or nulls, one for each of distortion"
            self.place.key("sigma.distortion").fail(wanted, self.record["sigma"]["distortion"])
        return sigma

    def covariance(self) -> Array:
        """(P, P) float64 of the free parameters."""
        rows, size = self["covariance"], len(self["parameters"])
        if len(rows) != size or any(len(row) != size for row in rows):
            self._fail("covariance", f"{size} rows of {size}, one for each of parameters")
        return as_doubles(rows).reshape(size, size)

    def frame(self) -> Frame:
        """The frame of all values of the record."""
        frame: Frame = self["frame"]
        if frame not in FRAMES:
            self._fail("frame", " or ".join(map(repr, FRAMES)))
        return frame

    def orientation(self) -> int | None:
        """That of the file by EXIF; None if it is not known."""
        value: int | None = self["orientation"]
        if value is not None and not 1 <= value <= 8:
            self._fail("orientation", "1 to 8 as in EXIF")
        return value

    def lines(self) -> Lines | None:
        """What became of straight lines; None if they were not looked for."""
        if self["lines"] is None:
            return None
        try:
            return Lines(**{**self["lines"], "verdict": Verdict(self["lines"]["verdict"])})
        except ValueError:
            wanted = f"one of {', '.join(map(repr, map(str, Verdict)))}"
            self.place.key("lines.verdict").fail(wanted, self["lines"]["verdict"])

    def lens(self) -> Lens | None:
        """The families of lenses that were compared; None where the camera model was named."""
        families = tuple(LensFamily(**family) for family in self["lens"])
        for index, family in enumerate(families):
            if not 0 <= family.probability <= 1:
                place = self.place.key("lens").item(index).key("probability")
                place.fail("between 0 and 1", family.probability)
        return Lens(families) if families else None

    def trust(self) -> Trust:
        """The parts of the answer that are trusted."""
        return Trust(*(self[f"trusted_{quantity}"] for quantity in EVERYTHING))

    def priors(self) -> tuple[PriorCheck, ...]:
        """What callers, files and sensors said, checked."""
        for index, prior in enumerate(self["priors"]):
            place = self.place.key("priors").item(index)
            lens = len(prior["prior"])
            count = {"focal": 1, "gravity": 3, "distortion": lens}.get(prior["quantity"])
            if count is None:
                place.key("quantity").fail("focal, gravity or distortion", prior["quantity"])
            for key in ("prior", "estimate"):
                if len(prior[key]) != count:
                    place.key(key).fail(f"a list of {count} numbers", list(prior[key]))
        return tuple(PriorCheck(**prior) for prior in self["priors"])

    def drawn(self) -> tuple[DrawnCheck, ...]:
        """Lines that a person drew."""
        checks = tuple(DrawnCheck(**each) for each in self["drawn"])
        try:
            checked_lines([check.line for check in checks])
        except ConfigError as error:
            raise FormatError(f"{self.place.source}: drawn: {error}") from None
        return checks

    def ruler(self) -> MeasuredRuler | None:
        """A known length, and the camera's height by it."""
        if self["ruler"] is None:
            return None
        found = MeasuredRuler(**self["ruler"])
        try:
            checked_ruler(found.ruler)
        except ConfigError as error:
            raise FormatError(f"{self.place.source}: {error}") from None
        if not found.camera_height > 0:
            self.place.key("ruler.camera_height").fail("above 0", found.camera_height)
        return found


def _aspect(fx: float, fy: float) -> float:
    """The ratio that gives exactly fx when multiplied by fy, if there is one."""
    ratio = fx / fy
    near = (ratio, math.nextafter(ratio, 0), math.nextafter(ratio, math.inf))
    return next((a for a in near if fy * a == fx), ratio)
