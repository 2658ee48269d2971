"""Images to outcomes, a few at a time: by a calibrator, or out of a file of answers."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geocalib.errors import ConfigError, FormatError, ImageError
from geocalib.formats import json_lines
from geocalib.imaging import read_size
from geocalib.pipeline.interleave import interleaved
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
    crop = None if request.crop is None else Crop(*request.crop)

    def looked_at() -> Iterator[str | Failure]:
        for image in images:
            if image in missing:
                yield Failure(image, None, None, missing[image])
            else:
                yield image if crop is None else _fitting(image, crop)

    def answer(fitting: Iterator[str]) -> Iterator[Outcome]:
        if (first := next(fitting, None)) is None:
            return iter(())  # There is nothing to load a network for.
        every, asked = chain([first], fitting), asked_of(request, keep_fields)
        if not request.shared:
            return load().calibrate_many(every, workers=workers, **asked)
        # Who shares a camera is known when all images are.
        those = list(every)
        cameras = _cameras(those, request.cameras)
        return load().calibrate_set(those, cameras=cameras, resume_in=resume_in, **asked)

    return interleaved(looked_at(), answer)


def asked_of(request: Request, keep_fields: bool = False) -> dict[str, Any]:
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
