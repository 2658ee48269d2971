"""The network's input shows exactly the part of the photo that its view says."""

from __future__ import annotations

import io
import math

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from PIL.ExifTags import Base
from scipy import ndimage

from geocalib.cameras import Camera
from geocalib.cameras.camera import Window
from geocalib.errors import ImageError
from geocalib.imaging import PUBLISHED, InputSpec, NetworkInput, prepare, read_photo


def blank(width: int, height: int) -> npt.NDArray[np.uint8]:
    return np.zeros((height, width, 3), np.uint8)


def test_a_photo_of_4_to_3() -> None:
    ready = prepare(read_photo(blank(640, 480)))
    # 320 high means 426 wide, of which 416 are 13 times 32: 5 are lost on either side.
    assert ready.image.shape == (3, 320, 416)
    assert ready.image.dtype == np.float32
    assert ready.size == (416, 320)
    step = 640 / 426
    assert ready.view == Window(5 * step, 0.0, pytest.approx(416 * step), 480.0)
    assert ready.aspect == pytest.approx((426 / 640) / (320 / 480))
    assert ready.notes == ()


def test_an_odd_remainder_loses_its_extra_pixel_at_the_start() -> None:
    wide = prepare(read_photo(blank(363, 320)))
    assert wide.view == Window(6.0, 0.0, 352.0, 320.0)
    tall = prepare(read_photo(blank(320, 363)))
    assert tall.view == Window(0.0, 6.0, 320.0, 352.0)


def test_a_photo_of_the_right_size_is_left_alone() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (320, 384, 3), np.uint8)
    ready = prepare(read_photo(pixels))
    assert ready.view == Window(0.0, 0.0, 384.0, 320.0)
    np.testing.assert_array_equal((255 * ready.image).round().transpose(1, 2, 0), pixels)
    assert ready.image.flags.c_contiguous


@settings(max_examples=25)
@given(width=st.integers(32, 700), height=st.integers(32, 700))
def test_the_view_lies_in_the_photo_and_cameras_make_the_round_trip(
    width: int, height: int
) -> None:
    ready = prepare(read_photo(blank(width, height)))
    view, (w, h) = ready.view, ready.size
    assert w % 32 == h % 32 == 0
    assert min(w, h) == 320
    assert max(w, h) <= 2.5 * 320
    assert view.left >= 0
    assert view.top >= 0
    assert view.left + view.width <= width + 1e-9
    assert view.top + view.height <= height + 1e-9

    seen = Camera.create(
        "simple_radial",
        f=400.0,
        size=(w, h),
        distortion=[-0.1],
        aspect=ready.aspect,
        dtype=torch.float32,
    ).to(torch.float64)
    original = view.to_original(seen, (width, height))
    assert original.size.tolist() == [[width, height]]
    assert original.aspect.item() == pytest.approx(1.0, abs=1e-6)
    # One ray has one place in both.
    ray = torch.tensor([[[0.2, -0.1, 1.0]]], dtype=torch.float64)
    (x, y), (u, v) = original.project(ray)[0][0, 0].tolist(), seen.project(ray)[0][0, 0].tolist()
    assert x == pytest.approx(view.left + u * view.width / w)
    assert y == pytest.approx(view.top + v * view.height / h)

    back = view.to_input(original, (w, h))
    for name in ("f", "c", "aspect", "size"):
        torch.testing.assert_close(getattr(back, name), getattr(seen, name))


def ramp(width: int, height: int) -> npt.NDArray[np.uint8]:
    """(H, W, 3): x in red and y in green, so that a pixel tells where it comes from."""
    x = (np.arange(width) + 0.5) / width
    y = (np.arange(height) + 0.5) / height
    grid = np.stack(np.broadcast_arrays(x, y[:, None], 0.5), -1)
    # Dithered, or else the mean of many would be no finer than a grey level.
    return (255 * grid + np.random.default_rng(0).uniform(0, 1, grid.shape)).astype(np.uint8)


def offset(ready: NetworkInput, size: tuple[int, int]) -> tuple[float, float]:
    """By how many original pixels, on average, a ramp lies off where the view claims it."""
    (w, h), view = ready.size, ready.view
    x = (view.left + (np.arange(w) + 0.5) * view.width / w) / size[0]
    y = (view.top + (np.arange(h) + 0.5) * view.height / h) / size[1]
    across = (ready.image[0] - x)[:, 10:-10].mean() * size[0]
    down = (ready.image[1] - y[:, None])[10:-10].mean() * size[1]
    return float(across), float(down)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_view_is_exact_for_a_jpeg_decoded_small(orientation: int) -> None:
    """Twice as small, with half a pixel too much, which orientation moves to any side."""
    stored = {
        1: lambda a: a,
        2: lambda a: a[:, ::-1],
        3: lambda a: a[::-1, ::-1],
        4: lambda a: a[::-1],
        5: lambda a: a.swapaxes(0, 1),
        6: lambda a: np.rot90(a, 1),
        7: lambda a: np.rot90(a, 2).swapaxes(0, 1),
        8: lambda a: np.rot90(a, -1),
    }[orientation]
    exif = Image.Exif()
    exif[Base.Orientation] = orientation
    file = io.BytesIO()
    image = Image.fromarray(np.ascontiguousarray(stored(ramp(307, 261))))
    image.save(file, "JPEG", exif=exif, quality=100, subsampling=0)
    photo = read_photo(file.getvalue(), short_side=64)
    assert photo.size == (307, 261)
    assert photo.pixels.shape == (131, 154, 3)
    ready = prepare(photo, InputSpec(64))
    # To forget the surplus would shift it by up to one pixel.
    assert offset(ready, photo.size) == pytest.approx((0, 0), abs=0.1)


@pytest.mark.parametrize("size", [(1000, 700), (701, 1003), (203, 151), (333, 320), (900, 100)])
def test_the_view_is_exact_for_arrays(size: tuple[int, int]) -> None:
    ready = prepare(read_photo(ramp(*size)))
    assert offset(ready, size) == pytest.approx((0, 0), abs=0.2)


def test_a_panorama_shows_its_middle_and_says_so() -> None:
    ready = prepare(read_photo(blank(2000, 400)))
    assert ready.image.shape == (3, 320, 800)
    assert ready.view == Window(500.0, 0.0, 1000.0, 400.0)
    assert ready.notes == ("longer than 2.5:1, so only its middle, 1000x400 pixels, was looked at",)
    tall = prepare(read_photo(blank(400, 2000)))
    assert tall.view == Window(0.0, 500.0, 400.0, 1000.0)


def test_the_published_network_takes_any_aspect() -> None:
    ready = prepare(read_photo(blank(2000, 400)), PUBLISHED)
    assert ready.image.shape == (3, 320, 1600)
    assert ready.notes == ()


def test_a_small_photo_is_enlarged() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (40, 60, 3), np.uint8)
    ready = prepare(read_photo(pixels))
    assert ready.image.shape == (3, 320, 480)
    # PyTorch's bilinear, to the rounding of 8 bits.
    small = torch.from_numpy(pixels).permute(2, 0, 1)[None] / 255
    large = torch.nn.functional.interpolate(small, size=(320, 480), mode="bilinear")
    assert np.abs(ready.image - large[0].numpy()).max() < 1.01 / 255


def published_resize(
    image: npt.NDArray[np.uint8], width: int, height: int
) -> npt.NDArray[np.float32]:
    """(3, h, w): a Gaussian at full resolution, then bilinear."""
    sigma = [
        max((old / new - 1) / 2, 1e-3)
        for old, new in zip(image.shape, (height, width), strict=False)
    ]
    blurred = ndimage.gaussian_filter(image / np.float32(255), [*sigma, 0], mode="mirror")
    tensor = torch.from_numpy(blurred).permute(2, 0, 1)[None]
    return torch.nn.functional.interpolate(tensor, size=(height, width), mode="bilinear")[0].numpy()


@pytest.mark.parametrize("factor", [0.75, 1.0, 1.5, 3.0, 6.0])
def test_the_resize_is_close_to_the_published_one(factor: float) -> None:
    rng = np.random.default_rng(2)
    width, height = round(96 * factor), round(64 * factor)
    # Natural images have amplitudes like 1 / frequency.
    frequency = np.hypot(np.fft.fftfreq(height)[:, None] * height, np.fft.fftfreq(width) * width)
    spectrum = np.fft.fft2(rng.normal(size=(height, width, 3)), axes=(0, 1))
    natural = np.fft.ifft2(spectrum / (1 + frequency)[..., None], axes=(0, 1)).real
    natural = ndimage.gaussian_filter(natural, [0.7, 0.7, 0])  # A lens and a mosaic of colours.
    natural = 0.5 + 0.2 * natural / natural.std()
    pixels = (255 * natural.clip(0, 1)).astype(np.uint8)

    ours = prepare(read_photo(pixels, 64), InputSpec(64, 32)).image
    theirs = published_resize(pixels, 96, 64)
    assert ours.shape == theirs.shape
    difference = (ours - theirs)[:, 2:-2, 2:-2]
    assert np.abs(difference).mean() < 0.012
    assert abs(difference.mean()) < 0.003


@pytest.mark.parametrize(
    "spec",
    [{"short_side": 16}, {"multiple": 0}, {"largest_aspect": 0.5}, {"detail": 0}, {"detail": 999}],
)
def test_impossible_specs(spec: dict[str, int]) -> None:
    with pytest.raises(ImageError, match="an input needs 1 <="):
        InputSpec(**spec)


def test_other_multiples() -> None:
    ready = prepare(read_photo(blank(500, 300)), InputSpec(short_side=100, multiple=14))
    assert ready.image.shape == (3, 98, 154)
    assert ready.view.width / 154 == pytest.approx(500 / 166)
    assert math.isclose(ready.view.top, 3.0)


def test_detail_is_limited_and_nothing_moves() -> None:
    x, y = np.meshgrid(np.arange(640), np.arange(480))
    fine = np.stack([(x // 2 + y // 2) % 2 * 255, x % 256, y % 256], -1).astype(np.uint8)
    photo = read_photo(fine, short_side=None)
    sharp, soft = (prepare(photo, InputSpec(240, 16, detail=d)) for d in (None, 120))
    assert sharp.view == soft.view
    assert sharp.image.shape == soft.image.shape
    assert float(soft.image[0].std()) < 0.5 * float(sharp.image[0].std())
    # Slopes are where they were.
    middle = slice(40, 80)
    np.testing.assert_allclose(
        soft.image[2, middle, middle], sharp.image[2, middle, middle], atol=0.012, rtol=0
    )


def test_a_photo_with_less_detail_is_left_as_it_is() -> None:
    photo = read_photo(np.random.default_rng(0).integers(0, 256, (100, 100, 3), dtype=np.uint8))
    plain, limited = (prepare(photo, InputSpec(128, 32, detail=d)) for d in (None, 100))
    assert np.array_equal(plain.image, limited.image)
