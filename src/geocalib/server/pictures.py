"""A photo as a calibration has it drawn, or as another camera would have taken it."""

from __future__ import annotations

from io import BytesIO

from PIL import Image

from geocalib.overlay import overlay
from geocalib.result.calibration import Calibration
from geocalib.server.requests import Kind, PictureFormat

QUALITY = 92
"""Of JPEG."""
SHOWN_SIDE = 2048
"""Pixels of the longer side of a photo that is shown, at most."""


def rendered(
    photo: bytes, calibration: Calibration, kind: Kind, border: str, format: PictureFormat
) -> bytes:
    """The file of a picture."""
    match kind:
        case "photo":
            picture = upright_photo(photo, calibration)
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


def upright_photo(photo: bytes, calibration: Calibration) -> Image.Image:
    """The photo as it is seen, for browsers that cannot read its format."""
    from geocalib.overlay.photo import load

    width, height = calibration.width, calibration.height
    scale = min(1.0, SHOWN_SIDE / max(width, height))
    return load(photo, calibration, (max(1, round(scale * width)), max(1, round(scale * height))))
