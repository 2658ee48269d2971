"""A calibration drawn on its photo: for people to see quickly whether it is right.

Importing this is cheap; matplotlib comes with the first picture. Safe in threads, and the same
input gives the same pixels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PIL import Image

if TYPE_CHECKING:
    from geocalib.imaging.read import ImageSource
    from geocalib.result.calibration import Calibration

__all__ = ["as_html", "overlay", "show"]

IN_NOTEBOOKS = 720
"""Pixels of the longer side of pictures there, at most."""


def overlay(photo: ImageSource, calibration: Calibration) -> Image.Image:
    """The photo, at its own resolution up to 1600 pixels, with the horizon, lines of equal
    latitude and up-vectors. Where the horizon is out of view, a mark at the border points to it.
    """
    from geocalib.overlay.photo import LONGEST_SIDE, annotate, load

    width, height = calibration.width, calibration.height
    scale = min(1.0, LONGEST_SIDE / max(width, height))
    size = max(1, round(scale * width)), max(1, round(scale * height))
    return annotate(load(photo, calibration, size), calibration)


def show(photo: ImageSource, calibration: Calibration) -> Image.Image:
    """All of a calibration in one picture of up to 1600 pixels.

    The photo, enlarged if it is small, as ``overlay`` draws it, with a box standing on the ground
    and, if straight lines were used, these in the colours of their directions;
    beside or below it the numbers with their sigmas, the warnings, and, if the calibration holds
    its fields, what the network saw and how sure it was.
    """
    from geocalib.overlay.box import place_box
    from geocalib.overlay.card import arrange, photo_size
    from geocalib.overlay.photo import annotate, drawn_camera, load

    size = photo_size(calibration)
    image = load(photo, calibration, size)
    box = place_box(drawn_camera(calibration, size), calibration.gravity)
    lines = None if calibration.lines is None else calibration.lines.traces
    drawn = annotate(image, calibration, box, lines)
    return arrange(drawn, calibration, with_box=box is not None)


def as_html(calibration: Calibration) -> str:
    """What notebooks show of a calibration: its photo as ``overlay`` draws it, where the file is
    still there, and its row."""
    from base64 import b64encode
    from html import escape
    from io import BytesIO

    from geocalib.errors import GeoCalibError

    text = f"<div>{escape(str(calibration))}</div>"
    try:
        if calibration.image is None:
            return text
        picture = overlay(calibration.image, calibration)
    except GeoCalibError:
        return text
    picture.thumbnail((IN_NOTEBOOKS, IN_NOTEBOOKS))
    content = BytesIO()
    picture.save(content, "JPEG", quality=85)
    data = b64encode(content.getvalue()).decode()
    return f'<img alt="" src="data:image/jpeg;base64,{data}">{text}'
