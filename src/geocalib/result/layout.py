"""What records are made of: kinds of values, how they are written as JSON, and how they are read.

A record has one layout, whatever it holds: the same keys in the same order, each of one kind. What
is not known is null; a list of any length is never null, but empty.
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
