"""A photo as a calibration has it drawn, or as another camera would have taken it."""

from __future__ import annotations

from io import BytesIO

from geocalib.overlay import overlay
from geocalib.result.calibration import Calibration
from geocalib.server.requests import Kind, PictureFormat

QUALITY = 92
"""Of JPEG."""


def rendered(
    photo: bytes, calibration: Calibration, kind: Kind, border: str, format: PictureFormat
) -> bytes:
    """The file of a picture."""
    match kind:
        case "overlay":
            picture = overlay(photo, calibration)
        case "upright":
            picture = calibration.upright(photo, border).image
        case "rectified":
            picture = calibration.rectify(photo, border).image
        case "undistorted":
            picture = calibration.undistort(photo, border).image
    content = BytesIO()
    picture.convert("RGB").save(content, format.upper(), quality=QUALITY)
    return content.getvalue()
