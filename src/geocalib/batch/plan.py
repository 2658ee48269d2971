"""Which photos there are, in parts: made once, and kept beside the answers.

A part is done when its table is there: tables appear whole. So a run that was killed, on whatever
machines, goes on with the parts that are missing, and no photo is done twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from geocalib.batch.store import StorePath
from geocalib.errors import FormatError, OutputError
from geocalib.files.guard import MEND
from geocalib.pipeline.runs.journal import check_same

MANIFEST = "_manifest.jsonl"
LAYOUT = "geocalib-batch/1"
"""The version of the manifest; the number grows with every change."""

Kind = Literal["files", "tar", "parquet"]


@dataclass(frozen=True)
class PhotoPart:
    """Photos whose answers make one table."""

    name: str
    kind: Kind
    source: str
    """The archive or the table that holds them; of files: where they were found."""
    entries: Sequence[Any]
    """One for each photo: a path; a member of an archive, with its first byte and its length; or
    the number of a row."""

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def file(self) -> str:
        """What its table is called."""
        return f"{self.name}.parquet"


@dataclass(frozen=True)
class Plan:
    """The options and the photos."""

    question: Mapping[str, Any]
    parts: Sequence[PhotoPart]

    def left(self, output: StorePath) -> list[PhotoPart]:
        """The parts that are not done."""
        there = {file.rpartition("/")[2] for file in output.files()}
        return [part for part in self.parts if part.file not in there]

    def write(self, output: StorePath) -> None:
        """Begin a folder of answers."""
        if output.exists and output.files():
            raise OutputError(f"{output.url} holds something else; {MEND}")
        head = {"layout": LAYOUT, "question": self.question, "parts": len(self.parts)}
        lines = [head, *map(asdict, self.parts)]
        # ASCII, so that file names of any bytes pass.
        (output / MANIFEST).write("".join(f"{json.dumps(line)}\n" for line in lines).encode())


def read_plan(output: StorePath, question: Mapping[str, Any]) -> Plan | None:
    """The plan of a folder, made with the same options; None if there is none yet."""
    manifest = output / MANIFEST
    if not manifest.exists:
        return None
    try:
        head, *lines = map(json.loads, manifest.read().splitlines())
        whole = head["layout"] == LAYOUT and head["parts"] == len(lines)
        noted, parts = head["question"], [PhotoPart(**line) for line in lines]
    except (ValueError, KeyError, TypeError):
        whole = False
    if not whole:
        raise FormatError(f"{manifest.url} is damaged, or of another version; {MEND}")
    check_same(noted, question, Path(manifest.url))
    return Plan(question, parts)
