"""Answers on disk as they come, each with the question that it answers and the photo it is of.

A run that was interrupted goes on with them where it stopped, if it asks the same: a journal never
mixes the answers to two questions. A photo that has changed since is calibrated again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from geocalib.errors import GeoCalibError, OutputError
from geocalib.files import replacing
from geocalib.files.guard import MEND
from geocalib.files.snapshot import FileStat, file_stat, snapshot, unchanged
from geocalib.formats import json_lines
from geocalib.records import dataclass
from geocalib.result.calibration import OUTLIER, Outcome, read_outcome
from geocalib.result.schema import PHOTO, SCHEMA

Request = Mapping[str, Any]
"""What was requested: plain values by the names of options, without those that say nothing."""

Record = dict[str, Any]


def request_of(weights: str, **wanted: Any) -> Request:
    """The request of a run with these weights, as ``identify`` names them, of this version."""
    from importlib.metadata import version  # Not at the top: it is slow to import.

    every = {"version": version("geocalib"), "weights": weights, **wanted}
    # Not by "in (None, False)": a zero is equal to False, and a value.
    values = {n: value for n, value in every.items() if value is not None and value is not False}
    # As it is read back.
    return dict(json.loads(json.dumps(values)))


def to_text(request: Request) -> str:
    """The request as records hold it."""
    return json.dumps(request)


def check_record(record: Record, request: Request, path: Path, schema: str = SCHEMA) -> None:
    """An error if the file at the path, which holds this record, answers another question, or has
    not this layout."""
    json_lines.check_version(record, path, schema)
    noted = record.get("request")
    try:
        wanted = json.loads(noted) if isinstance(noted, str) else None
    except ValueError:
        wanted = None
    check_same(wanted, request, path)


def check_same(noted: object, request: Request, path: Path) -> None:
    """An error if the file at the path answers another question than this."""
    if not isinstance(noted, Mapping):
        raise OutputError(
            f"{path} does not say what was asked, so nothing can be added to it; {MEND}"
        )
    for name in dict.fromkeys((*noted, *request)):
        there, here = noted.get(name), request.get(name)
        if there != here:
            words = f"{_words(name, there)} there, {_words(name, here)} here"
            raise OutputError(f"{path} answers another question ({words}); {MEND}")


def _words(name: str, value: object) -> str:
    option = f"--{name.replace('_', '-')}"
    if name == "version":
        return f"geocalib {value}"
    if value is None:
        return f"no {option}"
    return option if value is True else f"{option} {value}"


def _itself(image: str) -> Sequence[str]:
    return (image,)


@dataclass(frozen=True)
class Journal:
    """A file of JSON lines that answers one question."""

    path: Path
    request: Request
    files: Callable[[str], Sequence[str]] = _itself
    """What an answer depends on: the photo first, and what may lie beside it."""

    def done(
        self, images: Collection[str], together: bool = False, more: Iterable[Record] = ()
    ) -> set[str]:
        """The images that need no more work; an error if the journal answers another question.

        Failed images are tried again, but not outliers. together: the images share cameras, and
        are done all or none. more: records that count as well, to be adopted.
        """
        wanted = set(images)
        group = _group(images) if together else None
        done: set[str] = set()
        for record in chain(self._records(), more):
            check_record(record, self.request, self.path)
            image = record.get("image")
            failed = record.get("error") is not None and record.get("status") != OUTLIER
            if isinstance(image, str) and image in wanted and not failed:
                done |= {image} if self._holds(image, record.get("photo"), group) else set()
        return set() if together and done != wanted else done

    def _holds(self, image: str, noted: object, group: str | None) -> bool:
        """Whether the photo and the others of its set are as they were."""
        known = noted if isinstance(noted, Mapping) else {}
        return known.get("set") == group and unchanged(known, self.files(image))

    def discard_others(self) -> None:
        """Remove the file unless it answers this question."""
        try:
            self.done(())
        except GeoCalibError:
            self.path.unlink()

    def forget(self, images: Collection[str]) -> None:
        """Remove what it says of these images; lines of others stay."""
        if any(record.get("image") in images for record in self._records()):
            with replacing(self.path) as file:
                for record in json_lines.read_records(self.path):
                    if record.get("image") not in images:
                        file.write(json_lines.to_line(record))

    def adopt(self, records: Iterable[Record]) -> None:
        """Take over records of images that it says nothing of."""
        known = {record.get("image") for record in self._records()}
        new = [record for record in records if record.get("image") not in known]
        if new:
            with json_lines.Writer(self.path) as writer:
                for record in new:
                    writer.write_record(record)

    @contextmanager
    def appending(
        self, images: Collection[str], together: bool = False
    ) -> Iterator[Callable[[Outcome], None]]:
        """A function that adds the answer for one of the images."""
        before = {image: file_stat(self.files(image)) for image in images}
        group = _group(images) if together else None
        request = to_text(self.request)
        with json_lines.Writer(self.path) as writer:

            def append(outcome: Outcome) -> None:
                image = str(outcome.image)
                photo = photo_of(self.files(image), before.get(image), group)
                writer.write_record({**outcome.to_dict(), "request": request, "photo": photo})

            yield append

    def outcomes(self) -> Iterator[Outcome]:
        """All answers of the file, in order."""
        for number, record in enumerate(self._records(), 1):
            yield read_outcome(record, f"{self.path}, line {number}")

    def _records(self) -> Iterator[Record]:
        return json_lines.read_records(self.path) if self.path.exists() else iter(())


def photo_of(
    files: Sequence[str], before: FileStat | None, group: str | None = None
) -> Record | None:
    """What records say of the files that an answer depends on (``snapshot``), and of their set."""
    found = {**dict.fromkeys(PHOTO.keys), **snapshot(files, before), "set": group}
    return found if any(value is not None for value in found.values()) else None


def _group(images: Iterable[str]) -> str:
    """What tells a set of images from others."""
    names = "\0".join(sorted(images)).encode(errors="surrogateescape")
    return hashlib.sha256(names).hexdigest()[:16]
