"""JSON Lines: one record per line, in a file that a run can be resumed on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

from geocalib.errors import FormatError, OutputError
from geocalib.files import is_special, naming, replacing
from geocalib.files.guard import MEND
from geocalib.formats.outputs import destination, framed
from geocalib.result.calibration import Outcome, read_outcome
from geocalib.result.record import Frame, parse, to_text
from geocalib.result.schema import OLDER, SCHEMA

FILE = "calibrations.jsonl"
FRAME: Frame = "upright"

STARTS = tuple(f'{{"schema": "{schema}"'.encode() for schema in (SCHEMA, *OLDER))
"""The first bytes of a line, for every schema."""

LONGEST = 1 << 24
"""Bytes: a line that goes on longer is no record."""


class Writer:
    """Appends records to a file, each handed to the system before the next begins.

    What an interrupted run has left of its last record is removed. A file has one layout: nothing
    is added to records of an earlier version.

    >>> with Writer("out.jsonl") as writer:  # doctest: +SKIP
    ...     writer.write(calibration)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with naming(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _mend_end(self.path)
            self._file = self.path.open("ab")

    def write(self, outcome: Outcome) -> None:
        """Append one record as a line."""
        self.write_record(outcome.to_dict())

    def write_record(self, record: Mapping[str, Any]) -> None:
        """The same of a record as ``geocalib.pipeline.runs.journal`` keeps it."""
        with naming(self.path):
            self._file.write(to_line(record))
            self._file.flush()

    def close(self) -> None:
        with naming(self.path):
            self._file.close()

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def write(outcomes: Iterable[Outcome], path: str | Path, frame: Frame = FRAME) -> list[Path]:
    """Write a new file. See ``geocalib.formats`` for the path and what is returned."""
    file = destination(path, FILE)
    with replacing(file) as stream:
        for outcome in framed(outcomes, frame):
            stream.write(to_line(outcome.to_dict()))
    return [file]


def to_line(record: Mapping[str, Any]) -> bytes:
    """The line of a record."""
    return to_text(record).encode("ascii") + b"\n"


def dumps(outcomes: Iterable[Outcome], frame: Frame = FRAME) -> str:
    """The content of a file."""
    return "".join(outcome.to_json() + "\n" for outcome in framed(outcomes, frame))


def read(path: str | Path) -> list[Outcome]:
    """What ``write`` has written, exactly."""
    return [read_outcome(record, source) for source, record in _sourced(Path(path))]


def read_records(path: str | Path) -> Iterator[dict[str, Any]]:
    """The records one by one, as plain values: enough to see which images are done.

    A last line that was cut short is left out; any other malformed line is an error.
    """
    return (record for _, record in _sourced(Path(path)))


def check_version(record: Mapping[str, Any], path: Path, schema: str) -> None:
    """An error if the file at the path, which holds this record, has not the layout of today:
    nothing can be added to it."""
    if record["schema"] != schema:
        raise OutputError(f"{path} holds records of {record['schema']}, not {schema}; {MEND}")


def is_ours(path: Path) -> bool:
    """Whether a file begins with a record, or with the beginning of one."""
    with path.open("rb") as file:
        line = file.readline(LONGEST)
    if _is_cut_short(line):
        return True
    try:
        parse(line, str(path))
    except FormatError:
        return False
    return True


def _sourced(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each record and where it stands."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            source = f"{path}, line {number}"
            if line.strip() and not _is_cut_short(line):
                yield source, parse(line, source)


def _is_cut_short(line: bytes) -> bool:
    """Whether this is the beginning of a record, left behind by a run that was interrupted."""
    if line.endswith(b"\n") or not any(line.startswith(start[: len(line)]) for start in STARTS):
        return False
    # No beginning of a JSON object is JSON.
    try:
        json.loads(line)
    except ValueError:
        return True
    return False


def _mend_end(path: Path) -> None:
    """Make the file end with a whole line, of a record as it is to be gone on with."""
    if not path.exists() or is_special(path):
        return
    with path.open("rb+") as file:
        start, last = 0, b""
        for line in file:
            start, last = start + len(last), line
        if _is_cut_short(last):
            file.truncate(start)
        elif last and not last.endswith(b"\n"):
            parse(last, f"{path}, its last line")
            file.write(b"\n")
    for record in islice(read_records(path), 1):
        check_version(record, path, SCHEMA)
