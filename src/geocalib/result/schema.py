"""The layout of a record: every key, its kind, its unit, and where it is null; how such values are
written as JSON, and how they are read.

A record has one layout, whatever it holds: the same keys in the same order, each of one kind. What
is not known is null; a list of any length is never null, but empty. Writers, readers, the columns
of tables, Arrow's schema and the page ``docs/formats.md`` follow it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NoReturn

from geocalib.arrays import is_array
from geocalib.errors import FormatError
from geocalib.records import dataclass


class Scalar(StrEnum):
    """A single value in a record."""

    TEXT = "text"
    WHOLE = "a whole number"
    """Of 64 bits."""
    COUNT = "a whole number that is not negative"
    NUMBER = "a number"
    """Finite, of double precision."""
    FLAG = "true or false"


class Null(StrEnum):
    """Where there may be no value."""

    NEVER = "never"
    FAILED = "if failed"
    """Only in records of images without an answer."""
    POSSIBLE = "possible"
    """In any record: it is not known, or there is nothing to say."""


@dataclass(frozen=True)
class Many:
    """A list of one kind of items."""

    of: Kind
    length: int | None = None
    """Of a vector: one without a value is null. None for lists of any length."""
    gaps: bool = False
    """Whether items may be null."""


@dataclass(frozen=True)
class Field:
    """One key of a record, or of an object in it."""

    name: str
    kind: Kind
    null: Null
    meaning: str
    unit: str = ""


@dataclass(frozen=True)
class Struct:
    """An object whose keys are always all there."""

    fields: tuple[Field, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of an object, in order."""
        return tuple(field.name for field in self.fields)


Kind = Scalar | Many | Struct

_PLURALS = {
    Scalar.TEXT: "texts",
    Scalar.WHOLE: "whole numbers",
    Scalar.COUNT: "whole numbers",
    Scalar.NUMBER: "numbers",
    Scalar.FLAG: "flags",
}


def words(kind: Kind) -> str:
    """What a value of this kind is called.

    >>> words(Many(Scalar.NUMBER, length=3)), words(Many(Many(Scalar.NUMBER, gaps=True)))
    ('a list of 3 numbers', 'a list of lists of numbers or nulls')
    """
    match kind:
        case Scalar():
            return str(kind)
        case Struct():
            return "an object"
        case Many():
            return f"a list of {_items(kind)}"


def _items(kind: Many) -> str:
    if isinstance(kind.of, Scalar):
        several = _PLURALS[kind.of]
    else:
        several = "objects" if isinstance(kind.of, Struct) else f"lists of {_items(kind.of)}"
    count = "" if kind.length is None else f"{kind.length} "
    return f"{count}{several}{' or nulls' if kind.gaps else ''}"


def write(value: Any, kind: Kind) -> Any:
    """A value as plain JSON values; numbers that are not finite are null.

    Of an object the attributes named as the keys; what it has not is null, or an empty list.
    """
    if value is None:
        return None
    match kind:
        case Struct():
            return {field.name: _attribute(value, field) for field in kind.fields}
        case Many():
            items = value.tolist() if is_array(value) else value
            return [write(item, kind.of) for item in items]
        case Scalar.TEXT:
            return str(value)
        case Scalar.NUMBER:
            return float(value) if math.isfinite(value) else None
        case Scalar.FLAG:
            return bool(value)
        case _:
            return int(value)


def _attribute(value: Any, field: Field) -> Any:
    found = write(getattr(value, field.name, None), field.kind)
    never = field.null is Null.NEVER and isinstance(field.kind, Many)
    return [] if found is None and never else found


@dataclass(frozen=True)
class RecordPlace:
    """Where a value stands, for errors about it."""

    source: str
    path: str = ""
    failed: bool = False
    """Whether the record is that of an image without an answer."""

    def fail(self, wanted: str, value: Any) -> NoReturn:
        raise FormatError(f"{self.source}: {self.path} must be {wanted}, got {value!r:.80}")

    def key(self, name: str) -> RecordPlace:
        return self._at(f"{self.path}.{name}" if self.path else name)

    def item(self, index: int) -> RecordPlace:
        return self._at(f"{self.path}[{index}]")

    def _at(self, path: str) -> RecordPlace:
        return RecordPlace(self.source, path, self.failed)


def read(value: Any, kind: Kind, place: RecordPlace) -> Any:
    """The inverse of ``write``, of values that may be anything: every one is checked.

    Objects are dicts without what the layout does not name, lists are tuples, and numbers that are
    not known are NaN.
    """
    match kind:
        case Struct():
            if not isinstance(value, Mapping):
                place.fail(words(kind), value)
            return {field.name: _read_field(value, field, place) for field in kind.fields}
        case Many(of=Scalar() as of):
            if not (_is_list(value, kind) and all(_is_item(item, kind, of) for item in value)):
                place.fail(words(kind), value)
            return tuple(_scalar(item, of) for item in value)
        case Many():
            if not _is_list(value, kind):
                place.fail(words(kind), value)
            return tuple(read(item, kind.of, place.item(i)) for i, item in enumerate(value))
        case Scalar():
            # Nothing but an item of a list may be an empty text.
            if value == "" or not _is_scalar(value, kind):
                place.fail(words(kind), value)
            return _scalar(value, kind)


def _read_field(values: Mapping[str, Any], field: Field, place: RecordPlace) -> Any:
    place = place.key(field.name)
    if field.name not in values:
        raise FormatError(f"{place.source}: {place.path} is missing")
    value = values[field.name]
    allowed = field.null is Null.POSSIBLE or (place.failed and field.null is Null.FAILED)
    if value is None and allowed:
        return math.nan if field.kind is Scalar.NUMBER else None
    return read(value, field.kind, place)


def _is_list(value: Any, kind: Many) -> bool:
    return isinstance(value, list) and kind.length in (None, len(value))


def _is_item(value: Any, kind: Many, of: Scalar) -> bool:
    return kind.gaps if value is None else _is_scalar(value, of)


def _is_scalar(value: Any, kind: Scalar) -> bool:
    if isinstance(value, bool) or kind is Scalar.FLAG:
        return isinstance(value, bool) and kind is Scalar.FLAG
    match kind:
        case Scalar.TEXT:
            return isinstance(value, str)
        case Scalar.NUMBER:
            # JSON has no NaN, but 1e999 reads as infinity, and whole numbers may be longer than a
            # float.
            return isinstance(value, int | float) and abs(value) <= sys.float_info.max
        case _:
            least = 0 if kind is Scalar.COUNT else -(2**63)
            return isinstance(value, int) and least <= value < 2**63


def _scalar(value: Any, kind: Scalar) -> Any:
    if kind is not Scalar.NUMBER:
        return value
    return math.nan if value is None else float(value)


SCHEMA = "geocalib/4"
"""The version of the layout; the number grows with every change."""

OLDER = ("geocalib/1", "geocalib/2", "geocalib/3")
"""Earlier versions, which ``geocalib.result.record`` reads."""

TEXT, WHOLE, COUNT, NUMBER = Scalar.TEXT, Scalar.WHOLE, Scalar.COUNT, Scalar.NUMBER
FLAG = Scalar.FLAG
NEVER, FAILED, POSSIBLE = Null.NEVER, Null.FAILED, Null.POSSIBLE

SIGMA = Struct(
    (
        Field("roll_deg", NUMBER, POSSIBLE, "one sigma; 0 for what was held fixed", "degrees"),
        Field("pitch_deg", NUMBER, POSSIBLE, "likewise", "degrees"),
        Field("gravity_deg", NUMBER, POSSIBLE, "along its most uncertain direction", "degrees"),
        Field("vfov_deg", NUMBER, POSSIBLE, "", "degrees"),
        Field("hfov_deg", NUMBER, POSSIBLE, "", "degrees"),
        Field("focal", NUMBER, POSSIBLE, "of fy", "pixels"),
        Field("aspect", NUMBER, POSSIBLE, "of fx / fy", "1"),
        Field("distortion", Many(NUMBER, gaps=True), NEVER, "of each", "as each"),
        Field(
            "principal_point", Many(NUMBER, length=2, gaps=True), NEVER, "of cx and cy", "pixels"
        ),
    )
)

LINES = Struct(
    (
        Field("verdict", TEXT, NEVER, "what they were used for, in a sentence"),
        Field("vertical", COUNT, NEVER, "those used as vertical", "segments"),
        Field("level", Many(COUNT), NEVER, "those used along each level direction", "segments"),
        Field("unused", COUNT, NEVER, "all others", "segments"),
        Field("probability", NUMBER, NEVER, "of the verdict", "1"),
        Field("roll_deg", NUMBER, POSSIBLE, "shift of the answer by lines", "degrees"),
        Field("pitch_deg", NUMBER, POSSIBLE, "likewise", "degrees"),
        Field("vfov_deg", NUMBER, POSSIBLE, "likewise", "degrees"),
    )
)

PRIOR = Struct(
    (
        Field("quantity", TEXT, NEVER, "`focal`, `gravity` or `distortion`"),
        Field("source", TEXT, NEVER, "where it comes from"),
        Field(
            "prior",
            Many(NUMBER),
            NEVER,
            "fy, gravity, or distortion",
            "pixels, or 1",
        ),
        Field("prior_sigma", NUMBER, NEVER, "one sigma; 0: held fixed", "pixels, or degrees"),
        Field("estimate", Many(NUMBER), NEVER, "by what it is held against", "pixels, or 1"),
        Field("estimate_sigma", NUMBER, POSSIBLE, "one sigma", "pixels, or degrees"),
        Field("tension", NUMBER, POSSIBLE, "difference of the two", "sigmas"),
        Field("used", FLAG, NEVER, "whether the answer uses it"),
        Field("against", TEXT, POSSIBLE, "what in the file tells the estimate; null: the picture"),
    )
)

LENS_FAMILY = Struct(
    (
        Field("camera_model", TEXT, NEVER, "the model fitted for the family"),
        Field("probability", NUMBER, NEVER, "of the family", "1"),
        Field("vfov_deg", NUMBER, POSSIBLE, "by the network alone, between borders", "degrees"),
        Field("hfov_deg", NUMBER, POSSIBLE, "likewise", "degrees"),
        Field("roll_deg", NUMBER, POSSIBLE, "likewise", "degrees"),
        Field("pitch_deg", NUMBER, POSSIBLE, "likewise", "degrees"),
    )
)

DRAWN = Struct(
    (
        Field("x0", NUMBER, NEVER, "where the line begins", "pixels"),
        Field("y0", NUMBER, NEVER, "likewise", "pixels"),
        Field("x1", NUMBER, NEVER, "where it ends", "pixels"),
        Field("y1", NUMBER, NEVER, "likewise", "pixels"),
        Field("kind", TEXT, NEVER, "`up`, `level`, `parallel` or `horizon`"),
        Field("to", COUNT, POSSIBLE, "number, from 1, of the parallel line"),
        Field("sigma_deg", NUMBER, NEVER, "of the edge's direction", "degrees"),
        Field("off_deg", NUMBER, NEVER, "residual of the answer", "degrees"),
        Field("tension", NUMBER, NEVER, "difference from the network alone", "sigmas"),
        Field("used", FLAG, NEVER, "whether the answer follows it"),
    )
)

RULER = Struct(
    (
        Field("x0", NUMBER, NEVER, "where the length begins", "pixels"),
        Field("y0", NUMBER, NEVER, "likewise", "pixels"),
        Field("x1", NUMBER, NEVER, "where it ends", "pixels"),
        Field("y1", NUMBER, NEVER, "likewise", "pixels"),
        Field("kind", TEXT, NEVER, "`ground`, or `up`: upright on the ground"),
        Field("metres", NUMBER, NEVER, "its length", "metres"),
        Field("camera_height", NUMBER, NEVER, "above the ground", "metres"),
        Field("camera_height_sigma", NUMBER, POSSIBLE, "one sigma", "metres"),
    )
)

PHOTO = Struct(
    (
        Field("bytes", COUNT, POSSIBLE, "its size", "bytes"),
        Field("modified_ns", WHOLE, POSSIBLE, "when it changed last, since 1970", "nanoseconds"),
        Field("sha256", TEXT, POSSIBLE, "checksum; null if it changed meanwhile"),
        Field("set", TEXT, POSSIBLE, "key of the photos that share its camera"),
    )
)

ORIGIN = (
    Field("request", TEXT, POSSIBLE, "options of the run, as JSON"),
    Field("photo", PHOTO, POSSIBLE, "the file"),
)
"""What a resumed run compares, to skip photos that are done."""

RECORD = Struct(
    (
        Field("schema", TEXT, NEVER, f"`{SCHEMA}`"),
        Field("image", TEXT, POSSIBLE, "the path as it was given"),
        Field(
            "frame", TEXT, FAILED, "`upright`: as the photo is seen, or `stored`: as its pixels lie"
        ),
        Field("orientation", COUNT, POSSIBLE, "EXIF's, 1 to 8"),
        Field("width", COUNT, FAILED, "of the original image, in that frame", "pixels"),
        Field("height", COUNT, FAILED, "likewise", "pixels"),
        Field("camera_model", TEXT, FAILED, "a name of [cameras.md](cameras.md)"),
        Field("fx", NUMBER, FAILED, "focal length", "pixels"),
        Field("fy", NUMBER, FAILED, "likewise", "pixels"),
        Field("cx", NUMBER, FAILED, "the centre of the first pixel is at 0.5", "pixels"),
        Field("cy", NUMBER, FAILED, "likewise", "pixels"),
        Field("distortion", Many(NUMBER), NEVER, "in the model's order", "as each"),
        Field("roll_deg", NUMBER, FAILED, "of the camera", "degrees"),
        Field("pitch_deg", NUMBER, FAILED, "likewise", "degrees"),
        Field("vfov_deg", NUMBER, POSSIBLE, "null where a border has no ray", "degrees"),
        Field("hfov_deg", NUMBER, POSSIBLE, "likewise", "degrees"),
        Field("gravity", Many(NUMBER, length=3), FAILED, "unit vector down, camera frame", "1"),
        Field("sigma", SIGMA, FAILED, "standard deviations"),
        Field("parameters", Many(TEXT), NEVER, "names of the free parameters"),
        Field(
            "covariance", Many(Many(NUMBER, gaps=True)), NEVER, "of these, by rows", "of the two"
        ),
        Field("status", TEXT, FAILED, "how the fit ended; `converged` is the good one"),
        Field(
            "lens",
            Many(LENS_FAMILY),
            NEVER,
            "families compared, likeliest first; empty if named",
        ),
        Field("lines", LINES, POSSIBLE, "straight lines; null if not looked for"),
        Field("warnings", Many(TEXT), NEVER, "reasons to doubt the answer"),
        Field("trusted_gravity", FLAG, FAILED, "false if roll and pitch are in doubt"),
        Field("trusted_fov", FLAG, FAILED, "likewise field of view and focal length"),
        Field("trusted_lens", FLAG, FAILED, "likewise distortion and kind of lens"),
        Field("priors", Many(PRIOR), NEVER, "what was known beside the picture"),
        Field("drawn", Many(DRAWN), NEVER, "lines that a person drew"),
        Field("ruler", RULER, POSSIBLE, "a known length, and the scale by it; null if none"),
        Field("error", TEXT, POSSIBLE, "why there is no answer; null if there is one"),
        *ORIGIN,
    )
)
