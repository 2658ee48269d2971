"""What kind of picture it is, of pictures that were drawn to be one."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from geocalib.imaging.content import find_circle

Pixels = npt.NDArray[np.uint8]


def scenery(size: tuple[int, int], seed: int = 0) -> Pixels:
    """Clouds of several sizes in colours: no edge, nothing black."""
    generator, (width, height) = np.random.default_rng(seed), size
    total = np.zeros((height, width, 3))
    for cells in (3, 8, 30):
        small = generator.integers(0, 256, (cells, cells, 3), np.uint8)
        total += np.asarray(Image.fromarray(small).resize(size, Image.Resampling.BICUBIC))
    return (
        (50 + 0.6 * total / 3 + generator.normal(0, 3, total.shape)).clip(0, 255).astype(np.uint8)
    )


def framed(size: tuple[int, int], centre: tuple[float, float], radius: float) -> Pixels:
    """Scenery in a circle, with black and a little noise around it."""
    rows, columns = np.mgrid[: size[1], : size[0]] + 0.5
    outside = np.hypot(columns - centre[0], rows - centre[1]) > radius
    pixels = scenery(size)
    pixels[outside] = np.random.default_rng(1).integers(0, 9, (int(outside.sum()), 3))
    return pixels


@pytest.mark.parametrize(
    ("size", "centre", "radius"),
    [
        ((640, 480), (320.0, 240.0), 230.0),
        ((640, 480), (330.0, 225.0), 250.0),
        ((480, 640), (240.0, 330.0), 235.0),
        ((640, 480), (318.0, 244.0), 330.0),
        ((500, 500), (250.0, 255.0), 290.0),
    ],
)
def test_a_circular_picture_is_found(
    size: tuple[int, int], centre: tuple[float, float], radius: float
) -> None:
    pixels = framed(size, centre, radius)
    # The pixels show an original that is twice as large.
    found = find_circle(pixels, (2 * size[0], 2 * size[1]))
    assert found is not None
    assert found.radius == pytest.approx(2 * radius, rel=0.02)
    assert math.dist(found.centre, (2 * centre[0], 2 * centre[1])) < 0.02 * 2 * radius
    whole = min(*centre, size[0] - centre[0], size[1] - centre[1]) > radius
    assert found.whole((2 * size[0], 2 * size[1])) == whole


def test_no_circle_in_pictures_that_are_dark_otherwise() -> None:
    plain = scenery((640, 480))
    letterbox, pillars, corner, night = plain.copy(), plain.copy(), plain.copy(), plain // 12
    letterbox[:80] = letterbox[-80:] = 0
    pillars[:, :100] = pillars[:, -100:] = 0
    corner[:150, :200] = 0
    night[200:260, 300:350] = 250
    for pixels in (plain, letterbox, pillars, corner, night, 0 * plain):
        assert find_circle(pixels, (640, 480)) is None


def test_a_window_with_cut_corners_is_no_circle() -> None:
    rows, columns = np.mgrid[:480, :640]
    pixels = scenery((640, 480))
    pixels[np.abs(columns - 320) + np.abs(rows - 240) > 330] = 0
    assert find_circle(pixels, (640, 480)) is None
