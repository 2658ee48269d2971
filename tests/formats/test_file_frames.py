"""Files hold the camera of the frame that was asked for, however the photo is stored."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PIL.ExifTags import Base

from calibrations import one
from geocalib.formats import FORMATS, readers
from geocalib.result.calibration import Calibration
from geocalib.result.record import Frame

SIZE = (640, 480)
"""Of the upright picture."""
READ = ("json", "csv", "colmap", "opencv", "nerfstudio", "hugin")
"""Those that are read again in either frame; fSpy's have the upright picture in them."""


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize(
    ("format", "frame"), [*product(READ, ("stored", "upright")), ("fspy", "upright")]
)
def test_there_and_back(tmp_path: Path, format: str, frame: Frame, orientation: int) -> None:
    photo = tmp_path / "photo.jpg"
    exif = Image.Exif()
    exif[Base.Orientation] = orientation
    stored = (SIZE[1], SIZE[0]) if orientation > 4 else SIZE
    Image.new("RGB", stored).save(photo, exif=exif)
    before = one(
        "pinhole",
        size=SIZE,
        c=(332.0, 233.0),
        image=str(photo),
        orientation=orientation,
        roll_deg=5.0,
        pitch_deg=-20.0,
    )
    expected = before.in_frame(frame)
    known = FORMATS[format]
    (file, *_) = known.write([before], tmp_path / "out" / known.file, frame)
    (after,) = readers.read(file).outcomes
    assert isinstance(after, Calibration)
    assert (after.width, after.height) == (expected.width, expected.height)
    np.testing.assert_allclose(after.K, expected.K, rtol=1e-5)
    if known.shows_gravity:
        np.testing.assert_allclose(after.gravity, expected.gravity, atol=1e-5)
