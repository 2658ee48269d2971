"""A table for spreadsheets and data frames: a header and one row per image.

Every number has a column of its own. Cells are empty where there is no value; the few that
hold lists (of free parameters, their covariance, level lines and warnings) hold them as JSON. Text
that a spreadsheet would take for a formula has an apostrophe before it.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from geocalib.cameras import MODELS
from geocalib.errors import FormatError
from geocalib.formats.cells import escape, unescape, write_rows
from geocalib.formats.outputs import destination
from geocalib.result.calibration import SCHEMA, Outcome
from geocalib.result.lines import RECORDED
from geocalib.result.record import read_outcome

FILE = "calibrations.csv"

Place = tuple[str | int, ...]

_SLOTS = range(max(len(model.parameters) for model in MODELS.values()))

COLUMNS: dict[str, Place] = {
    **{key: (key,) for key in ("image", "width", "height", "camera_model")},
    **{key: (key,) for key in ("fx", "fy", "cx", "cy")},
    **{f"distortion_{i + 1}": ("distortion", i) for i in _SLOTS},
    **{key: (key,) for key in ("roll_deg", "pitch_deg", "vfov_deg", "hfov_deg")},
    **{f"gravity_{axis}": ("gravity", i) for i, axis in enumerate("xyz")},
    **{
        f"sigma_{key}": ("sigma", key)
        for key in ("roll_deg", "pitch_deg", "gravity_deg", "vfov_deg", "hfov_deg", "focal")
    },
    **{f"sigma_distortion_{i + 1}": ("sigma", "distortion", i) for i in _SLOTS},
    **{f"sigma_c{axis}": ("sigma", "principal_point", i) for i, axis in enumerate("xy")},
    **{key: (key,) for key in ("parameters", "covariance", "status")},
    **{f"lines_{key}": ("lines", key) for key in RECORDED},
    **{key: (key,) for key in ("warnings", "error")},
    **{key: (key,) for key in ("request", "photo")},
}
"""The columns, and where in the record each one's value stands."""

TEXTS = {"image", "camera_model", "status", "lines_verdict", "error"}
"""Columns of text; all others hold JSON, which for numbers is the number."""


OLDER = [column for column in COLUMNS if column not in ("request", "photo")]
"""The columns of tables that do not tell what was asked."""


def write(outcomes: Iterable[Outcome], path: str | Path) -> list[Path]:
    """Write the table. See ``geocalib.formats`` for the path and what is returned."""
    return write_records((outcome.to_dict() for outcome in outcomes), path)


def write_records(records: Iterable[Mapping[str, Any]], path: str | Path) -> list[Path]:
    """The same of records as ``geocalib.pipeline.journal`` keeps them."""
    file = destination(path, FILE)
    rows = (
        [_cell(name, _at(record, place)) for name, place in COLUMNS.items()] for record in records
    )
    write_rows(file, chain([list(COLUMNS)], rows))
    return [file]


def read(path: str | Path) -> list[Outcome]:
    """What ``write`` has written, exactly."""
    return [read_outcome(record, source) for source, record in _sourced(path)]


def read_records(path: str | Path) -> Iterator[dict[str, Any]]:
    """The records of the rows, one by one, as plain values."""
    return (record for _, record in _sourced(path))


def is_ours(path: Path) -> bool:
    """Whether a file begins as our tables do."""
    start = ",".join(OLDER).encode()
    with path.open("rb") as file:
        return file.read(len(start)) == start


def _sourced(path: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each record and where it stands."""
    with Path(path).open(encoding="utf-8", errors="surrogateescape", newline="") as stream:
        rows = _rows(csv.reader(stream), path)
        _, header = next(rows, (0, []))
        if header not in (list(COLUMNS), OLDER):
            odd = sorted(set(header) ^ set(COLUMNS)) or ["their order"]
            names = ", ".join(odd).splitlines() or [""]
            raise FormatError(f"{path}: these are not our columns, see {names[0]:.80}")
        for number, row in rows:
            source = f"{path}, line {number}"
            if len(row) != len(header):
                raise FormatError(f"{source}: has {len(row)} cells of {len(header)}")
            cells = {
                name: _value(name, cell, source) for name, cell in zip(header, row, strict=True)
            }
            yield source, _record(cells)


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


def _record(cells: dict[str, Any]) -> dict[str, Any]:
    """The record of a row."""
    record: dict[str, Any] = {"schema": SCHEMA, "sigma": {}, "lines": {}}
    for column, place in COLUMNS.items():
        if isinstance(place[-1], int):
            holder, key = _at(record, place[:-2]), place[-2]
            holder.setdefault(key, []).append(cells.get(column))
        else:
            _at(record, place[:-1])[place[-1]] = cells.get(column)
    model = MODELS.get(cells["camera_model"])
    if model is not None:
        for values in (record["distortion"], record["sigma"]["distortion"]):
            while len(values) > len(model.parameters) and values[-1] is None:
                values.pop()
    return record
