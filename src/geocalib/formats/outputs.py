"""What the writers share: which images, which files, which names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from geocalib.calibration import Calibration, Failure, Outcome
from geocalib.cameras import Camera
from geocalib.errors import CameraError, FormatError

Converted = TypeVar("Converted")


def destination(path: str | Path, name: str) -> Path:
    """The path itself if it has a suffix, else the name in that folder."""
    path = Path(path)
    return path / name if path.is_dir() or not path.suffix else path


def write_text(path: Path, text: str) -> None:
    """Write a file, and make its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # File names need not be valid text: their bytes go through unchanged.
    path.write_text(text, encoding="utf-8", errors="surrogateescape", newline="\n")


def calibrated(outcomes: Iterable[Outcome]) -> list[Calibration]:
    """The images that have a camera."""
    outcomes = list(outcomes)
    found = [outcome for outcome in outcomes if isinstance(outcome, Calibration)]
    if not found:
        errors = [f"{o.image}: {o.error}" for o in outcomes if isinstance(o, Failure)]
        raise FormatError(f"there is no camera to write; {errors[0] if errors else 'no image'}")
    return found


def convert(to: Callable[[Camera], list[Converted]], calibration: Calibration) -> Converted:
    """The camera in the words of another system."""
    try:
        return to(calibration.camera)[0]
    except CameraError as error:
        mend = "kannala_brandt" if calibration.camera.model.wide else "radial"
        raise FormatError(
            f"{calibration.image}: {error}; calibrate with camera_model={mend!r}"
        ) from None


def image_names(calibrations: Sequence[Calibration]) -> list[str]:
    """The images as they were given; those without a path by their number."""
    return [c.image or f"image_{i}" for i, c in enumerate(calibrations, 1)]


def write_one_each(
    outcomes: Iterable[Outcome], path: str | Path, dumps: Callable[[Calibration], str], suffix: str
) -> list[Path]:
    """A file for each image: path itself for a single one, or else below the folder path.

    Files stand there as the images do below the folder that they share, each with the name of
    its image and the suffix behind it.
    """
    calibrations = calibrated(outcomes)
    images = [os.path.abspath(name) for name in image_names(calibrations)]
    shared = os.path.commonpath([os.path.dirname(image) for image in images])
    files = [destination(path, os.path.relpath(image, shared) + suffix) for image in images]
    for i, file in enumerate(files):
        if file in files[:i]:
            raise FormatError(
                f"{images[files.index(file)]} and {images[i]} would both be {file}; a file holds "
                "one camera: give a folder, and each image once"
            )
    texts = [dumps(calibration) for calibration in calibrations]
    for file, text in zip(files, texts, strict=True):
        write_text(file, text)
    return files
