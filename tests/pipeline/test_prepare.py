"""The first stage says what else than a photograph a picture looks like."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

from geocalib.imaging import InputSpec
from geocalib.pipeline.prepare import Prepared, prepare


def prepared(picture: Image.Image) -> Prepared:
    found = prepare(picture, InputSpec(), with_lines=False)
    assert isinstance(found, Prepared)
    return found


def test_a_drawing_is_noted() -> None:
    picture = Image.new("RGB", (800, 600), (240, 240, 240))
    ImageDraw.Draw(picture).ellipse((200, 150, 500, 450), fill=(200, 80, 40))
    assert any("looks like a drawing" in note for note in prepared(picture).notes)


def test_a_picture_of_nothing_is_blank_and_nothing_else() -> None:
    found = prepared(Image.new("RGB", (800, 600), (240, 240, 240)))
    assert found.blank
    assert found.notes == ()


def test_the_circle_of_a_fisheye_is_kept() -> None:
    rows, columns = np.mgrid[:600, :800]
    pixels = np.random.default_rng(0).integers(60, 255, (600, 800, 3), np.uint8)
    pixels[np.hypot(columns - 400, rows - 300) > 280] = 0
    found = prepared(Image.fromarray(pixels))
    assert found.circle is not None
    assert abs(found.circle.radius - 280) < 6
    assert found.notes == ()
