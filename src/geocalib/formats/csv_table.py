"""A table for spreadsheets and data frames: a header and one row per image.

Every number has a column of its own. Cells are empty where there is no value; the few that
hold lists (of free parameters, their covariance, level lines and warnings) hold them as JSON.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from geocalib.calibration import SCHEMA, Outcome
from geocalib.cameras import MODELS
from geocalib.errors import FormatError
from geocalib.formats.outputs import destination
from geocalib.formats.record import read_outcome
from geocalib.lines.result import RECORDED

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
}
"""The columns, and where in the record each one's value stands."""

TEXTS = {"image", "camera_model", "status", "lines_verdict", "error"}
"""Columns of text; all others hold JSON, which for numbers is the number."""


def write(outcomes: Iterable[Outcome], path: str | Path) -> list[Path]:
    """Write the table. See ``geocalib.formats`` for the path and what is returned."""
    file = destination(path, FILE)
    file.parent.mkdir(parents=True, exist_ok=True)
    # File names need not be valid text: their bytes go through unchanged.
    with file.open("w", encoding="utf-8", errors="surrogateescape", newline="") as stream:
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow(COLUMNS)
        for outcome in outcomes:
            record = outcome.to_dict()
            rows.writerow(_cell(name, _at(record, place)) for name, place in COLUMNS.items())
    return [file]


def read(path: str | Path) -> list[Outcome]:
    """What ``write`` has written, exactly."""
    outcomes = []
    with Path(path).open(encoding="utf-8", errors="surrogateescape", newline="") as stream:
        rows = csv.reader(stream)
        header = next(rows, [])
        if header != list(COLUMNS):
            odd = sorted(set(header) ^ set(COLUMNS)) or ["their order"]
            raise FormatError(f"{path}: these are not our columns, see {', '.join(odd)}")
        for row in rows:
            source = f"{path}, line {rows.line_num}"
            if len(row) != len(header):
                raise FormatError(f"{source}: has {len(row)} cells of {len(header)}")
            cells = {
                name: _value(name, cell, source) for name, cell in zip(header, row, strict=True)
            }
            outcomes.append(read_outcome(_record(cells), source))
    return outcomes


def _at(record: Any, place: Place) -> Any:
    """The value at a place, None where the record does not reach that far."""
    for key in place:
        if record is None or (isinstance(key, int) and key >= len(record)):
            return None
        record = record[key]
    return record


def _cell(column: str, value: Any) -> str:
    if value is None:
        return ""
    return value if column in TEXTS else json.dumps(value)


def _value(column: str, cell: str, source: str) -> Any:
    if cell == "" or column in TEXTS:
        return cell or None
    try:
        return json.loads(cell)
    except ValueError:
        raise FormatError(f"{source}: {column} holds {cell!r}, not a number or JSON") from None


def _record(cells: dict[str, Any]) -> dict[str, Any]:
    """The record of a row."""
    record: dict[str, Any] = {"schema": SCHEMA, "sigma": {}, "lines": {}}
    for column, place in COLUMNS.items():
        if isinstance(place[-1], int):
            holder, key = _at(record, place[:-2]), place[-2]
            holder.setdefault(key, []).append(cells[column])
        else:
            _at(record, place[:-1])[place[-1]] = cells[column]
    model = MODELS.get(cells["camera_model"])
    if model is not None:
        for values in (record["distortion"], record["sigma"]["distortion"]):
            while len(values) > len(model.parameters) and values[-1] is None:
                values.pop()
    return record
