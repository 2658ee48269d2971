"""The focal length in the EXIF data of a file.

EXIF is written by many programs. Nothing in it raises an error: impossible values are left out,
with a note.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL.ExifTags import Base

from geocalib.geometry.conventions import FULL_FRAME_DIAGONAL, TRIVIAL_FOCAL, VFOV_RANGE_DEG
from geocalib.priors.lens_database import find_body
from geocalib.priors.sizes import diagonal_of_sensor, sensor_size
from geocalib.records import dataclass, replace
from geocalib.result.evidence import CONTRADICTION
from geocalib.solver.known import Prior

VAGUE = 1e6
"""Relative sigma of a focal length of which nothing is known beside others that are."""

LENS_SIGMA = 0.025
"""Relative. Lenses are engraved with round focal lengths, true at infinity only, and sensors are
known to a tenth of a millimetre."""

MAKERS_SIGMA = 0.02
"""Relative, of 35 mm equivalents on top of it: makers multiply by 1.5 where the diagonals of their
sensors have 1.52 to 1.56 (``lab/benchmarks/exif.py``)."""

ROUNDED = 1 / math.sqrt(12)
"""One sigma of what was rounded, in units of the last digit."""

NATIVE = 4 / 3
"""Longer to shorter side of the sensors of phones and compact cameras. A picture of another shape
is a part of it, and its equivalent may be that of the whole sensor."""
USELESS = 0.5
"""Relative sigma beyond which a focal length is as uncertain as that of any photo."""
UNCUT = (1.3, 1.55)
"""Pictures of such shapes are whole: 4:3 and 3:2."""

CROPPED = 0.02
"""Relative change of the aspect ratio that is more than the rounding of a resize."""

MILLIMETRES: dict[float, float] = {2: 25.4, 3: 10.0, 4: 1.0, 5: 0.001}
"""Millimetres in each FocalPlaneResolutionUnit: inch, centimetre, millimetre, micrometre."""

STITCHED = 2.4
"""Longer to shorter side beyond which a picture is more or less than one shot: panoramas of phones
have the EXIF data of their parts."""

CROPPED_NOTE = "cropped after it was taken, so its EXIF focal length was ignored"
STITCHED_NOTE = "stitched or cut to a strip, so its EXIF focal length was ignored"


@dataclass(frozen=True)
class FocalReading:
    """A focal length from EXIF, with what is known of its error.

    A picture that was cropped by a program which also rewrote the EXIF size escapes notice: the
    hint is then too short, beyond what its sigma says (``geocalib.priors.judge``).
    """

    focal_px: float
    """Vertical focal length in pixels of the original, upright image (pixels are square)."""
    sigma_px: float
    """One sigma, pixels."""
    source: str
    """The millimetres that EXIF tells, and by what they became pixels."""

    @property
    def relative(self) -> float:
        """One sigma of the logarithm."""
        return self.sigma_px / self.focal_px

    def stretched(self, factor: float) -> FocalReading:
        """One that many times as long, as sure."""
        return replace(self, focal_px=factor * self.focal_px, sigma_px=factor * self.sigma_px)


def focal_reading(
    tags: Mapping[int, Any], size: tuple[int, int]
) -> tuple[FocalReading | None, tuple[str, ...]]:
    """The focal length that EXIF tags tell of an image of upright (width, height), and notes: the
    surest of ``focal_readings``; where they contradict each other, the first, which rests on a
    single tag."""
    found, notes = focal_readings(tags, size)
    if len(found) == 2 and _apart(*found) > CONTRADICTION:
        return found[0], notes
    # They share the lens, so that their errors are no two opinions: the surer one counts.
    return min(found, key=lambda hint: hint.relative, default=None), notes


def focal_readings(
    tags: Mapping[int, Any], size: tuple[int, int]
) -> tuple[list[FocalReading], tuple[str, ...]]:
    """Each focal length that EXIF tags tell of an image of upright (width, height), and notes.

    FocalLengthIn35mmFilm counts by diagonals: f = diagonal / 43.27 mm. FocalLength with
    FocalPlaneXResolution is as good, if it was written for the pixel size that EXIF states, and a
    resize since then keeps the field of view; so is FocalLength with the size of the sensor, where
    the model is known (``geocalib.priors.sizes``, ``lens_database``). Everything here is the same
    for portrait and landscape.
    """
    written = _written_size(tags)
    notes: list[str] = []

    def checked(hint: FocalReading | None, tag: str) -> FocalReading | None:
        if hint is None:
            return None
        vfov = math.degrees(2 * math.atan2(size[1], 2 * hint.focal_px))
        if hint.focal_px > 0 and VFOV_RANGE_DEG[0] <= vfov <= VFOV_RANGE_DEG[1]:
            return hint
        notes.append(f"EXIF {tag} makes no sense and was ignored")
        return None

    equivalent = checked(_equivalent(tags, size), "FocalLengthIn35mmFilm")
    engraved = checked(
        _focal_plane(tags, size, written) or _on_known_sensor(tags, size), "FocalLength"
    )
    found = [hint for hint in (equivalent, engraved) if hint is not None]
    if found and written is not None and _was_cropped(written, size):
        return [], (*notes, CROPPED_NOTE)
    if found and max(size) > STITCHED * min(size):
        return [], (*notes, STITCHED_NOTE)
    return found, tuple(notes)


def _apart(one: FocalReading, other: FocalReading) -> float:
    """How far two readings are apart, in sigmas of both."""
    return abs(math.log(one.focal_px / other.focal_px)) / math.hypot(one.relative, other.relative)


def _equivalent(tags: Mapping[int, Any], size: tuple[int, int]) -> FocalReading | None:
    """By the 35 mm equivalent.

    Of a picture that is a part of its sensor, it is that of the picture by the definition, and that
    of the sensor by the habit of phones: the truth is taken to be in between. With a digital zoom,
    which Apple counts in and others may not, likewise.
    """
    millimetres = number(tags, Base.FocalLengthIn35mmFilm)
    if millimetres is None:
        return None
    own, whole = math.hypot(*size), _sensor_diagonal(size)
    zoom = 1.0 if tags.get(Base.Make) == "Apple" else digital_zoom(tags)
    focal = millimetres / FULL_FRAME_DIAGONAL * math.sqrt(own * whole * zoom)
    doubts = 0.5 * math.log(whole / own), 0.5 * math.log(zoom), ROUNDED / (millimetres or math.nan)
    sigma = math.hypot(LENS_SIGMA, MAKERS_SIGMA, *doubts)
    return None if sigma > USELESS else FocalReading(focal, sigma * focal, f"{millimetres:g} mm")


def _sensor_diagonal(size: tuple[int, int]) -> float:
    """Pixels: of the smallest picture of the usual shape that holds this one, if it is of no shape
    that sensors have."""
    whole = UNCUT[0] <= max(size) / min(size) <= UNCUT[1]
    return math.hypot(*size) if whole else diagonal_of_sensor(size, NATIVE)


def _focal_plane(
    tags: Mapping[int, Any], size: tuple[int, int], written: tuple[float, float] | None
) -> FocalReading | None:
    """By the pitch of the pixels on the sensor, None if unknown.

    A digital zoom enlarges the picture, and nothing says whether the pitch accounts for it.
    """
    millimetres = number(tags, Base.FocalLength)
    resolution = number(tags, Base.FocalPlaneXResolution)
    unit = MILLIMETRES.get(number(tags, Base.FocalPlaneResolutionUnit) or 2)
    if millimetres is None or resolution is None or unit is None or written is None:
        return None
    if digital_zoom(tags) > 1:
        return None
    focal = millimetres * resolution / unit * math.hypot(*size) / math.hypot(*written)
    return _engraved(focal, millimetres, "the pitch of the pixels")


def _on_known_sensor(tags: Mapping[int, Any], size: tuple[int, int]) -> FocalReading | None:
    """By the size of the model's sensor, or its crop factor in Lensfun's database, None if unknown.

    A picture of another shape than the sensor's is as large a part of it as can be; a digital zoom
    takes a part of that.
    """
    millimetres, sensor = number(tags, Base.FocalLength), sensor_size(tags.get(Base.Model))
    if millimetres is None:
        return None
    if sensor is not None:
        scale = max(max(size) / sensor[0], min(size) / sensor[1])
        by = "the size of the sensor"
    elif body := find_body(text(tags, Base.Make), text(tags, Base.Model)):
        scale = diagonal_of_sensor(size, body.aspect) * body.crop / FULL_FRAME_DIAGONAL
        by = "Lensfun's crop factor"
    else:
        return None
    return _engraved(millimetres * scale * digital_zoom(tags), millimetres, by)


def _engraved(focal: float, millimetres: float, by: str) -> FocalReading:
    """A focal length in pixels by the one of the lens, rounded to its last digit."""
    digit = next((step for step in (1.0, 0.1) if _is_multiple(millimetres, step)), 0.01)
    rounding = ROUNDED * digit / (millimetres or math.nan)
    return FocalReading(
        focal, math.hypot(LENS_SIGMA, rounding) * focal, f"{millimetres:g} mm by {by}"
    )


def _is_multiple(value: float, step: float) -> bool:
    return math.isfinite(value) and abs(value / step - round(value / step)) < 1e-6


def digital_zoom(tags: Mapping[int, Any]) -> float:
    """The digital zoom, at least 1: zero and none say that there is none."""
    zoom = number(tags, Base.DigitalZoomRatio)
    return zoom if zoom is not None and zoom > 1 else 1.0


def _written_size(tags: Mapping[int, Any]) -> tuple[float, float] | None:
    """Width and height in pixels of the image that EXIF was written for, None if not stated."""
    width, height = number(tags, Base.ExifImageWidth), number(tags, Base.ExifImageHeight)
    if width is None or height is None or not (width > 0 and height > 0):
        return None
    return width, height


def _was_cropped(written: tuple[float, float], size: tuple[int, int]) -> bool:
    """Whether the shape is no longer the one that EXIF states, lying or standing."""
    before, now = max(written) / min(written), max(size) / min(size)
    return abs(math.log(before / now)) > CROPPED


def number(tags: Mapping[int, Any], tag: int) -> float | None:
    """A tag's value; None where it is absent, and NaN where it is no finite number."""
    if tag not in tags:
        return None
    try:
        value = float(tags[tag])
    except (TypeError, ValueError, ArithmeticError):
        return math.nan
    return value if math.isfinite(value) else math.nan


def text(tags: Mapping[int, Any], tag: int) -> str:
    """A tag's text without what pads it; empty where it is absent or something else."""
    value = tags.get(tag)
    return value.strip("\0 ") if isinstance(value, str) else ""


def focal_prior(
    hints: Sequence[FocalReading | None], sizes: Sequence[tuple[int, int]], cameras: Sequence[int]
) -> Prior | None:
    """The soft prior (B, 1) that EXIF gives, in pixels of the originals; None if it says nothing.

    cameras: equal integers for images of one camera; what one of them tells holds for all.
    """
    found = {camera: hint for camera, hint in zip(cameras, hints, strict=True) if hint}
    if not found:
        return None
    values, sigmas = [], []
    for hint, size, camera in zip(hints, sizes, cameras, strict=True):
        own = hint or found.get(camera)
        usual = TRIVIAL_FOCAL * max(size)
        values.append([own.focal_px if own else usual])
        sigmas.append([own.sigma_px if own else VAGUE * usual])
    return Prior(np.array(values), np.array(sigmas))
