"""What a calibration says in the tags of photos, for EXIF and XMP alike.

The focal length in millimetres that a file has stays: it is engraved on the lens. Where there is
none it is that on the sensor of the camera's model, or else on film of 36 x 24 mm. The pixels per
millimetre go with it, so that both together are the focal length in pixels to the last digit, and
the 35 mm equivalent is the one of the diagonal, in whole millimetres as EXIF has it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from PIL.ExifTags import Base

from geocalib.cameras.camera import Camera
from geocalib.geometry.conventions import FULL_FRAME_DIAGONAL
from geocalib.imaging.read import read_header
from geocalib.priors.sizes import sensor_size
from geocalib.records import dataclass
from geocalib.result.calibration import Calibration


@dataclass(frozen=True)
class PhotoTags:
    """What there is to write."""

    focal_mm: float
    equivalent_mm: int
    """On film of 36 x 24 mm, by the diagonal."""
    pixels_per_mm: tuple[float, float]
    """Across and down the pixels of the file."""
    size: tuple[int, int]
    """Width and height in pixels, for which the above holds."""
    elevation_deg: float
    """The angle of the optical axis above the horizon."""
    roll_deg: float
    """Counter-clockwise, of the horizon in the picture."""


def photo_tags(calibration: Calibration) -> PhotoTags:
    """The tags of a calibration, and of its photo where that is there."""
    known: Mapping[int, Any] = {}
    if calibration.image is not None and os.path.exists(calibration.image):
        _, known = read_header(calibration.image)
    return tags_of(known, calibration.cameras, calibration.pitch_deg, calibration.roll_deg)


def tags_of(
    known: Mapping[int, Any], camera: Camera, pitch_deg: float = 0.0, roll_deg: float = 0.0
) -> PhotoTags:
    """The tags of a camera that is held so. known: EXIF tags of the photo, by number."""
    fx, fy = camera.focal[0].tolist()
    width, height = (round(side) for side in camera.size[0].tolist())
    size = (width, height)
    equivalent = fy / math.hypot(*size) * FULL_FRAME_DIAGONAL
    engraved = _positive(known.get(Base.FocalLength))
    sensor = sensor_size(known.get(Base.Model))
    if engraved is None and sensor is not None:
        scale = max(max(size) / sensor[0], min(size) / sensor[1])
        engraved = fy / scale
    focal = engraved or equivalent
    return PhotoTags(
        focal,
        max(1, round(equivalent)),
        (fx / focal, fy / focal),
        size,
        pitch_deg,
        roll_deg,
    )


def _positive(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, ArithmeticError):
        return None
    return number if 0 < number < math.inf else None
