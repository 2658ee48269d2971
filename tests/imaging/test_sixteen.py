"""Sixteen bits of which fewer are in use, in every kind of file that holds them."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from geocalib.imaging import is_blank, read_photo
from geocalib.imaging.read import eight_bits

RAMP = np.linspace(0, 1, 72 * 56 * 3).reshape(56, 72, 3)
RAW = (cv2.IMWRITE_TIFF_COMPRESSION, 1)


def encoded(kind: str, values: np.ndarray, options: tuple[int, ...] = ()) -> bytes:
    data: bytes = cv2.imencode(kind, values, options)[1].tobytes()
    return data


@pytest.mark.parametrize("bits", [10, 12, 14, 16])
@pytest.mark.parametrize(("kind", "options"), [(".png", ()), (".tif", ()), (".tif", RAW)])
def test_white_is_where_the_depth_ends(bits: int, kind: str, options: tuple[int, ...]) -> None:
    values = ((2**bits - 1) * RAMP).astype(np.uint16)
    # OpenCV writes blue first.
    photo = read_photo(encoded(kind, np.ascontiguousarray(values[..., ::-1]), options))
    np.testing.assert_allclose(photo.pixels, 255 * RAMP, atol=1)
    assert photo.notes == ()
    grey = read_photo(encoded(kind, values[..., 0], options))
    np.testing.assert_allclose(grey.pixels[..., 2], 255 * RAMP[..., 0], atol=1)
    np.testing.assert_array_equal(read_photo(values).pixels, photo.pixels)


@pytest.mark.parametrize("opaque", [4095, 65535])
def test_transparency_has_a_depth_of_its_own(opaque: int) -> None:
    values = (4095 * RAMP).astype(np.uint16)
    alpha = np.full((*RAMP.shape[:2], 1), opaque, np.uint16)
    photo = read_photo(encoded(".png", np.dstack([values[..., ::-1], alpha])))
    np.testing.assert_allclose(photo.pixels, 255 * RAMP, atol=1)
    assert photo.notes == ()


def test_what_is_dark_stays_dark() -> None:
    """Sixteen bits of a lens cap: brighter by what 10 bits explain, and no more."""
    noise = np.random.default_rng(0).integers(0, 24, RAMP.shape).astype(np.uint16)
    photo = read_photo(encoded(".tif", noise))
    assert photo.pixels.max() == 23 >> 2
    assert is_blank(photo.pixels)


def test_a_photo_that_was_judged_dark() -> None:
    values = (4095 * RAMP).astype(np.uint16)
    assert not is_blank(read_photo(encoded(".tif", values // 4)).pixels)


@pytest.mark.parametrize(
    ("brightest", "white"), [(0, 0), (1023, 255), (1024, 64), (4095, 255), (4096, 64), (65535, 255)]
)
def test_the_brightest_pixel_tells_the_depth(brightest: int, white: int) -> None:
    assert eight_bits(np.array([0, brightest], np.uint16)).tolist() == [0, white]
