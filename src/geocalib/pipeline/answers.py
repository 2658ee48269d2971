"""Images to outcomes, a few at a time: by a calibrator, or out of a file of answers."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geocalib.errors import ConfigError, FormatError, ImageError
from geocalib.formats import json_lines
from geocalib.imaging import read_size
from geocalib.pipeline.request import ALL_IMAGES, Lines, Request
from geocalib.priors.crop import Crop
from geocalib.result.calibration import Failure, Outcome, read_outcome

if TYPE_CHECKING:
    from geocalib.pipeline.calibrator import Calibrator

CHUNK = {"cpu": 4}
"""Images at once by device: a processor gains little from more, and shows progress sooner."""

LARGEST_CHUNK = 16


def calibrated(
    images: Sequence[str],
    missing: Mapping[str, str],
    request: Request,
    load: Callable[[], Calibrator],
    keep_fields: bool = False,
    resume_in: Path | None = None,
) -> Iterator[Outcome]:
    """The outcome of each image, in order.

    missing: the images that do not exist, and why; load: makes the calibrator, when it is first
    needed; keep_fields: with what the network saw; resume_in: a folder for what it saw in images
    that share a camera, until all are done.
    """
    present = [image for image in images if image not in missing]
    answers = _answers(present, request, load, keep_fields, resume_in)
    for image in images:
        if image in missing:
            yield Failure(image, None, None, missing[image])
        else:
            yield next(answers)


def _answers(
    images: Sequence[str],
    request: Request,
    load: Callable[[], Calibrator],
    keep_fields: bool,
    resume_in: Path | None,
) -> Iterator[Outcome]:
    calibrator = load()
    # Who shares a camera is known when all images are.
    size = CHUNK.get(calibrator.device, LARGEST_CHUNK)
    size = len(images) if request.shared else size
    for start in range(0, len(images), max(1, size)):
        chunk = images[start : start + size]
        yield from _chunk(calibrator, chunk, request, keep_fields, resume_in)


def _chunk(
    calibrator: Calibrator,
    images: Sequence[str],
    request: Request,
    keep_fields: bool,
    resume_in: Path | None,
) -> Iterator[Outcome]:
    failures = {} if request.crop is None else _misfits(images, Crop(*request.crop))
    fitting = [image for image in images if image not in failures]
    model = str(request.camera_model)
    answers: Iterator[Outcome] = iter(())
    if fitting and request.shared:
        answers = calibrator.calibrate_set(
            fitting,
            model,
            cameras=_cameras(fitting, request.cameras),
            exif=request.exif,
            keep_fields=keep_fields,
            lines="off" if request.lines is Lines.OFF else "auto",
            resume_in=resume_in,
            **request.priors,
        )
    elif fitting:
        answers = iter(
            calibrator.calibrate(
                fitting,
                model,
                exif=request.exif,
                keep_fields=keep_fields,
                lines=request.lines.value,
                **request.priors,
            )
        )
    for image in images:
        yield failures[image] if image in failures else next(answers)


def _cameras(images: Sequence[str], told: str | None) -> list[int]:
    """An integer per image, equal where the camera is."""
    from geocalib.sets.grouping import group_by_exif, group_by_file

    if told is None:
        return group_by_exif(images)
    return [0] * len(images) if told == ALL_IMAGES else group_by_file(images, told)


def _misfits(images: Sequence[str], crop: Crop) -> dict[str, Failure]:
    """The images that cannot be what was cut out, by their shape; the others have their answers."""
    failures = {}
    for image in images:
        try:
            crop.check(read_size(image), image)
        except (ConfigError, ImageError) as error:
            failures[image] = Failure(image, None, None, str(error))
    return failures


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
