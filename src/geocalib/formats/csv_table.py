"""A table for spreadsheets and data frames: a header and one row per image.

Every number has a column of its own, named by its place in ``geocalib.result.schema``. Cells are
empty where there is no value; the few that hold lists of any length (of free parameters, their
covariance, level lines, warnings, priors and drawn lines) hold them as JSON. Text that a
spreadsheet would take for a formula has an apostrophe before it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from geocalib.cameras import MODELS
from geocalib.errors import FormatError
from geocalib.formats.cells import escape, print_rows, unescape, write_rows
from geocalib.formats.outputs import destination, framed
from geocalib.result.calibration import Outcome, read_outcome
from geocalib.result.record import Frame
from geocalib.result.schema import OLDER, RECORD, SCHEMA, Null, Scalar, Struct

FILE = "calibrations.csv"
FRAME: Frame = "upright"

Place = tuple[str | int, ...]

_SLOTS = range(1, 1 + max(len(model.parameters) for model in MODELS.values()))

SPREAD = {
    "distortion": tuple(f"distortion_{i}" for i in _SLOTS),
    "gravity": ("gravity_x", "gravity_y", "gravity_z"),
    "principal_point": ("cx", "cy"),
}
"""Lists with a column for each number, and what it is called."""


def _columns(layout: Struct, prefix: str, *place: str) -> Iterator[tuple[str, Place, bool]]:
    """Name, place and whether it is text of every column of an object in the record."""
    for field in layout.fields:
        if isinstance(field.kind, Struct):
            yield from _columns(field.kind, f"{prefix}{field.name}_", *place, field.name)
        elif field.name in SPREAD:
            for i, name in enumerate(SPREAD[field.name]):
                yield f"{prefix}{name}", (*place, field.name, i), False
        else:
            yield f"{prefix}{field.name}", (*place, field.name), field.kind is Scalar.TEXT


_EVERY = [column for column in _columns(RECORD, "") if column[0] != "schema"]

COLUMNS: dict[str, Place] = {name: place for name, place, _ in _EVERY}
"""The columns, and where in the record each one's value stands. The header is the schema."""

TEXTS = {name for name, _, text in _EVERY if text}
"""Columns of text; all others hold JSON, which for numbers is the number."""

_ADDED = ("sigma_aspect", "priors", "request", *(name for name in COLUMNS if "photo_" in name))
_FOURTH = ("lens", "drawn", *(n for n in COLUMNS if n.startswith(("trusted_", "ruler_"))))
_THIRD = [name for name in COLUMNS if name not in _FOURTH]
_SECOND = [name for name in _THIRD if name not in ("frame", "orientation")]
_FIRST = [name for name in _SECOND if name not in _ADDED]

HEADERS = {
    tuple(COLUMNS): SCHEMA,
    tuple(_THIRD): OLDER[2],
    tuple(_SECOND): OLDER[1],
    (*_FIRST, "request", "photo"): OLDER[0],
    tuple(_FIRST): OLDER[0],
}
"""The headers that are known, and of which version the rows are."""


def write(outcomes: Iterable[Outcome], path: str | Path, frame: Frame = FRAME) -> list[Path]:
    """Write the table. See ``geocalib.formats`` for the path and what is returned."""
    return write_records((outcome.to_dict() for outcome in framed(outcomes, frame)), path)


def write_records(records: Iterable[Mapping[str, Any]], path: str | Path) -> list[Path]:
    """The same of records as ``geocalib.pipeline.runs.journal`` keeps them."""
    file = destination(path, FILE)
    write_rows(file, _table(records))
    return [file]


def dumps(outcomes: Iterable[Outcome], frame: Frame = FRAME) -> str:
    """The content of a file."""
    stream = io.StringIO(newline="")
    print_rows(stream, _table(outcome.to_dict() for outcome in framed(outcomes, frame)))
    return stream.getvalue()


def _table(records: Iterable[Mapping[str, Any]]) -> Iterator[list[str]]:
    """The header, and a row for each record."""
    yield list(COLUMNS)
    for record in records:
        yield [_cell(name, _at(record, place)) for name, place in COLUMNS.items()]


def read(path: str | Path) -> list[Outcome]:
    """What ``write`` has written, exactly."""
    return [read_outcome(record, source) for source, record in _sourced(path)]


def read_records(path: str | Path) -> Iterator[dict[str, Any]]:
    """The records of the rows, one by one, as plain values."""
    return (record for _, record in _sourced(path))


def is_ours(path: Path) -> bool:
    """Whether a file begins as our tables do."""
    starts = [",".join(header).encode() for header in HEADERS]
    with path.open("rb") as file:
        return file.read(max(map(len, starts))).startswith(tuple(starts))


def _sourced(path: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each record and where it stands."""
    with Path(path).open(encoding="utf-8", errors="surrogateescape", newline="") as stream:
        rows = _rows(csv.reader(stream), path)
        _, header = next(rows, (0, []))
        schema = HEADERS.get(tuple(header))
        if schema is None:
            odd = sorted(set(header) ^ set(COLUMNS)) or ["their order"]
            names = ", ".join(odd).splitlines() or [""]
            raise FormatError(f"{path}: these are not our columns, see {names[0]:.80}")
        for number, row in rows:
            source = f"{path}, line {number}"
            if len(row) != len(header):
                raise FormatError(f"{source}: has {len(row)} cells of {len(header)}")
            cells = {
                name: _value(name, cell, source)
                for name, cell in zip(header, row, strict=True)
                if name in COLUMNS
            }
            yield source, {"schema": schema, **_record(cells)}


def _rows(reader: Any, path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table, each with the number of its line."""
    try:
        yield from ((reader.line_num, row) for row in reader)
    except csv.Error as error:
        raise FormatError(f"{path}: this is not CSV: {error}") from None


def _at(record: Any, place: Place) -> Any:
    """The value at a place, None where the record does not reach that far."""
    for key in place:
        if record is None or (isinstance(key, int) and key >= len(record)):
            return None
        record = record[key] if isinstance(key, int) else record.get(key)
    return record


def _cell(column: str, value: Any) -> str:
    if value is None:
        return ""
    return escape(value) if column in TEXTS else json.dumps(value)


def _value(column: str, cell: str, source: str) -> Any:
    if cell == "" or column in TEXTS:
        return unescape(cell) or None
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        raise FormatError(f"{source}: {column} holds {cell!r:.40}, not a number or JSON") from None


def _record(cells: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a row."""
    model = MODELS.get(cells["camera_model"])
    distortions = 0 if model is None else len(model.parameters)
    record = _object(RECORD, "", cells, distortions)
    return record if record["error"] is None else record | {"gravity": None}


def _object(
    layout: Struct, prefix: str, cells: Mapping[str, Any], distortions: int
) -> dict[str, Any]:
    """An object of the record, without what the table does not tell."""
    found: dict[str, Any] = {}
    for field in layout.fields:
        name = f"{prefix}{field.name}"
        if isinstance(field.kind, Struct):
            inner = _object(field.kind, f"{name}_", cells, distortions)
            optional = field.null is Null.POSSIBLE or cells["error"] is not None
            found[field.name] = None if optional and _is_empty(f"{name}_", cells) else inner
        elif field.name in SPREAD:
            values = [cells[f"{prefix}{column}"] for column in SPREAD[field.name]]
            while field.name == "distortion" and len(values) > distortions and values[-1] is None:
                values.pop()
            found[field.name] = values
        elif name in cells:
            found[field.name] = cells[name]
    return found


def _is_empty(prefix: str, cells: Mapping[str, Any]) -> bool:
    return all(value is None for name, value in cells.items() if name.startswith(prefix))
