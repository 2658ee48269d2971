"""The layout of records in the words of others: Apache Arrow (and so Parquet), JSON Schema, and the
tables in ``docs/``.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from geocalib.errors import MissingPackageError, how_to_get
from geocalib.result.schema import RECORD, Kind, Many, Null, Scalar, Struct, words

if TYPE_CHECKING:
    import pyarrow


def arrow_schema(layout: Struct = RECORD) -> pyarrow.Schema:
    """The columns of records; those of videos have ``geocalib.video.records.FRAME``."""
    try:
        arrow = import_module("pyarrow")
    except ImportError:
        raise MissingPackageError(
            f"Arrow's schema needs pyarrow; {how_to_get('parquet')}"
        ) from None
    scalars = {
        Scalar.TEXT: arrow.string(),
        Scalar.WHOLE: arrow.int64(),
        Scalar.COUNT: arrow.int64(),
        Scalar.NUMBER: arrow.float64(),
        Scalar.FLAG: arrow.bool_(),
    }

    def type_of(kind: Kind) -> Any:
        match kind:
            case Scalar():
                return scalars[kind]
            case Many():
                return arrow.list_(arrow.field("item", type_of(kind.of), kind.gaps))
            case Struct():
                # All nullable: Arrow's reader of JSON lines takes no null object otherwise.
                return arrow.struct([(field.name, type_of(field.kind)) for field in kind.fields])

    return arrow.schema(
        arrow.field(field.name, type_of(field.kind), field.null is not Null.NEVER)
        for field in layout.fields
    )


def json_schema(layout: Struct = RECORD) -> dict[str, Any]:
    """A JSON Schema (2020-12) of records; further keys are allowed, as readers pass over them."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_json_type(layout)}


_JSON_SCALARS: dict[Scalar, dict[str, Any]] = {
    Scalar.TEXT: {"type": "string"},
    Scalar.WHOLE: {"type": "integer"},
    Scalar.COUNT: {"type": "integer", "minimum": 0},
    Scalar.NUMBER: {"type": "number"},
    Scalar.FLAG: {"type": "boolean"},
}


def _json_type(kind: Kind, nullable: bool = False) -> dict[str, Any]:
    match kind:
        case Scalar():
            found = dict(_JSON_SCALARS[kind])
        case Many():
            found = {"type": "array", "items": _json_type(kind.of, kind.gaps)}
            if kind.length is not None:
                found |= {"minItems": kind.length, "maxItems": kind.length}
        case Struct():
            parts = {f.name: _json_type(f.kind, f.null is not Null.NEVER) for f in kind.fields}
            found = {"type": "object", "properties": parts, "required": list(parts)}
    return found | {"type": [found["type"], "null"]} if nullable else found


MARKS = {Null.NEVER: "", Null.FAILED: "\\*", Null.POSSIBLE: "?"}
"""What stands behind keys whose values may be null, in tables of pages."""


def markdown(layout: Struct) -> str:
    """The table of a page: every key, with those of objects after it; see ``MARKS``."""
    return "\n".join(["| key | value | |", "|---|---|---|", *_rows(layout, "")])


def _rows(layout: Struct, prefix: str) -> Iterator[str]:
    for field in layout.fields:
        name, kind = f"{prefix}{field.name}", words(field.kind)
        kind = kind.removeprefix("a list of ").removeprefix("an ").removeprefix("a ")
        kind = kind.replace("whole number that is not negative", "count")
        unit = "" if field.unit == "1" else field.unit
        value = ", ".join(filter(None, (kind, unit)))
        yield f"| `{name}`{MARKS[field.null]} | {value} | {field.meaning or ' '} |".replace(
            "|   |", "| |"
        )
        many = isinstance(field.kind, Many)
        inner = field.kind.of if isinstance(field.kind, Many) else field.kind
        if isinstance(inner, Struct) and inner is not RECORD:
            yield from _rows(inner, f"{name}[]." if many else f"{name}.")
