"""The answers of a run: by a calibrator, a few at a time, or out of a file of answers; and the
files that they end in, such that an interrupted run goes on where it stopped.

The journal is a file of JSON lines: the output itself if that is what was wanted, or else a
file beside it that is converted in the end.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geocalib.errors import ConfigError, FormatError, ImageError
from geocalib.files import Guard, sha256_of
from geocalib.formats import FORMATS, csv_table, files_of, json_lines
from geocalib.imaging import read_size
from geocalib.nets.weights.catalogue import identify
from geocalib.pipeline.engines.load import EngineSpec
from geocalib.pipeline.options import Format, Options
from geocalib.pipeline.parallel.stream import interleaved
from geocalib.pipeline.runs.journal import Journal, Record, check_record, request_of
from geocalib.priors.crop import Crop, crops_of
from geocalib.priors.readings import sidecar_of
from geocalib.records import dataclass
from geocalib.result.calibration import Failure, Outcome, read_outcome
from geocalib.result.record import Frame

if TYPE_CHECKING:
    from geocalib.pipeline.calibrator import Calibrator


def calibrated(
    images: Sequence[str],
    missing: Mapping[str, str],
    options: Options,
    load: Callable[[], Calibrator],
    resume_in: Path | None = None,
    workers: int | None = None,
) -> Iterator[Outcome]:
    """The outcome of each image, in order.

    missing: the images that do not exist, and why; load: makes the calibrator, when it is first
    needed; resume_in: a folder for what the network saw in images that share a camera, until all
    are done; workers: as ``Calibrator.calibrate_many`` takes it.
    """
    (crop,) = crops_of(options.crop, 1)

    def existing() -> Iterator[str | Failure]:
        for image in images:
            if image in missing:
                yield Failure(image, None, None, missing[image])
            else:
                yield image if crop is None else _fitting(image, crop)

    def answer(fitting: Iterator[str]) -> Iterator[Outcome]:
        if (first := next(fitting, None)) is None:
            return iter(())  # There is nothing to load a network for.
        every = chain([first], fitting)
        if options.of_one:
            return iter(load().calibrate(list(every), options=options))
        if not options.shared_intrinsics:
            return load().calibrate_many(every, workers=workers, options=options)
        # Which images share a camera is known when all images are.
        return load().calibrate_set(list(every), resume_in=resume_in, options=options)

    return interleaved(existing(), answer)


def _fitting(image: str, crop: Crop) -> str | Failure:
    """An image that can be what was cut out, by its shape, or why it cannot."""
    try:
        crop.check(read_size(image), image)
    except (ConfigError, ImageError) as error:
        return Failure(image, None, None, str(error))
    return image


def saved(images: Sequence[str], missing: Mapping[str, str], file: Path) -> Iterator[Outcome]:
    """The outcome of each image, in order, as a file of JSON lines has it.

    A line belongs to an image if it names the same path, or else if it is the only one with
    that file name: the answers may have been found from another folder.
    """
    wanted = {os.path.basename(image) for image in images}
    by_name: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for record in json_lines.read_records(file):
        path = str(record.get("image"))
        if os.path.basename(path) in wanted:
            by_name[os.path.basename(path)][path] = record
    for image in images:
        alike = by_name[os.path.basename(image)]
        found = alike.get(image) or (next(iter(alike.values())) if len(alike) == 1 else None)
        if image in missing:
            yield Failure(image, None, None, missing[image])
        elif found is not None:
            try:
                yield read_outcome(found, f"{file}, {image}")
            except FormatError as error:
                yield Failure(image, None, None, str(error))
        else:
            several = f"names {len(alike)} others alike" if alike else "does not name it"
            yield Failure(image, None, None, f"{image}: {file} {several}; calibrate it first")


def question(options: Options, spec: EngineSpec, frame: Frame | None = None) -> Mapping[str, Any]:
    """All that the answers depend on but the photos."""
    wanted = options.to_request() | {"frame": frame}
    if options.table is not None:
        wanted["cameras"] = sha256_of(options.table)[:16]
    return request_of(identify(spec.weights), **wanted)


def photo_files(options: Options, image: str) -> Sequence[str]:
    """The files that the answer for an image depends on."""
    beside = sidecar_of(image) if options.sensors else None
    return (image,) if beside is None else (image, beside)


@dataclass(frozen=True)
class OutputFile:
    """An output, and the journal on the way to it."""

    format: Format
    output: str
    guard: Guard
    journal: Journal
    frame: Frame | None
    """The frame of what is written; None: as the readers of the format take pixels."""

    @classmethod
    def create(
        cls,
        format: Format,
        output: str,
        options: Options,
        spec: EngineSpec,
        guard: Guard,
        frame: Frame | None = None,
    ) -> OutputFile:
        """The answers of a run with these options; no file is touched yet."""
        path = Path(f"{Path(output)}.partial.jsonl")
        if format is Format.JSON:
            (file,) = files_of(format, (), output)
            # What is to be replaced stays until all answers are there.
            path = path if guard.overwrite and file.exists() else file
        journal = Journal(path, question(options, spec, frame), partial(photo_files, options))
        return cls(format, output, guard, journal, frame)

    @property
    def place(self) -> Path:
        """What only one process at a time may write."""
        if FORMATS[self.format].is_one_each:
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
        """The rows of a table that the run resumes."""
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
    return FORMATS[format](journal.outcomes(), output, frame)
