"""Answers on disk as they come, so that a run that was interrupted goes on where it stopped.

The journal is a file of JSON lines: the output itself if that is what was asked for, or else a
file beside it that is converted in the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from geocalib.calibration import OUTLIER, Outcome
from geocalib.cli.options import Format, Request
from geocalib.errors import ConfigError
from geocalib.formats import FORMATS, json_lines
from geocalib.formats.outputs import destination
from geocalib.formats.record import read_outcome
from geocalib.nets.download import replacing


def journal_path(output: str, format: Format) -> Path:
    """Where the answers go on the way to an output."""
    if format is Format.JSON:
        return destination(output, json_lines.FILE)
    return Path(f"{Path(output)}.partial.jsonl")


def resume(journal: Path, images: Iterable[str], request: Request) -> set[str]:
    """The images that need no more work; what a journal says of the others is removed from it.

    Failed images are tried again, but not outliers. Images that share a camera are done all or
    none. Lines of other images stay.
    """
    if not journal.exists():
        return set()
    asked = set(images)
    done: set[str] = set()
    again: set[str] = set()
    for record in json_lines.read_records(journal):
        image, model = record.get("image"), record.get("camera_model")
        if image not in asked:
            continue
        if record.get("status") == OUTLIER:
            done.add(image)
        elif record.get("error") is not None:
            again.add(image)
        elif model != request.camera_model:
            raise ConfigError(
                f"{journal} holds answers for {model}, not {request.camera_model}; delete it, or "
                "choose another output"
            )
        else:
            done.add(image)
    if request.shared and done != asked:
        again, done = asked, set()
    if again - done:
        _remove(journal, again - done)
    return done


def _remove(journal: Path, images: set[str]) -> None:
    with replacing(journal) as file:
        for record in json_lines.read_records(journal):
            if record.get("image") not in images:
                file.write(json.dumps(record).encode("ascii") + b"\n")


def convert(journal: Path, format: Format, output: str | Path) -> list[Path]:
    """Write what the journal holds in another format, and return the files."""

    def outcomes() -> Iterator[Outcome]:
        for number, record in enumerate(json_lines.read_records(journal), 1):
            yield read_outcome(record, f"{journal}, line {number}")

    return FORMATS[format](outcomes(), output)
