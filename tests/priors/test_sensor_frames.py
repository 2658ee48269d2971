"""Directions turn as pictures do."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageOps
from PIL.ExifTags import Base

from geocalib.errors import FormatError
from geocalib.geometry.orientation import upright
from geocalib.priors.gravity_reading import unit


def place(picture: Image.Image, level: int) -> tuple[int, int]:
    """x and y of the pixel of a grey level."""
    ((y, x),) = np.argwhere(np.asarray(picture) == level)
    return int(x), int(y)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_as_pillow_turns_pictures(orientation: int) -> None:
    pixels = np.zeros((9, 12), np.uint8)
    pixels[4, 5], pixels[6, 6] = 100, 200  # Apart by (1, 2).
    stored = Image.fromarray(pixels)
    stored.getexif()[Base.Orientation] = orientation
    turned = ImageOps.exif_transpose(stored)
    (x0, y0), (x1, y1) = place(turned, 100), place(turned, 200)
    assert upright((1, 2, 3), orientation) == (x1 - x0, y1 - y0, 3)


def test_unit_vectors() -> None:
    assert unit((0, -3, 4), "gravity") == (0, -0.6, 0.8)
    with pytest.raises(FormatError, match="gravity must be a direction"):
        unit((0, 0, 0), "gravity")
