"""Where the answers of a run are kept, such that an interrupted one goes on where it stopped.

The journal is a file of JSON lines: the output itself if that is what was asked for, or else a
file beside it that is converted in the end.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from geocalib.files import Guard, sha256_of
from geocalib.formats import FORMATS, csv_table, files_of, json_lines
from geocalib.nets.catalogue import identify
from geocalib.pipeline.journal import Journal, Record, check_record, request_of
from geocalib.pipeline.request import Format, Network, Request
from geocalib.priors.sidecar import sidecar_path
from geocalib.records import dataclass
from geocalib.result.record import Frame

OPTIONS = {"vfov_deg": "fov", "roll_deg": "roll", "pitch_deg": "pitch"}
"""What fields of a request are called on the command line, where that differs."""


def question(request: Request, network: Network, frame: Frame | None = None) -> Mapping[str, Any]:
    """All that the answers depend on but the photos."""
    asked = asdict(request) | {"frame": frame}
    if request.file is not None:
        asked["cameras"] = sha256_of(request.file)[:16]
    named = {OPTIONS.get(name, name): value for name, value in asked.items()}
    return request_of(identify(network.weights), **named)


def photo_files(request: Request, image: str) -> Sequence[str]:
    """The files that the answer for an image depends on."""
    return (image, sidecar_path(image)) if request.sensors else (image,)


@dataclass(frozen=True)
class Kept:
    """An output, and the journal on the way to it."""

    format: Format
    output: str
    guard: Guard
    journal: Journal
    frame: Frame | None
    """Of what is written; None: as the readers of the format take pixels."""

    @classmethod
    def create(
        cls,
        format: Format,
        output: str,
        request: Request,
        network: Network,
        guard: Guard,
        frame: Frame | None = None,
    ) -> Kept:
        """Nothing is touched yet."""
        path = Path(f"{Path(output)}.partial.jsonl")
        if format is Format.JSON:
            (file,) = files_of(format, (), output)
            # What is to be replaced stays until all answers are there.
            path = path if guard.overwrite and file.exists() else file
        journal = Journal(path, question(request, network, frame), partial(photo_files, request))
        return cls(format, output, guard, journal, frame)

    @property
    def place(self) -> Path:
        """What only one process at a time may write."""
        if FORMATS[self.format].each is not None:
            return Path(self.output)
        return files_of(self.format, (), self.output)[0]

    def done(self, images: Sequence[str], together: bool) -> set[str]:
        """The images that need no more work; an error if something is in the way of the others."""
        self.guard.check(files_of(self.format, images, self.output), FORMATS[self.format].own)
        self.guard.check([self.journal.path], json_lines.is_ours)
        if self.guard.overwrite:
            self.journal.discard_others()
        return self.journal.done(images, together, self._finished())

    def _finished(self) -> Iterator[Record]:
        """The rows of a table that is to be gone on with."""
        if self.format is Format.CSV and not self.guard.overwrite and self._there():
            for record in csv_table.read_records(self.place):
                check_record(record, self.journal.request, self.place)
                yield record

    def _there(self) -> bool:
        return self.place.exists() and self.place.stat().st_size > 0

    @property
    def begun(self) -> bool:
        """Whether there are answers already."""
        return self.journal.path.exists() or (self.format is Format.CSV and self._there())

    def begin(self, todo: Collection[str]) -> None:
        """Make the journal ready for the answers that are missing."""
        self.journal.adopt(self._finished())
        self.journal.forget(todo)

    def finish(self) -> list[Path]:
        """The files, when all answers are in the journal."""
        if self.journal.path == self.place:
            return [self.place]
        records = list(json_lines.read_records(self.journal.path))
        images = [str(record.get("image")) for record in records]
        self.guard.check(files_of(self.format, images, self.output), FORMATS[self.format].own)
        if self.format is Format.JSON:
            os.replace(self.journal.path, os.path.realpath(self.place))
            return [self.place]
        written = write_as(self.format, self.journal, self.output, self.frame)
        self.journal.path.unlink()
        return written


def write_as(
    format: Format, journal: Journal, output: str | Path, frame: Frame | None = None
) -> list[Path]:
    """Write what a journal holds in a format, and return the files.

    frame: None: as the readers of the format take pixels.
    """
    if format is Format.CSV:
        return csv_table.write_records(json_lines.read_records(journal.path), output)
    outcomes = journal.outcomes()
    return FORMATS[format](outcomes, output, frame)
