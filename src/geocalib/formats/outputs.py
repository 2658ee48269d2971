"""What the writers share: which images, which files, which names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from geocalib.cameras import Camera
from geocalib.errors import CameraError, FormatError
from geocalib.files import is_special, write_text
from geocalib.result.calibration import Calibration, Failure, Outcome
from geocalib.result.record import Frame

Converted = TypeVar("Converted")

NO_GRAVITY = "no gravity"
"""The status of a camera whose file does not say which way is down (``geocalib.formats.readers``).
"""

SAID: dict[Frame, str] = {
    "stored": "of the pixels as they are stored: EXIF orientation is not applied",
    "upright": "of the pixels as they are seen: EXIF orientation is applied",
}
"""The frame in words, for the comments of files."""


def destination(path: str | Path, name: str) -> Path:
    """The path itself if it has a suffix or is a device, else the name in that folder."""
    path = Path(path)
    if path.is_dir() or not (path.suffix or is_special(path)):
        return path / name
    return path


def framed(outcomes: Iterable[Outcome], frame: Frame) -> Iterator[Outcome]:
    """The same outcomes, all calibrations in one frame (``geocalib.result.frame``)."""
    for outcome in outcomes:
        yield outcome.in_frame(frame) if isinstance(outcome, Calibration) else outcome


def calibrated(outcomes: Iterable[Outcome], frame: Frame) -> list[Calibration]:
    """The images that have a camera, in that frame."""
    outcomes = list(outcomes)
    found = [one for one in framed(outcomes, frame) if isinstance(one, Calibration)]
    if not found:
        errors = [f"{o.image}: {o.error}" for o in outcomes if isinstance(o, Failure)]
        raise FormatError(f"there is no camera to write; {errors[0] if errors else 'no image'}")
    return found


STRAIGHTEN = "make a straight picture with geocalib undistort, and calibrate that as a pinhole"
"""How the picture of any lens gets into a program."""


def convert(
    to: Callable[[Camera], list[Converted]], calibration: Calibration, mend: str | None = None
) -> Converted:
    """The camera in the convention of another system; mend: advice for the error if it has none."""
    try:
        return to(calibration.cameras)[0]
    except CameraError as error:
        model = "kannala_brandt" if calibration.cameras.model.wide else "radial"
        mend = mend or f"calibrate with camera_model={model!r}"
        raise FormatError(f"{calibration.image}: {error}; {mend}") from None


def image_names(outcomes: Sequence[Outcome]) -> list[str]:
    """The images as they were given; those without a path by their number."""
    return [outcome.image or f"image_{i}" for i, outcome in enumerate(outcomes, 1)]


INSTEAD = (".xmp",)
"""Suffixes that stand in the place of the image's own."""


def one_each(images: Sequence[str], path: str | Path, suffix: str) -> list[Path]:
    """The file for each image: path itself for a single one, or else below the folder path.

    Files stand there as the images do below the folder that they share, each with the name of
    its image and the suffix behind it.
    """
    paths = [os.path.abspath(image) for image in images]
    shared = os.path.commonpath([os.path.dirname(path) for path in paths])
    names = [os.path.relpath(image, shared) for image in paths]
    if suffix in INSTEAD:
        names = [os.path.splitext(name)[0] for name in names]
    return [destination(path, name + suffix) for name in names]


def files_of_each(
    outcomes: Iterable[Outcome], path: str | Path, suffix: str, frame: Frame
) -> dict[Path, Calibration]:
    """The calibration that each file is to hold, where ``one_each`` has it, in that frame."""
    outcomes = list(framed(outcomes, frame))
    calibrated(outcomes, frame)
    files: dict[Path, Calibration] = {}
    names = image_names(outcomes)
    for outcome, name, file in zip(outcomes, names, one_each(names, path, suffix), strict=True):
        if isinstance(outcome, Failure):
            continue
        if file in files:
            raise FormatError(
                f"{files[file].image} and {name} would both be {file}; a file holds one camera: "
                "give a folder, and each image once"
            )
        files[file] = outcome
    return files


def write_one_each(
    outcomes: Iterable[Outcome],
    path: str | Path,
    dumps: Callable[[Calibration, Frame], str],
    suffix: str,
    frame: Frame,
) -> list[Path]:
    """A file for each image that has a camera, where ``one_each`` has it."""
    files = files_of_each(outcomes, path, suffix, frame)
    texts = {file: dumps(calibration, frame) for file, calibration in files.items()}
    for file, text in texts.items():
        write_text(file, text)
    return list(texts)
