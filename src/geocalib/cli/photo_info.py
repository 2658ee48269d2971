"""``geocalib info PHOTO``: what the file of a photo tells of its camera, before anybody looks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from PIL.ExifTags import Base

from geocalib import console
from geocalib.cli.info import show
from geocalib.cli.inputs import name_of
from geocalib.errors import ImageError
from geocalib.geometry.gravity import to_roll_pitch
from geocalib.imaging import Photo, read_photo
from geocalib.imaging.content import Circle, examine
from geocalib.priors.exif import FocalReading, focal_reading, focal_readings
from geocalib.priors.gravity_reading import AngleReading, GravityReading
from geocalib.priors.lens_reading import LensReading, find_lens
from geocalib.priors.readings import read_gravity
from geocalib.result.calibration import Failure

TURNED = {
    1: "stored as it is seen",
    2: "stored mirrored",
    3: "stored upside down",
    4: "stored mirrored and upside down",
    5: "stored mirrored and on its side",
    6: "stored on its side",
    7: "stored mirrored and on its side",
    8: "stored on its side",
}
"""Descriptions of EXIF orientations."""

UNUSED, COMBINED = "not used", "combined"
"""What becomes of a reading beside the one that counts."""

LENGTHS = {
    Base.FocalLength: ("focal length", "mm"),
    Base.FocalLengthIn35mmFilm: ("35 mm equivalent", "mm"),
    Base.DigitalZoomRatio: ("digital zoom", ""),
}


def run(images: Sequence[str], missing: Mapping[str, str]) -> bool:
    """Print it of each photo, and say whether all could be read."""
    failures = []
    for image in images:
        try:
            if image in missing:
                raise ImageError(missing[image])
            photo = read_photo(image)
        except ImageError as error:
            failures.append(Failure(image, None, None, str(error)))
        else:
            show(_facts(image, photo))
    console.failures(failures)
    return not failures


def _facts(image: str, photo: Photo) -> Iterator[tuple[str, str]]:
    metadata, (width, height) = photo.metadata, photo.size
    yield "photo", console.printable(name_of(image))
    yield "size", f"{width}x{height}, {TURNED[metadata.orientation]}"
    names = (_text(metadata.tags, tag) for tag in (Base.Make, Base.Model, Base.LensModel))
    yield "camera", ", ".join(name for name in names if name) or "unknown"
    for tag, (name, unit) in LENGTHS.items():
        if tag in metadata.tags:
            yield name, f"{_text(metadata.tags, tag)} {unit}".strip()
    lengths, _ = focal_readings(metadata.tags, photo.size)
    hint, notes = focal_reading(metadata.tags, photo.size)
    yield from ((UNUSED, f"fy {_pixels(other)}") for other in lengths if other != hint)
    yield from _focal(hint, height)
    if hint is not None:
        yield from _lens(*find_lens(metadata.tags, photo.size, hint.focal_px, None))
    for name, numbers in metadata.held.items():
        yield name.replace("_", " "), " ".join(f"{number:.4g}" for number in numbers)
    readings = read_gravity(image, metadata, photo.size)
    several = readings.instruments if len(readings.instruments) > 1 else ()
    yield from ((COMBINED, f"gravity {_gravity(other)}") for other in several)
    yield "gravity", _gravity(readings.gravity) if readings.gravity else _angle(readings.angle)
    if readings.gravity is not None and readings.gravity.edited:
        yield "file", "written by a program since: where the picture contradicts gravity, it counts"
    content = examine(photo.pixels, photo.size)
    if content.warning is not None:
        yield "content", content.warning
    elif content.circle is not None:
        yield "content", _shape(content.circle)
    for note in (*photo.notes, *notes, *readings.notes):
        yield "note", console.printable(note)


def _focal(hint: FocalReading | None, height: int) -> Iterator[tuple[str, str]]:
    if hint is None:
        yield "fy", "unknown"
        return
    half = math.atan(0.5 * height / hint.focal_px)
    # Along log f, of which the sigma is.
    sigma = math.degrees(math.sin(2 * half)) * hint.relative
    yield "fy", _pixels(hint)
    yield "vFoV", f"{math.degrees(2 * half):.1f} ± {sigma:.1f}°"


def _lens(lens: LensReading | None, why_not: str | None) -> Iterator[tuple[str, str]]:
    if lens is not None:
        each = zip(lens.model.parameters, lens.distortion, lens.sigma, strict=True)
        values = ", ".join(f"{name} {value:+.4f} ± {sigma:.2g}" for name, value, sigma in each)
        yield "distortion", f"{lens.model.name} {values}, by {lens.source}"
    elif why_not is not None:
        yield "distortion", f"unknown: {why_not}"


def _pixels(hint: FocalReading) -> str:
    return f"{hint.focal_px:.0f} ± {hint.sigma_px:.0f} px, by EXIF {hint.source}"


def _shape(circle: Circle) -> str:
    x, y = circle.centre
    return (
        f"a circle with black around it, as of a fisheye: centre {x:.0f}, {y:.0f}, "
        f"radius {circle.radius:.0f} px"
    )


def _gravity(hint: GravityReading) -> str:
    angles = np.rad2deg(to_roll_pitch(np.array(hint.gravity)))
    # Adding 0 takes the sign off a rounded -0.
    roll, pitch = (angles.round(decimals=1) + 0.0).tolist()
    return f"roll {roll:+.1f}, pitch {pitch:+.1f} ± {hint.sigma_deg:.2g}°, by {hint.source}"


def _angle(hint: AngleReading | None) -> str:
    if hint is None:
        return "unknown"
    degrees = round(hint.degrees, 1) + 0.0
    return f"{hint.angle} {degrees:+.1f} ± {hint.sigma_deg:.2g}°, by {hint.source}; no other angle"


def _text(tags: Mapping[int, Any], tag: int) -> str:
    value = tags.get(tag, "")
    text = f"{float(value):.4g}" if isinstance(value, Real) else str(value)
    return console.printable(text.strip("\0 "))
