"""Images to outcomes, a few at a time: by a calibrator, or out of a file of answers."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from geocalib import console
from geocalib.cli.inputs import chunks
from geocalib.cli.options import ALL_IMAGES, Lines, Network, Request
from geocalib.errors import ConfigError, FormatError, ImageError
from geocalib.formats import json_lines
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.imaging import read_size
from geocalib.priors.crop import Crop
from geocalib.result.calibration import Failure, Outcome, read_outcome

if TYPE_CHECKING:
    from geocalib.pipeline.calibrator import Calibrator

CHUNK = {"cpu": 4}
"""Images at once by device: a processor gains little from more, and shows progress sooner."""

LARGEST_CHUNK = 16

PLACEHOLDER = "these are placeholder weights that were never trained: the numbers mean nothing"


def load(network: Network) -> Calibrator:
    """The calibrator; says so if its answers are worthless."""
    from geocalib.pipeline.calibrator import Calibrator

    calibrator = Calibrator(network.weights, device=network.device)
    if not calibrator.card.trained:
        console.warn(PLACEHOLDER)
    return calibrator


def calibrated(
    images: Sequence[str],
    missing: Mapping[str, str],
    request: Request,
    network: Network,
    keep_fields: bool = False,
    resume_in: Path | None = None,
) -> Iterator[Outcome]:
    """The outcome of each image, in order. The network is loaded when it is first needed.

    missing: the images that do not exist, and why; keep_fields: with what the network saw;
    resume_in: a folder for what it saw in images that share a camera, until all are done.
    """
    present = [image for image in images if image not in missing]
    answers = _answers(present, request, network, keep_fields, resume_in)
    for image in images:
        if image in missing:
            yield Failure(image, None, None, missing[image])
        else:
            yield next(answers)


def _answers(
    images: Sequence[str],
    request: Request,
    network: Network,
    keep_fields: bool,
    resume_in: Path | None,
) -> Iterator[Outcome]:
    calibrator = load(network)
    # Who shares a camera is known when all images are.
    size = CHUNK.get(calibrator.device.type, LARGEST_CHUNK)
    for chunk in chunks(images, len(images) if request.shared else size):
        yield from _chunk(calibrator, chunk, request, keep_fields, resume_in)


def _chunk(
    calibrator: Calibrator,
    images: Sequence[str],
    request: Request,
    keep_fields: bool,
    resume_in: Path | None,
) -> Iterator[Outcome]:
    failures = {} if request.asked.crop is None else _misfits(images, Crop(*request.asked.crop))
    focal: float | list[float] | None = request.focal
    if request.vfov_deg is not None:
        fitting = [image for image in images if image not in failures]
        focal, unreadable = _focals(fitting, request.vfov_deg)
        failures |= unreadable
    readable = [image for image in images if image not in failures]
    answers: Iterator[Outcome] = iter(())
    if readable and request.shared:
        answers = calibrator.calibrate_set(
            readable,
            str(request.camera_model),
            cameras=_cameras(readable, request.cameras),
            focal=focal,
            gravity=_gravity(request),
            exif=request.exif,
            keep_fields=keep_fields,
            lines="off" if request.lines is Lines.OFF else "auto",
            resume_in=resume_in,
            **request.asked.keywords,
        )
    elif readable:
        answers = iter(
            calibrator.calibrate(
                readable,
                str(request.camera_model),
                focal=focal,
                gravity=_gravity(request),
                exif=request.exif,
                keep_fields=keep_fields,
                lines=request.lines.value,
                **request.asked.keywords,
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


def _focals(images: Sequence[str], vfov_deg: float) -> tuple[list[float], dict[str, Failure]]:
    """Focal lengths in pixels of the images that can be read, and why the others cannot."""
    focals, failures = [], {}
    for image in images:
        try:
            height = read_size(image)[1]
        except ImageError as error:
            failures[image] = Failure(image, None, None, str(error))
        else:
            focals.append(height / (2 * math.tan(math.radians(vfov_deg) / 2)))
    return focals, failures


def _misfits(images: Sequence[str], crop: Crop) -> dict[str, Failure]:
    """The images that cannot be what was cut out, by their shape; the others have their answers."""
    failures = {}
    for image in images:
        try:
            crop.check(read_size(image), image)
        except (ConfigError, ImageError) as error:
            failures[image] = Failure(image, None, None, str(error))
    return failures


def _gravity(request: Request) -> torch.Tensor | None:
    if request.roll_deg is None or request.pitch_deg is None:
        return None
    angles = torch.tensor([request.roll_deg, request.pitch_deg], dtype=torch.float64).deg2rad()
    return from_roll_pitch(angles[0], angles[1])


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
