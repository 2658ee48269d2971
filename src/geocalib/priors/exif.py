"""What a file's EXIF data say of how long the lens is.

EXIF is written by many hands. Nothing in it raises: what cannot be true is left out, and a note
says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from PIL.ExifTags import Base

from geocalib.geometry.conventions import TRIVIAL_FOCAL, VFOV_RANGE_DEG
from geocalib.priors.sizes import sensor_size
from geocalib.solver.priors import Prior

VAGUE = 1e6
"""Relative sigma of a focal length of which nothing is known beside others that are."""

FULL_FRAME_DIAGONAL = math.hypot(36.0, 24.0)
"""Millimetres: 35 mm equivalents are counted by the diagonal of the image."""

EQUIVALENT_SIGMA = 0.05
"""Relative. Equivalents are whole millimetres, and some makers compare widths and not diagonals,
which for 4:3 images differ by 4%."""

SENSOR_SIGMA = 0.03
"""Relative. Lenses are engraved with rounded focal lengths, true at infinity only."""

DISAGREEMENT = 0.15
"""Beyond this relative difference of the two estimates one of them is wrong."""

CROPPED = 0.02
"""Relative change of the aspect ratio that is more than the rounding of a resize."""

MILLIMETRES: dict[float, float] = {2: 25.4, 3: 10.0, 4: 1.0, 5: 0.001}
"""Of the FocalPlaneResolutionUnit: inch, centimetre, millimetre, micrometre."""

CROPPED_NOTE = "cropped after it was taken, so its EXIF focal length was ignored"


@dataclass(frozen=True)
class FocalHint:
    """A focal length from EXIF, with what is known of its error.

    A picture that was cropped by a program which also rewrote the EXIF size escapes notice: the
    hint is then too short, beyond what its sigma says.
    """

    focal_px: float
    """Vertical focal length in pixels of the original, upright image (pixels are square)."""
    sigma_px: float
    """One sigma, pixels."""
    source: str
    """The EXIF tags it comes from."""


def focal_hint(
    tags: Mapping[int, Any], size: tuple[int, int]
) -> tuple[FocalHint | None, tuple[str, ...]]:
    """The focal length that EXIF tags tell of an image of upright (width, height), and notes.

    FocalLengthIn35mmFilm counts by diagonals: f = diagonal / 43.27 mm. FocalLength with
    FocalPlaneXResolution is a little better, if it was written for the pixel size that EXIF
    states, and a resize since then keeps the field of view; so is FocalLength with the size of the
    sensor, where the model is known (``geocalib.priors.sizes``). Where one of these exists and
    contradicts the first, that one, which rests on a single tag, is kept. Everything here is the
    same for portrait and landscape.
    """
    diagonal = math.hypot(*size)
    written = _written_size(tags)
    notes: list[str] = []

    def checked(focal: float | None, tag: str) -> float | None:
        if focal is None:
            return None
        vfov = math.degrees(2 * math.atan2(size[1], 2 * focal))
        if focal > 0 and VFOV_RANGE_DEG[0] <= vfov <= VFOV_RANGE_DEG[1]:
            return focal
        notes.append(f"EXIF {tag} makes no sense and was ignored")
        return None

    equivalent = _number(tags, Base.FocalLengthIn35mmFilm)
    if equivalent is not None:
        equivalent *= diagonal / FULL_FRAME_DIAGONAL
    equivalent = checked(equivalent, "FocalLengthIn35mmFilm")
    engraved, source = _focal_plane(tags, diagonal, written), "FocalPlaneXResolution"
    if engraved is None:
        engraved, source = _on_known_sensor(tags, size), "the size of the sensor"
    engraved = checked(engraved, "FocalLength")
    if equivalent is None and engraved is None:
        return None, tuple(notes)
    if written is not None and _was_cropped(written, size):
        notes.append(CROPPED_NOTE)
        return None, tuple(notes)
    if engraved is not None and (
        equivalent is None or abs(math.log(engraved / equivalent)) < DISAGREEMENT
    ):
        hint = FocalHint(engraved, SENSOR_SIGMA * engraved, f"FocalLength and {source}")
        return hint, tuple(notes)
    assert equivalent is not None
    return (
        FocalHint(equivalent, EQUIVALENT_SIGMA * equivalent, "FocalLengthIn35mmFilm"),
        tuple(notes),
    )


def _focal_plane(
    tags: Mapping[int, Any], diagonal: float, written: tuple[float, float] | None
) -> float | None:
    """The focal length in pixels by the pitch of the pixels on the sensor, None if unknown.

    A digital zoom enlarges the picture, and nothing says whether the pitch accounts for it.
    """
    focal = _number(tags, Base.FocalLength)
    resolution = _number(tags, Base.FocalPlaneXResolution)
    unit = MILLIMETRES.get(_number(tags, Base.FocalPlaneResolutionUnit) or 2)
    zoom = _number(tags, Base.DigitalZoomRatio) or 1.0
    if focal is None or resolution is None or unit is None or written is None or zoom > 1:
        return None
    return focal * resolution / unit * diagonal / math.hypot(*written)


def _on_known_sensor(tags: Mapping[int, Any], size: tuple[int, int]) -> float | None:
    """The focal length in pixels by the size of the model's sensor, None if unknown.

    A picture of another shape than the sensor's is as large a part of it as can be.
    """
    focal, sensor = _number(tags, Base.FocalLength), sensor_size(tags.get(Base.Model))
    zoom = _number(tags, Base.DigitalZoomRatio) or 1.0
    if focal is None or sensor is None or zoom > 1:
        return None
    return focal * max(max(size) / sensor[0], min(size) / sensor[1])


def _written_size(tags: Mapping[int, Any]) -> tuple[float, float] | None:
    """Width and height in pixels of the image that EXIF was written for, None if not stated."""
    width, height = _number(tags, Base.ExifImageWidth), _number(tags, Base.ExifImageHeight)
    if width is None or height is None or not (width > 0 and height > 0):
        return None
    return width, height


def _was_cropped(written: tuple[float, float], size: tuple[int, int]) -> bool:
    """Whether the shape is no longer the one that EXIF states, lying or standing."""
    before, now = max(written) / min(written), max(size) / min(size)
    return abs(math.log(before / now)) > CROPPED


def _number(tags: Mapping[int, Any], tag: int) -> float | None:
    """A tag's value; None where it is absent, and NaN where it is no finite number."""
    if tag not in tags:
        return None
    try:
        value = float(tags[tag])
    except (TypeError, ValueError, ArithmeticError):
        return math.nan
    return value if math.isfinite(value) else math.nan


def focal_prior(
    hints: Sequence[FocalHint | None], sizes: Sequence[tuple[int, int]], cameras: Sequence[int]
) -> Prior | None:
    """The soft prior (B, 1) that EXIF gives, in pixels of the originals; None if it says nothing.

    cameras: equal integers for images of one camera; what one of them tells holds for all.
    """
    told = {camera: hint for camera, hint in zip(cameras, hints, strict=True) if hint}
    if not told:
        return None
    values, sigmas = [], []
    for hint, size, camera in zip(hints, sizes, cameras, strict=True):
        own = hint or told.get(camera)
        usual = TRIVIAL_FOCAL * max(size)
        values.append([own.focal_px if own else usual])
        sigmas.append([own.sigma_px if own else VAGUE * usual])
    return Prior(
        torch.tensor(values, dtype=torch.float64), torch.tensor(sigmas, dtype=torch.float64)
    )
