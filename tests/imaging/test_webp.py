"""The size that WebP files state, in each of their three forms."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from geocalib.errors import ImageError
from geocalib.imaging import read_photo
from geocalib.imaging.read import webp_size


def saved(mode: str, **options: object) -> bytearray:
    file = io.BytesIO()
    Image.effect_noise((70, 50), 60).convert(mode).save(file, "WEBP", **options)
    return bytearray(file.getvalue())


FORMS = {
    "VP8 ": (saved("RGB"), 26, bytes([255, 63] * 2), 16383),
    "VP8L": (saved("RGB", lossless=True), 21, bytes([255] * 4), 16384),
    "VP8X": (saved("RGBA", exif=b"Exif\0\0II"), 24, bytes([255] * 6), 1 << 24),
}
"""Files, where their size stands, the largest size as bytes, and as a number."""


@pytest.mark.parametrize("form", FORMS)
def test_a_bomb_is_refused_before_it_is_opened(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file, start, largest, side = FORMS[form]
    assert file[12:16] == form.encode()
    assert webp_size(bytes(file)) == (70, 50)
    assert read_photo(bytes(file)).size == (70, 50)
    bomb = file.copy()
    bomb[start : start + len(largest)] = largest
    assert webp_size(bytes(bomb)) == (side, side)
    monkeypatch.setattr(Image, "preinit", lambda: pytest.fail("it was opened"))
    with pytest.raises(ImageError, match="decompression bomb"):
        read_photo(bytes(bomb))


def test_other_files() -> None:
    assert webp_size(b"") is None
    assert webp_size(b"RIFF\0\0\0\0WAVE" + bytes(40)) is None
