"""Images to outcomes, a few at a time: by a calibrator, or out of a file of answers."""

from __future__ import annotations

import os
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, takewhile
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


def calibrated(
    images: Sequence[str],
    missing: Mapping[str, str],
    request: Request,
    load: Callable[[], Calibrator],
    keep_fields: bool = False,
    resume_in: Path | None = None,
    workers: int | None = None,
) -> Iterator[Outcome]:
    """The outcome of each image, in order.

    missing: the images that do not exist, and why; load: makes the calibrator, when it is first
    needed; keep_fields: with what the network saw; resume_in: a folder for what it saw in images
    that share a camera, until all are done; workers: as ``Calibrator.calibrate_many`` takes it.
    """
    failures = {image: Failure(image, None, None, reason) for image, reason in missing.items()}
    crop = None if request.crop is None else Crop(*request.crop)

    taken: deque[str] = deque()

    def fitting() -> Iterator[str]:
        """Those to look at; of the others it is noted why not."""
        for image in images:
            if crop is not None and image not in missing:
                failures.update(_misfit(image, crop))
            if image not in failures:
                taken.append(image)
                yield image

    asked, every = _asked(request, keep_fields), fitting()
    answers: Iterator[Outcome] = iter(())
    if (first := next(every, None)) is None:
        pass  # There is nothing to load a network for.
    elif request.shared:
        # Who shares a camera is known when all images are.
        those = [first, *every]
        cameras = _cameras(those, request.cameras)
        answers = load().calibrate_set(those, cameras=cameras, resume_in=resume_in, **asked)
    else:
        answers = load().calibrate_many(chain([first], every), workers=workers, **asked)
    rest = iter(images)
    for outcome in answers:
        image = taken.popleft()
        # What came before it and was not taken has failed.
        yield from (failures[other] for other in takewhile(image.__ne__, rest))
        yield outcome
    yield from (failures[other] for other in rest)


def _asked(request: Request, keep_fields: bool) -> dict[str, Any]:
    """As keywords of a calibrator."""
    lines = "auto" if request.shared and request.lines is not Lines.OFF else request.lines.value
    return {
        "camera_model": str(request.camera_model),
        "exif": request.exif,
        "keep_fields": keep_fields,
        "lines": lines,
        **request.priors,
    }


def _cameras(images: Sequence[str], told: str | None) -> list[int]:
    """An integer per image, equal where the camera is."""
    from geocalib.sets.grouping import group_by_exif, group_by_file

    if told is None:
        return group_by_exif(images)
    return [0] * len(images) if told == ALL_IMAGES else group_by_file(images, told)


def _misfit(image: str, crop: Crop) -> dict[str, Failure]:
    """Why an image cannot be what was cut out, by its shape, if it cannot."""
    try:
        crop.check(read_size(image), image)
    except (ConfigError, ImageError) as error:
        return {image: Failure(image, None, None, str(error))}
    return {}


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
