"""What kind of picture it is, of pictures that were drawn to be one."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image, ImageDraw, ImageFont

from geocalib.imaging.content import examine, find_circle

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


def test_scenery_looks_like_a_photograph() -> None:
    for size in ((640, 480), (480, 640), (1024, 512)):
        found = examine(scenery(size), size)
        assert found.warning is None
        assert max(found.panorama, found.drawing, found.sheet) < 0.1
        assert found.circle is None


def panorama() -> Pixels:
    """Waves on the sphere of directions, so that the sides meet and the poles are smeared."""
    latitude, longitude = np.mgrid[:512, :1024] + 0.5
    latitude, longitude = (0.5 - latitude / 512) * math.pi, longitude / 512 * math.pi
    at = np.stack(
        [
            np.cos(latitude) * np.sin(longitude),
            np.sin(latitude),
            np.cos(latitude) * np.cos(longitude),
        ]
    )
    generator = np.random.default_rng(2)
    ways = generator.normal(0, 12, (12, 3))
    waves = np.sin(np.einsum("ik,khw->ihw", ways, at) + generator.uniform(0, 6, (12, 1, 1)))
    value = 128 + 25 * np.stack([waves[i::3].sum(0) for i in range(3)], -1)
    return value.clip(0, 255).astype(np.uint8)


def test_a_panorama_is_told_by_its_seam_and_its_poles() -> None:
    pixels = panorama()
    assert examine(pixels, (4096, 2048)).panorama > 0.9
    assert "equirectangular panorama" in str(examine(pixels, (4096, 2048)).warning)
    # Half of one has neither the shape nor the seam.
    assert examine(pixels[:, :640], (640, 512)).panorama == 0
    assert examine(pixels[128:384, 100:612], (512, 256)).panorama < 0.5


def test_a_plot_and_a_screen_are_drawings() -> None:
    for paper in ((255, 255, 255), (30, 32, 36)):
        picture = Image.new("RGB", (960, 640), paper)
        draw = ImageDraw.Draw(picture)
        draw.rectangle((0, 0, 959, 50), fill=(50, 90, 160))
        draw.ellipse((200, 150, 500, 450), fill=(200, 80, 40))
        draw.line((100, 600, 900, 100), fill=(0, 160, 90), width=5)
        found = examine(np.asarray(picture), picture.size)
        assert found.drawing > 0.5
        assert "a drawing or a screenshot" in str(found.warning)


@pytest.mark.parametrize("lit", [False, True])
def test_a_page_of_text_is_a_sheet(lit: bool) -> None:
    picture = Image.new("RGB", (800, 1000), (250, 248, 240))
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(size=24)
    for y in range(20, 980, 34):
        draw.text((20, y), "where lines of one direction meet in a picture " * 2, (0, 0, 0), font)
    pixels = np.asarray(picture).astype(float)
    if lit:
        light = np.linspace(0.6, 0.9, 800)[None, :, None]
        pixels = pixels * light + np.random.default_rng(3).normal(0, 4, pixels.shape)
    found = examine(pixels.clip(0, 255).astype(np.uint8), picture.size)
    assert found.sheet > 0.5
    assert "a scan or a sheet" in str(found.warning)
