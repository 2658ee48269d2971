"""Every kind of image arrives as the same upright 8-bit RGB, and every bad one is named."""

from __future__ import annotations

import io
import struct
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image, ImageOps
from PIL.ExifTags import IFD, Base

from geocalib.errors import ImageError
from geocalib.imaging import is_blank, read, read_photo, read_size
from geocalib.priors.exif import focal_reading

Pixels = npt.NDArray[np.uint8]


def pattern(width: int, height: int, seed: int = 0) -> Pixels:
    """(H, W, 3) smooth, colourful and without symmetry."""
    coarse = np.random.default_rng(seed).integers(0, 256, (5, 7, 3), np.uint8)
    return np.array(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC))


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)  # type: ignore[arg-type]
    return file.getvalue()


def oriented(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[Base.Orientation] = orientation
    return exif


def test_a_path_a_string_and_bytes_are_the_same_photo(tmp_path: Path) -> None:
    path = tmp_path / "ein Bild.png"
    Image.fromarray(pattern(70, 50)).save(path)
    photos = [read_photo(source) for source in (path, str(path), path.read_bytes())]
    for photo in photos:
        np.testing.assert_array_equal(photo.pixels, pattern(70, 50))
        assert photo.size == (70, 50)
        assert photo.shown == (0, 0, 70, 50)
        assert photo.notes == ()
        assert photo.metadata.tags == {}
    assert [photo.name for photo in photos] == [str(path), str(path), "image"]


@pytest.mark.parametrize(
    ("kind", "options", "tolerance"),
    [
        ("PNG", {}, 0),
        ("BMP", {}, 0),
        ("TIFF", {}, 0),
        ("PPM", {}, 0),
        ("WEBP", {"lossless": True}, 0),
        ("JPEG", {"quality": 95, "subsampling": 0}, 10),
        ("AVIF", {"quality": 95}, 16),
        ("JPEG2000", {}, 1),
    ],
)
def test_formats(kind: str, options: dict[str, object], tolerance: int) -> None:
    expected = pattern(70, 50)
    photo = read_photo(encoded(Image.fromarray(expected), kind, **options))
    np.testing.assert_allclose(photo.pixels.astype(int), expected, atol=tolerance)


@pytest.mark.parametrize("mode", ["1", "L", "P", "CMYK", "YCbCr", "HSV", "RGBX"])
def test_modes_without_transparency(mode: str) -> None:
    image = Image.fromarray(pattern(70, 50)).convert(mode)
    photo = read_photo(image)
    np.testing.assert_array_equal(photo.pixels, np.asarray(image.convert("RGB")))
    assert photo.notes == ()


@pytest.mark.parametrize("mode", ["RGBA", "LA", "PA"])
def test_transparency_becomes_white(mode: str) -> None:
    image = Image.new("RGBA", (70, 50), (10, 10, 10, 255)).convert(mode)
    alpha = np.full((50, 70), 255, np.uint8)
    alpha[:20] = 0
    image.putalpha(Image.fromarray(alpha))
    photo = read_photo(image)
    assert (photo.pixels[:20] == 255).all()
    assert (photo.pixels[20:] == 10).all()
    assert photo.notes == ("transparent parts were made white",)


def test_a_transparent_palette_colour() -> None:
    image = Image.new("P", (70, 50), 0)
    image.putpalette([10, 20, 30, 40, 50, 60])
    image.paste(1, (0, 0, 35, 50))
    photo = read_photo(encoded(image, "PNG", transparency=1))
    assert (photo.pixels[:, :35] == 255).all()
    assert (photo.pixels[:, 35:] == (10, 20, 30)).all()
    assert len(photo.notes) == 1


def test_an_opaque_alpha_channel_is_nothing_to_speak_of() -> None:
    photo = read_photo(Image.fromarray(pattern(70, 50)).convert("RGBA"))
    np.testing.assert_array_equal(photo.pixels, pattern(70, 50))
    assert photo.notes == ()


RAMP = np.linspace(0, 1, 70 * 50).reshape(50, 70)


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bits(kind: str) -> None:
    image = Image.fromarray((65535 * RAMP).astype(np.uint16))
    photo = read_photo(encoded(image, kind))
    assert photo.pixels.min() == 0
    assert photo.pixels.max() == 255
    np.testing.assert_allclose(photo.pixels[..., 1], 255 * RAMP, atol=1)


@pytest.mark.parametrize(
    ("values", "notes"),
    [
        ((65535 * RAMP).astype(np.int32), 0),
        ((255 * RAMP).astype(np.int32), 0),
        ((1e9 * RAMP).astype(np.int32), 1),
        (RAMP.astype(np.float32), 0),
        ((300 * RAMP - 20).astype(np.float32), 1),
    ],
)
def test_thirty_two_bits(values: npt.NDArray[np.generic], notes: int) -> None:
    photo = read_photo(encoded(Image.fromarray(values), "TIFF"))
    np.testing.assert_allclose(photo.pixels[..., 1], 255 * RAMP, atol=1)
    assert len(photo.notes) == notes


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "WEBP"])
def test_exif_orientation(kind: str, orientation: int) -> None:
    stored = Image.new("RGB", (96, 64), (40, 40, 40))
    stored.paste((250, 0, 0), (0, 0, 32, 32))  # Top left as it is stored.
    photo = read_photo(encoded(stored, kind, exif=oriented(orientation)))
    # Where EXIF says that the first stored row and column are seen.
    row, column = {
        1: ("top", "left"),
        2: ("top", "right"),
        3: ("bottom", "right"),
        4: ("bottom", "left"),
        5: ("top", "left"),
        6: ("top", "right"),
        7: ("bottom", "right"),
        8: ("bottom", "left"),
    }[orientation]
    y = 8 if row == "top" else -8
    x = 8 if column == "left" else -8
    assert photo.pixels[y, x, 0] > 200
    assert (photo.pixels[..., 0] > 150).mean() == pytest.approx(1 / 6, abs=0.01)
    assert photo.size == ((64, 96) if orientation > 4 else (96, 64))
    assert photo.pixels.shape == (photo.size[1], photo.size[0], 3)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_agrees_with_pillow(orientation: int) -> None:
    data = encoded(Image.fromarray(pattern(71, 53)), "PNG", exif=oriented(orientation))
    expected = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    np.testing.assert_array_equal(read_photo(data).pixels, np.asarray(expected))
    # An image that was opened, but not turned yet, is turned as well.
    np.testing.assert_array_equal(
        read_photo(Image.open(io.BytesIO(data))).pixels, np.asarray(expected)
    )


def test_a_large_jpeg_is_decoded_small() -> None:
    data = encoded(Image.fromarray(pattern(2003, 1501)), "JPEG")
    photo = read_photo(data, short_side=160)
    assert photo.size == (2003, 1501)
    # 1501 / 320 is more than 4.
    assert photo.pixels.shape == (376, 501, 3)
    assert photo.shown == (0, 0, 2003 / 4, 1501 / 4)
    assert read_photo(data, short_side=None).pixels.shape == (1501, 2003, 3)
    assert read_photo(data, short_side=1000).pixels.shape == (1501, 2003, 3)


def test_a_jpeg_is_never_decoded_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encoded(Image.fromarray(pattern(2000, 1500)), "JPEG")
    loaded = []
    load = Image.Image.load
    monkeypatch.setattr(
        Image.Image, "load", lambda image: (load(image), loaded.append(image.size))[0]
    )
    read_photo(data, short_side=90)
    assert loaded
    assert max(loaded) == (250, 188)


def test_an_image_in_memory_is_shrunk_and_left_as_it_was() -> None:
    image = Image.open(io.BytesIO(encoded(Image.fromarray(pattern(1000, 700)), "JPEG")))
    photo = read_photo(image, short_side=100)
    assert photo.pixels.shape == (234, 334, 3)
    assert photo.shown == pytest.approx((0, 0, 1000 / 3, 700 / 3))
    assert image.size == (1000, 700)


def test_orientation_moves_the_part_shown() -> None:
    exif = oriented(3)
    photo = read_photo(encoded(Image.fromarray(pattern(2003, 1501)), "JPEG", exif=exif), 160)
    assert photo.shown == (501 - 2003 / 4, 376 - 1501 / 4, 501, 376)
    turned = read_photo(
        encoded(Image.fromarray(pattern(2003, 1501)), "JPEG", exif=oriented(6)), 160
    )
    assert turned.shown == (376 - 1501 / 4, 0, 376, 2003 / 4)


def test_of_several_pictures_the_first_is_used() -> None:
    for kind in ("GIF", "MPO", "WEBP", "TIFF"):
        first, second = (Image.new("RGB", (64, 64), colour) for colour in ("red", "blue"))
        data = encoded(first, kind, save_all=True, append_images=[second])
        photo = read_photo(data)
        assert photo.pixels[32, 32, 0] > 240
        assert photo.pixels[32, 32, 2] < 15
        assert photo.notes == ("holds several pictures: the first was used",)


def test_exif_tells_the_focal_length_of_the_original() -> None:
    exif = oriented(6)
    exif.get_ifd(IFD.Exif)[Base.FocalLengthIn35mmFilm] = 28
    photo = read_photo(encoded(Image.fromarray(pattern(1600, 1200)), "JPEG", exif=exif), 100)
    assert photo.size == (1200, 1600)
    hint, _ = focal_reading(photo.metadata.tags, photo.size)
    assert hint is not None
    assert hint.focal_px == pytest.approx(28 / 43.27 * 2000, rel=1e-3)


@pytest.mark.parametrize("orientation", [1, 3, 5, 6, 8])
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_the_size_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, orientation: int
) -> None:
    path = tmp_path / "photo"
    Image.fromarray(pattern(96, 64)).save(path, kind, exif=oriented(orientation))
    size = read_photo(path).size
    monkeypatch.setattr(read, "_load", lambda *_: pytest.fail("its pixels were decoded"))
    assert read_size(path) == size


def test_damaged_exif_is_a_note() -> None:
    data = encoded(Image.fromarray(pattern(70, 50)), "JPEG", exif=b"Exif\0\0nonsense, all of it")
    assert read_photo(data).notes == ("the EXIF data are damaged and were ignored",)


def test_heic(tmp_path: Path) -> None:
    pillow_heif = pytest.importorskip("pillow_heif")
    exif = oriented(6)
    exif.get_ifd(IFD.Exif)[Base.FocalLengthIn35mmFilm] = 28
    image = pillow_heif.from_pillow(Image.fromarray(pattern(96, 64)))
    for name in ("photo.heic", "misnamed.jpg"):
        image.save(tmp_path / name, quality=95, exif=exif.tobytes())
        photo = read_photo(tmp_path / name)
        assert photo.size == read_size(tmp_path / name) == (64, 96)
        expected = np.rot90(pattern(96, 64), -1).astype(int)
        assert abs(photo.pixels - expected).mean() < 4
        assert photo.metadata.tags == {Base.FocalLengthIn35mmFilm: 28}


def test_heic_without_its_reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "photo.heic"
    path.write_bytes(b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic" + bytes(100))
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    with pytest.raises(ImageError, match=r'photo\.heic is HEIC.*pip install "geocalib\[heic\]"'):
        read_photo(path)


@pytest.mark.parametrize(
    "values",
    [
        pattern(70, 50),
        pattern(70, 50).astype(np.uint16) * 257,
        pattern(70, 50) / np.float32(255),
        pattern(70, 50) / 255,
        np.dstack([pattern(70, 50), np.full((50, 70, 1), 255, np.uint8)]),
        pattern(70, 50)[::-1][::-1],
    ],
)
def test_arrays(values: npt.NDArray[np.generic]) -> None:
    np.testing.assert_array_equal(read_photo(values).pixels, pattern(70, 50))


@pytest.mark.parametrize("shape", [(50, 70), (50, 70, 1)])
def test_grey_arrays(shape: tuple[int, ...]) -> None:
    grey = pattern(70, 50)[..., 0]
    photo = read_photo(grey.reshape(shape))
    np.testing.assert_array_equal(photo.pixels, np.dstack([grey] * 3))


def test_tensors() -> None:
    tensor = torch.from_numpy(pattern(70, 50)).permute(2, 0, 1)
    for source in (tensor, tensor / 255, (tensor / 255).double().requires_grad_()):
        np.testing.assert_array_equal(read_photo(source).pixels, pattern(70, 50))
    grey = read_photo(tensor[:1]).pixels
    np.testing.assert_array_equal(grey, np.dstack([pattern(70, 50)[..., 0]] * 3))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (np.zeros((3, 50, 70), np.uint8), r"must be \(H, W\).*got \(3, 50, 70\)"),
        (np.zeros((50, 70, 2), np.uint8), r"got \(50, 70, 2\)"),
        (np.zeros(50, np.uint8), r"got \(50, 1\)|got \(50,\)"),
        (np.zeros((50, 70), np.int64), "got int64"),
        (np.zeros((50, 70), bool), "got bool"),
        (np.full((50, 70), 255.0), r"\[0, 1\], got 255 to 255"),
        (np.full((50, 70), np.nan), r"\[0, 1\], got nan"),
        (torch.zeros(50, 70, 3), r"\(3, H, W\).*got \(50, 70, 3\)"),
        (torch.zeros(1, 3, 50, 70), r"got \(1, 3, 50, 70\)"),
        (np.zeros((50, 31, 3), np.uint8), "image is 31x50 pixels; at least 32"),
        (Image.new("L", (1, 1)), "image is 1x1 pixels"),
        (None, "got NoneType"),
        (42, "got int"),
    ],
)
def test_sources_that_are_no_image(source: object, message: str) -> None:
    with pytest.raises(ImageError, match=message):
        read_photo(source)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_floats_that_are_no_numbers_are_told(wrong: float) -> None:
    values = RAMP.astype(np.float32)
    values[0, :7] = wrong
    photo = read_photo(encoded(Image.fromarray(values), "TIFF"))
    assert photo.notes == ("7 of 3500 pixels are no finite numbers and were made black",)
    np.testing.assert_allclose(photo.pixels[1:, :, 1], 255 * RAMP[1:], atol=1)
    assert photo.pixels[0, :7].max() <= 1
    values[:] = wrong
    with pytest.raises(ImageError, match="no pixel is a finite number"):
        read_photo(encoded(Image.fromarray(values), "TIFF"))


def test_the_whole_range_of_floats() -> None:
    values = np.finfo(np.float32).max * (2 * RAMP - 1).astype(np.float32)
    photo = read_photo(encoded(Image.fromarray(values), "TIFF"))
    np.testing.assert_allclose(photo.pixels[..., 1], 255 * RAMP, atol=1)


def test_slight_overshoot_of_floats_is_clipped() -> None:
    photo = read_photo(np.tile(np.array([[-0.01, 1.02]]), (40, 20)))
    assert set(np.unique(photo.pixels)) == {0, 255}


GOOD_JPEG = encoded(Image.fromarray(pattern(200, 150)), "JPEG")
GOOD_PNG = encoded(Image.fromarray(pattern(200, 150)), "PNG")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty; copy it again"),
        (b"This is a letter, not a picture.\n" * 20, "is no image that can be read; convert it"),
        (b"hi\n", "is no image that can be read; convert it"),
        (GOOD_JPEG[: len(GOOD_JPEG) // 2], r"is damaged or cut short \(.*truncated"),
        (GOOD_PNG[: len(GOOD_PNG) // 2], "is damaged or cut short"),
        (GOOD_JPEG[:30], "damaged or cut short|no image"),
        (GOOD_PNG[:20], "damaged or cut short|no image"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(100), "is damaged or cut short"),
        (encoded(Image.new("L", (1, 1)), "PNG"), "is 1x1 pixels; at least 32 are needed"),
        (encoded(Image.new("L", (1000, 31)), "PNG"), "is 1000x31 pixels"),
    ],
)
def test_bad_files(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "holiday.jpg"
    path.write_bytes(data)
    with pytest.raises(ImageError, match=message) as caught:
        read_photo(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ImageError, match=r"missing\.jpg does not exist; check the path"):
        read_photo(tmp_path / "missing.jpg")
    with pytest.raises(ImageError, match="is a folder"):
        read_photo(tmp_path)
    with pytest.raises(ImageError, match="cannot be opened"):
        read_photo("null\0byte.jpg")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    # The superuser may read everything, so that no file can stand for one that is locked.
    monkeypatch.setattr("geocalib.imaging.read.open", refuse, raising=False)
    (tmp_path / "locked.jpg").touch()
    with pytest.raises(ImageError, match=r"locked\.jpg may not be read; check its permissions"):
        read_photo(tmp_path / "locked.jpg")


def png_header(width: int, height: int) -> bytes:
    """A PNG that claims a size and holds no pixels."""
    body = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    header = struct.pack(">I", 13) + body + struct.pack(">I", zlib.crc32(body))
    return b"\x89PNG\r\n\x1a\n" + header + b"\0\0\0\0IDAT" + struct.pack(">I", zlib.crc32(b"IDAT"))


def test_a_decompression_bomb_is_refused_by_its_header() -> None:
    with pytest.raises(ImageError, match=r"image is 50000x50000 pixels.*decompression bomb"):
        read_photo(png_header(50000, 50000))
    with pytest.raises(ImageError, match="decompression bomb"):
        read_photo(png_header(14200, 14200))
    # 200 megapixels are a photo, of a file that is large; this one is only cut short.
    with pytest.raises(ImageError, match="cut short"):
        read_photo(png_header(16320, 12240) + bytes(100_000))
    with pytest.raises(ImageError, match=r"16320x12240 pixels in \d+ bytes: a decompression bomb"):
        read_photo(png_header(16320, 12240) + bytes(1000))


def test_raw_data_are_refused(tmp_path: Path) -> None:
    """Many RAW files are TIFF files that begin with a thumbnail."""
    for name in ("photo.NEF", "photo.dng"):
        (tmp_path / name).write_bytes(encoded(Image.fromarray(pattern(160, 120)), "TIFF"))
        with pytest.raises(ImageError, match=r"holds RAW data; RAW is not read: export it as JPEG"):
            read_photo(tmp_path / name)


def test_pillows_own_limit_is_neither_used_nor_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    for data in (GOOD_JPEG, GOOD_PNG):
        assert read_photo(data).size == (200, 150)
    assert Image.MAX_IMAGE_PIXELS == 1000


def test_threads_read_alike(tmp_path: Path) -> None:
    paths = []
    for i, kind in enumerate(["png", "jpg", "webp", "tiff"] * 4):
        paths.append(tmp_path / f"{i}.{kind}")
        Image.fromarray(pattern(300, 200, seed=i)).save(paths[-1])
    alone = [read_photo(path, 50) for path in paths]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda path: read_photo(path, 50), paths))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.pixels, other.pixels)


def test_blank_pictures() -> None:
    noise = np.random.default_rng(0).normal(0, 1, (60, 80, 3))
    for level in (0, 128, 255):
        assert is_blank((level + noise).clip(0, 255).astype(np.uint8))
        assert is_blank(read_photo(Image.new("RGB", (80, 60), (level,) * 3)).pixels)
    assert not is_blank(pattern(80, 60))
    # A night with a few lights, on 2% of the picture.
    night = np.zeros((100, 100, 3), np.uint8)
    night[:2] = 200
    assert not is_blank(night)
