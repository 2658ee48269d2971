"""Segments found in pictures."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw

from geocalib.imaging import read_photo
from geocalib.lines.detect import (
    LONGEST_SIDE,
    MOST,
    SHORT_SIDE,
    detect,
    join_halves,
    straight_pieces,
)


def _halves(width: int, height: int, edge: int) -> Image.Image:
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[:, edge:] = 220
    return Image.fromarray(pixels)


def test_an_edge_is_found_where_it_is() -> None:
    """Between the pixels 199 and 200 lies x = 200."""
    segments = detect(read_photo(_halves(640, 480, 200)))
    assert len(segments) >= 1
    assert np.allclose(segments.ends[0, :, 0], np.full((2,), 200.0), atol=0.05)
    assert segments.length[0] > 470


@pytest.mark.parametrize("factor", [2, 4])
def test_large_photos_are_shrunk_and_counted_in_their_own_pixels(factor: int) -> None:
    size = factor * LONGEST_SIDE // 2, factor * LONGEST_SIDE // 4
    picture = _halves(*size, size[0] // 5)
    segments = detect(read_photo(picture, SHORT_SIDE))
    expected = np.full((2,), size[0] / 5)
    assert np.allclose(segments.ends[0, :, 0], expected, atol=0.1 * factor)
    small = detect(read_photo(_halves(640, 480, 200)))
    assert segments.noise == pytest.approx(small.noise * factor / 2, rel=0.01)


def test_slanted_lines() -> None:
    picture = Image.new("RGB", (1600, 1200), "white")
    ImageDraw.Draw(picture).line((100, 200, 1500, 900), fill="black", width=16)
    picture = picture.resize((800, 600), Image.Resampling.LANCZOS)
    segments = detect(read_photo(picture))
    along = segments.ends[:2, 1] - segments.ends[:2, 0]
    slope = along[:, 1] / along[:, 0]
    assert np.allclose(slope, np.full((2,), 0.5), atol=0.003)


@pytest.mark.parametrize("size", [(1600, 1200), (1200, 1600)])
def test_a_line_through_the_whole_picture_is_one(size: tuple[int, int]) -> None:
    """Though its halves are looked at by themselves."""
    width, height = size
    picture = Image.new("RGB", (2 * width, 2 * height), "white")
    across = (40, 1.1 * height, 2 * width - 40, 0.9 * height)
    ImageDraw.Draw(picture).line(across, fill="black", width=40)
    segments = detect(read_photo(picture.resize(size, Image.Resampling.LANCZOS)))
    assert bool((segments.length[:2] > 0.95 * (width - 40)).all())
    assert bool((segments.length[2:] < 0.1 * width).all())


def test_halves_are_joined_along_their_edges() -> None:
    first = [[(10, 10), (130, 10)], [(90, 50), (120, 50)], [(150, 70), (105, 70)], [(5, 5), (9, 9)]]
    second = [[(300, 10.4), (80, 10)], [(105, 70), (190, 79)], [(99, 90), (100, 80)]]
    found = join_halves(np.array(first, float), np.array(second, float), 100.0, 0)
    expected = [[(5, 5), (9, 9)], [(105, 70), (190, 79)], [(10, 10), (300, 10.4)]]
    assert np.allclose(found, np.array(expected))
    swapped = join_halves(np.array(first, float)[..., ::-1], np.array(second)[..., ::-1], 100.0, 1)
    assert np.allclose(swapped[..., ::-1], found)


def test_nothing_in_a_blank_picture() -> None:
    assert len(detect(read_photo(Image.new("RGB", (640, 480), "gray")))) == 0


def test_the_longest_come_first_and_no_more_than_enough() -> None:
    noise = np.random.default_rng(0).integers(0, 2, (60, 80)).astype(np.uint8) * 255
    picture = Image.fromarray(noise).resize((1600, 1200), Image.Resampling.NEAREST)
    segments = detect(read_photo(picture))
    assert len(segments) == MOST
    assert bool((np.diff(segments.length) <= 0).all())


@pytest.mark.parametrize(("sag", "pieces"), [(2.5, 2), (-1.8, 2), (0.4, 1)])
def test_edges_that_a_lens_has_bent_are_cut_in_two(sag: float, pieces: int) -> None:
    y, x = np.mgrid[:400, :600] + 0.5
    edge = 200 + sag * (1 - ((x - 300) / 150) ** 2)
    grey = (255 / (1 + np.exp(-(y - edge) / 0.7))).astype(np.uint8)
    chord = np.array([[[150.0, 200.0], [450.0, 200.0]]])
    found = straight_pieces(grey, chord)
    assert len(found) == pieces
    if pieces == 1:
        assert np.array_equal(found, chord)
    else:
        first, second = found
        path = np.stack([first[0], first[1], second[1]])
        assert np.allclose(first[1], second[0])
        assert np.allclose(path, [(150, 200), (300, 200 + sag), (450, 200)], atol=0.4)
