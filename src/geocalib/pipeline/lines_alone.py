"""Straight lines alone, without the network: ``lines="only"``."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from geocalib.cameras.base import CameraModel
from geocalib.errors import ConfigError, ImageError
from geocalib.geometry.segments import Segments
from geocalib.imaging import ImageSource, read_photo
from geocalib.lines.detect import SHORT_SIDE, detect
from geocalib.lines.vanishing import TOO_FEW, calibrate_by_lines
from geocalib.pipeline.arguments import Knowns, LinesMode
from geocalib.pipeline.predict import Seen
from geocalib.pipeline.prepare import path_of
from geocalib.pipeline.rotation import Mode
from geocalib.priors.enabled import File
from geocalib.result.calibration import Failure, Outcome
from geocalib.result.trust import doubts


def check_lines(lines: str) -> None:
    """An error if there is no such use of lines."""
    if lines not in get_args(LinesMode):
        raise ConfigError(f"lines is {lines!r}; known: {', '.join(get_args(LinesMode))}")


def check_nothing_told(known: Knowns, rotation: Mode) -> None:
    """An error if lines alone are told something."""
    switches = ("exif", "keep_fields", "sensors", "shared_intrinsics", "prior")
    flags = (
        known.get("sensors", False),
        rotation == "on",
        known.get("shared_intrinsics", False) is not False,
        known.get("prior", "none") != "none",
    )
    values = (value for name, value in known.items() if name not in switches)
    if any(flags) or any(value is not None for value in values):
        raise ConfigError('lines="only" takes images and a camera model, and nothing else')


def lines_of_image(source: ImageSource, model: CameraModel) -> Outcome:
    """What straight lines alone say of one image."""
    try:
        photo = read_photo(source, SHORT_SIDE)
    except ImageError as error:
        return Failure(path_of(source), None, None, str(error))
    file = File(path_of(source), photo.name, photo.size, photo.metadata)
    return _by_lines(file, detect(photo), photo.notes, model)


def lines_of_sight(sight: Seen, model: CameraModel) -> Outcome:
    """The same of one that has been looked at."""
    if (segments := sight.lines) is None:
        raise ConfigError('lines="only" needs lines; look for them when images are prepared')
    return _by_lines(sight.file, segments, sight.notes, model)


def _by_lines(
    file: File, segments: Segments, notes: tuple[str, ...], model: CameraModel
) -> Outcome:
    answer = calibrate_by_lines(segments, file.size, model, file.path)
    if answer is None:
        return Failure(file.path, *file.size, f"{file.name}: {TOO_FEW}")
    orientation = file.metadata.orientation
    return replace(answer, warnings=(*notes, *doubts(answer)), orientation=orientation)
