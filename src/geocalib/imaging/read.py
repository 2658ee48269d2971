"""Any image to 8-bit RGB, upright: decoded no larger than needed, and refused with a reason."""

from __future__ import annotations

import io
import os
import struct
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import IO, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image
from PIL.ExifTags import Base

from geocalib.arrays import is_tensor, to_numpy
from geocalib.errors import ImageError, how_to_get
from geocalib.files.image_files import EXPORT, content_of, is_raw, why_not_a_file
from geocalib.imaging.metadata import Metadata, read_tags
from geocalib.records import dataclass

WEBP_SIDE = 0x3FFF
"""Bits of a side in pictures that are not extended."""


SMALLEST_SIDE = 32
LARGEST_IMAGE = 16384 * 12288
"""Pixels: the 200 megapixels of the largest phone sensors."""

EMPTY_IMAGE = 1 << 25
"""Pixels beyond which a file must hold something to show for them."""
MOST_PER_BYTE = 2000
"""Pixels for each byte of such a file: photos have a few, at most a hundred."""

OVERSAMPLING = 2
"""Decoded pixels per pixel that is wanted, at least: leaves work to a good resize."""

BLANK_CONTRAST = 8
"""Grey levels between the darkest and the brightest percent of a picture of nothing."""

PAPER = (255, 255, 255)
"""What shows through transparent pixels."""

OVERSHOOT = 0.1
"""How far float pixels may leave [0, 1], as a sharp resize makes them; they are clipped."""

HEIF_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx")


class Tensor(Protocol):
    """What type checkers take for a tensor of torch: they may know it where it is not installed."""

    def detach(self) -> Any: ...

    def numpy(self) -> Any: ...


ImageSource: TypeAlias = (
    str
    | os.PathLike[str]
    | bytes
    | bytearray
    | memoryview
    | IO[bytes]
    | Image.Image
    | npt.NDArray[Any]
    | Tensor
)
"""A path, the bytes of a file, a file that is open, a PIL image, an array or a tensor."""


@dataclass(frozen=True)
class Photo:
    """An upright picture in memory, possibly smaller than the file's."""

    pixels: npt.NDArray[np.uint8]
    """(h, w, 3) RGB."""
    size: tuple[int, int]
    """(width, height) of the original, upright, in its pixels."""
    shown: tuple[float, float, float, float]
    """(left, top, right, bottom) in ``pixels`` of what the original spans. A decoder that
    shrinks by whole numbers ends in a row and a column that reach beyond the original."""
    name: str
    """The name in messages."""
    notes: tuple[str, ...] = ()
    """What its user should know, in plain words."""
    metadata: Metadata = field(default_factory=Metadata, repr=False)
    """The metadata of the file."""


def read_photo(source: ImageSource, short_side: int | None = 320) -> Photo:
    """The picture of a file's path, the bytes of a file, an open file, a PIL image, an array or a
    tensor.

    Arrays have shape (H, W), (H, W, 1), (H, W, 3) or (H, W, 4), tensors (3, H, W) or (1, H, W);
    both hold uint8, uint16 or floats in [0, 1], RGB. EXIF orientation is applied, to PIL images
    as well; transparency becomes white; of several frames the first is taken.

    short_side: pixels that will be needed across the shorter side. At least twice as many are
    kept, and a JPEG is not even decoded to more than a few times as many. None: all pixels.
    """
    with quiet():
        return _read(source, short_side)


def _read(source: ImageSource, short_side: int | None) -> Photo:
    if isinstance(source, str | os.PathLike):
        with _opened(name := os.fspath(source)) as file:
            return _from_file(file, name, short_side)
    if isinstance(source := content_of(source), bytes):
        return _from_file(io.BytesIO(source), "image", short_side)
    if isinstance(source, Image.Image):
        name = str(getattr(source, "filename", "")) or "image"
        _check_size(source.size, name)
        _load(source, name)
        return _photo(source, name, short_side)
    if is_tensor(source):
        shape = tuple(source.shape)
        if len(shape) != 3 or shape[0] not in (1, 3):
            raise ImageError(f"an image tensor must be (3, H, W) or (1, H, W), got {shape}")
        return _photo(_from_array(to_numpy(source).transpose(1, 2, 0)), "image", short_side)
    if isinstance(source, np.ndarray):
        return _photo(_from_array(source), "image", short_side)
    raise ImageError(
        f"an image must be a path, bytes, an open file, a PIL image, an array or a tensor, "
        f"got {type(source).__name__}"
    )


def read_header(path: str | os.PathLike[str]) -> tuple[tuple[int, int], dict[int, Any]]:
    """(width, height) as stored and the EXIF tags by number of a file, without its pixels."""
    with quiet(), _opened(name := os.fspath(path)) as file:
        image = _identified(file, name)
        return image.size, read_tags(image)[1]


def read_size(source: str | os.PathLike[str] | bytes) -> tuple[int, int]:
    """(width, height) of the picture of a file, by its path or its bytes, upright, without its
    pixels."""
    name = "image" if isinstance(source, bytes) else os.fspath(source)
    opened = io.BytesIO(source) if isinstance(source, bytes) else _opened(name)
    with quiet(), opened as file:
        image = _identified(file, name)
        # A TIFF image may have the size that loading will turn it to.
        tags = getattr(image, "tag_v2", {})
        width = tags.get(Base.ImageWidth, image.size[0])
        height = tags.get(Base.ImageLength, image.size[1])
        _check_size((width, height), name)
        return (height, width) if read_tags(image)[0] > 4 else (width, height)


def is_blank(pixels: npt.NDArray[np.uint8]) -> bool:
    """Whether pixels (h, w, 3) show next to nothing: all black, all white, a lens cap."""
    step = max(1, min(pixels.shape[:2]) // 128)
    few = pixels[::step, ::step]
    # Three times the brightness, in whole numbers: a mean over three values takes longer than all
    # the rest.
    sums = few[..., 0].astype(np.uint16)
    sums += few[..., 1]
    sums += few[..., 2]
    # The first and the last percentile, by counting.
    last = sums.size - 1
    ranks = (last // 100, last - last // 100)
    dark, bright = np.searchsorted(np.bincount(sums.ravel()).cumsum(), ranks, "right").tolist()
    return bool(bright - dark < 3 * BLANK_CONTRAST)


@contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    if (reason := why_not_a_file(name)) is not None:
        raise ImageError(reason)
    if is_raw(name):
        raise ImageError(f"{name} holds RAW data; {EXPORT}")
    try:
        file = BoundedFile(open(name, "rb", 0))  # noqa: SIM115 (what fails later is not the opening)
    except PermissionError:
        raise ImageError(f"{name} may not be read; check its permissions") from None
    except OSError as cause:
        raise ImageError(f"{name} cannot be opened ({cause}); check the path") from cause
    with file:
        yield file


def _from_file(file: IO[bytes], name: str, short_side: int | None) -> Photo:
    image = _identified(file, name)
    size = image.size
    _check_size(size, name, _length(file))
    deep = has_low_bytes(image)
    several = _holds_several(image, name)
    drafted = None
    if short_side is not None:
        least = OVERSAMPLING * short_side
        drafted = image.draft(None, (least, least))
    _load(image, name)
    if deep and np.asarray(image)[..., :3].max() < SHALLOW:
        file.seek(0)
        _deepen(image, _identified(file, name), name)
    notes = ("holds several pictures: the first was used",) if several else ()
    if drafted is None:
        return _photo(image, name, short_side, notes=notes)
    return _photo(image, name, short_side, size, drafted[1][2:], notes)


def _length(file: IO[bytes]) -> int:
    """Bytes of a file, which is left where it was."""
    at = file.tell()
    end = file.seek(0, os.SEEK_END)
    file.seek(at)
    return end


def _identified(file: IO[bytes], name: str) -> Image.Image:
    """The image of a file, with its header read only.

    ``Image.open`` holds every image against a limit that is global to the process, and warns
    about ordinary large photos; changing the limit, or muting its warning, would reach into the
    threads of others. So the formats are tried one by one here, as it does, and the size is
    checked by the caller.
    """
    head = file.read(64)
    if not head:
        raise ImageError(f"{name} is empty; copy it again")
    if (size := webp_size(head)) is not None:
        _check_size(size, name, _length(file))
    try:
        if head[4:8] == b"ftyp" and any(brand in head for brand in HEIF_BRANDS):
            return _open_heif(file, name)
        # The common formats first: loading the others takes a while.
        for load_formats in (_load_jpeg, Image.preinit, Image.init):
            load_formats()
            for identifier in tuple(Image.ID):
                opener, accepts = Image.OPEN[identifier]
                verdict = accepts is None or accepts(head[:16].ljust(16, b"\0"))
                if isinstance(verdict, str) or not verdict:  # A string says what is missing.
                    continue
                file.seek(0)
                try:
                    return opener(file, name)
                except (SyntaxError, IndexError, TypeError, struct.error):
                    continue  # Another format's: this is how openers say so.
    except ImageError:
        raise
    except Exception as cause:
        raise _damaged(name, cause) from cause
    raise ImageError(f"{name} is no image that can be read; convert it to JPEG or PNG")


def _load_jpeg() -> None:
    """Teach Pillow the format of nearly all photos."""
    from PIL import JpegImagePlugin  # noqa: F401


def _open_heif(file: IO[bytes], name: str) -> Image.Image:
    try:
        from pillow_heif import HeifImageFile
    except ImportError:
        raise ImageError(f"{name} is HEIC; to read it, {how_to_get('heic')}") from None
    opener: Callable[[IO[bytes]], Image.Image] = HeifImageFile
    return opener(file)


def _load(image: Image.Image, name: str) -> None:
    try:
        image.load()
    except Exception as cause:  # Decoders fail on damaged files in ways of their own.
        raise _damaged(name, cause) from cause


def _holds_several(image: Image.Image, name: str) -> bool:
    """Whether there are more pictures in a file, which takes a look behind the first."""
    try:
        return bool(getattr(image, "is_animated", False))
    except Exception as cause:
        raise _damaged(name, cause) from cause


def _deepen(image: Image.Image, again: Image.Image, name: str) -> None:
    """Give a loaded image the bits that loading has lost."""
    try:
        add_low_bytes(image, again)
    except Exception as cause:
        raise _damaged(name, cause) from cause


def _damaged(name: str, cause: Exception) -> ImageError:
    if isinstance(cause, MemoryError):
        return ImageError(f"{name} takes more memory than there is; shrink it first")
    reason = str(cause).splitlines()[0] if str(cause) else type(cause).__name__
    return ImageError(f"{name} is damaged or cut short ({reason}); copy or export it again")


def _check_size(size: tuple[int, int], name: str, length: int | None = None) -> None:
    """Refuse what is too small, too large, or larger than a file of that many bytes can be."""
    width, height = size
    if min(size) < SMALLEST_SIDE:
        raise ImageError(
            f"{name} is {width}x{height} pixels; at least {SMALLEST_SIDE} are needed on each side"
        )
    if width * height > LARGEST_IMAGE:
        raise ImageError(
            f"{name} is {width}x{height} pixels, more than {LARGEST_IMAGE // 10**6} megapixels: "
            f"a decompression bomb, or an image to shrink first"
        )
    if length is not None and width * height > max(EMPTY_IMAGE, MOST_PER_BYTE * length):
        raise ImageError(
            f"{name} is {width}x{height} pixels in {length} bytes: a decompression bomb, or a "
            f"picture of nothing"
        )


def _photo(
    image: Image.Image,
    name: str,
    short_side: int | None,
    size: tuple[int, int] | None = None,
    shown: tuple[float, float] | None = None,
    notes: tuple[str, ...] = (),
) -> Photo:
    """The upright picture of a loaded image.

    size: of the original as it is stored, where the image was shrunk while it was decoded; shown:
    the pixels it spans, as floats.
    """
    size, shown = size or image.size, shown or image.size
    orientation, tags, exif_notes = read_tags(image)
    metadata = Metadata.create(orientation, tags, image.info)
    try:
        image, colour_notes = _eight_bit_rgb(image)
    except ValueError as cause:
        raise ImageError(f"{name} has colours that cannot be converted: {cause}") from cause
    if short_side is not None and (factor := int(min(shown)) // (OVERSAMPLING * short_side)) > 1:
        image = image.reduce(factor)
        shown = (shown[0] / factor, shown[1] / factor)
    pixels, box = _upright(np.asarray(image), shown, orientation)
    size = size[::-1] if orientation > 4 else size
    return Photo(pixels, size, box, name, (*notes, *colour_notes, *exif_notes), metadata)


def _upright(
    pixels: npt.NDArray[np.uint8], shown: tuple[float, float], orientation: int
) -> tuple[npt.NDArray[np.uint8], tuple[float, float, float, float]]:
    """Pixels as EXIF orientation 1 to 8 wants them seen, and where the part shown comes to lie."""
    right, bottom = shown
    left = top = 0.0
    if orientation in (5, 6, 7, 8):
        pixels, right, bottom = pixels.swapaxes(0, 1), bottom, right
    height, width = pixels.shape[:2]
    if orientation in (2, 3, 6, 7):
        pixels, left, right = pixels[:, ::-1], width - right, float(width)
    if orientation in (3, 4, 7, 8):
        pixels, top, bottom = pixels[::-1], height - bottom, float(height)
    return np.ascontiguousarray(pixels), (left, top, float(right), float(bottom))


def _eight_bit_rgb(image: Image.Image) -> tuple[Image.Image, tuple[str, ...]]:
    if image.mode.startswith("I;16"):
        return Image.fromarray(eight_bits(np.asarray(image))).convert("RGB"), ()
    if image.mode in ("I", "F"):
        grey, notes = _any_range(np.asarray(image))
        return Image.fromarray(grey).convert("RGB"), notes
    if image.has_transparency_data:
        image = image.convert("RGBA")
        alpha = image.getchannel("A")
        if alpha.getextrema() != (255, 255):
            flat = Image.new("RGB", image.size, PAPER)
            flat.paste(image, mask=alpha)
            return flat, ("transparent parts were made white",)
    return (image if image.mode == "RGB" else image.convert("RGB")), ()


def _any_range(values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.uint8], tuple[str, ...]]:
    """Grey levels of 32-bit values (H, W), whose format does not say what white is."""
    finite = np.isfinite(values)
    lost = values.size - int(finite.sum())
    if lost == values.size:
        raise ValueError("no pixel is a finite number")
    notes: tuple[str, ...] = ()
    if lost:
        notes = (f"{lost} of {values.size} pixels are no finite numbers and were made black",)
    low, high = values[finite].min(), values[finite].max()
    values = np.where(finite, values, low)
    if values.dtype.kind == "i" and low >= 0 and high < 1 << 16:
        return (values.astype(np.uint8) if high < 1 << 8 else eight_bits(values)), notes
    if values.dtype.kind == "f" and low >= 0 and high <= 1:
        return np.rint(255 * values).astype(np.uint8), notes
    stretched = f"brightness was stretched: {low:g} became black and {high:g} white"
    # In halves, as the range itself may be more than a float holds.
    span = (0.5 * float(high) - 0.5 * float(low)) or 1.0
    grey = np.rint(255 * ((0.5 * values.astype(np.float64) - 0.5 * float(low)) / span))
    return grey.astype(np.uint8), (*notes, stretched)


def _from_array(values: npt.NDArray[Any]) -> Image.Image:
    if values.ndim == 2:
        values = values[..., None]
    if values.ndim != 3 or values.shape[2] not in (1, 3, 4):
        raise ImageError(
            f"an image array must be (H, W), (H, W, 1), (H, W, 3) or (H, W, 4), got {values.shape}"
        )
    _check_size((values.shape[1], values.shape[0]), "image")
    if values.dtype == np.uint16:
        values = eight_bits(values)
    elif values.dtype.kind == "f":
        if not (values.min() >= -OVERSHOOT and values.max() <= 1 + OVERSHOOT):
            raise ImageError(
                f"float pixels must lie in [0, 1], got {values.min():g} to {values.max():g}; "
                f"scale them, or give uint8"
            )
        values = np.rint(255 * values.clip(0, 1))
    elif values.dtype != np.uint8:
        raise ImageError(f"pixels must be uint8, uint16 or float, got {values.dtype}")
    values = values.astype(np.uint8, copy=False)
    return Image.fromarray(np.ascontiguousarray(values[..., 0] if values.shape[2] == 1 else values))


class BoundedFile(io.BufferedReader):
    """A file that makes no room for more bytes than it has: damaged ones ask for gigabytes. As
    ``open(name, "rb")``, of what ``open(name, "rb", 0)`` gives."""

    def __init__(self, raw: io.FileIO) -> None:
        super().__init__(raw)
        self._length = os.fstat(raw.fileno()).st_size

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size > 0:
            size = min(size, max(0, self._length - self.tell()))
        return super().read(size)


def webp_size(head: bytes) -> tuple[int, int] | None:
    """(width, height) that the first 30 bytes of a file state; None if it is no WebP. Its decoder
    makes room for them as soon as it is opened."""
    if head[:4] != b"RIFF" or head[8:12] != b"WEBP":
        return None

    def number(start: int, end: int) -> int:
        return int.from_bytes(head[start:end], "little")

    kind = head[12:16]
    if kind == b"VP8X":
        return number(24, 27) + 1, number(27, 30) + 1
    if kind == b"VP8L":
        return (number(21, 25) & WEBP_SIDE) + 1, (number(21, 25) >> 14 & WEBP_SIDE) + 1
    return number(26, 28) & WEBP_SIDE, number(28, 30) & WEBP_SIDE


# Pixels of 16 bits to 8 ---------------------------------------------------------------------------

DEPTHS = (10, 12, 14, 16)
"""Bits that cameras count in: 10, 12, 14 or 16, while files have room for 16 whichever it is. The
brightest pixel shows which: nothing is stretched by more than a camera of 10 bits explains, and
what was dark stays dark."""

SHALLOW = 1 << 6
"""High bytes below this use 14 bits or fewer."""

COLOURS = ("RGB;16", "RGBX;16", "RGBA;16")
"""What Pillow calls pixels of several bands, before L, B or N for the order of their bytes. It
keeps the high bytes alone."""

SWAPPED = {"L": "B", "B": "L", "N": "B" if sys.byteorder == "little" else "L"}
"""The order in which the low byte comes where the high one does."""


def eight_bits(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Whole numbers of any shape, from 0 to 65535, with white where their depth ends."""
    used = int(values.max()).bit_length()
    depth = next(depth for depth in DEPTHS if used <= depth)
    return (values >> (depth - 8)).astype(np.uint8)


def has_low_bytes(image: Image.Image) -> bool:
    """Whether loading an image will lose the low bytes of its colours."""
    kinds = [_kind(tile) for tile in getattr(image, "tile", ())]
    return bool(kinds) and all(kind[:-1] in COLOURS and kind[-1] in SWAPPED for kind in kinds)


def add_low_bytes(image: Image.Image, again: Image.Image) -> None:
    """Show a loaded image by all bits of its pixels, given the same one again, not loaded yet."""
    again.tile = [_swapped(tile) for tile in again.tile]  # type: ignore[attr-defined]
    again.load()
    values = np.asarray(image).astype(np.uint16) << 8 | np.asarray(again)
    bands = [eight_bits(values[..., :3])]
    if image.mode == "RGBA":
        bands.append(eight_bits(values[..., 3:]))
    image.paste(Image.fromarray(np.concatenate(bands, -1)))


def _kind(tile: Any) -> str:
    """What a part of a file holds; of some decoders the first of several arguments."""
    return str(tile.args if isinstance(tile.args, str) else tile.args[0])


def _swapped(tile: Any) -> Any:
    kind = _kind(tile)
    swapped = kind[:-1] + SWAPPED[kind[-1]]
    return tile._replace(args=swapped if isinstance(tile.args, str) else (swapped, *tile.args[1:]))


# Warnings of Pillow -------------------------------------------------------------------------------


class _Reading(threading.local):
    """Takes the place of a pattern of modules in a filter of warnings.

    ``warnings.catch_warnings`` exchanges the filters of the whole process, under the feet of other
    threads. This filter stays among them, and holds in a thread only while that reads.
    """

    now = False

    def match(self, module: str) -> bool:
        return self.now


_READING = _Reading()
_FILTER: Any = ("ignore", None, Warning, _READING, 0)


@contextmanager
def quiet() -> Iterator[None]:
    """No warning is given, nor turned into an error, in this thread."""
    filters: Any = warnings.filters
    if _FILTER not in filters:
        filters.insert(0, _FILTER)
    before, _READING.now = _READING.now, True
    try:
        yield
    finally:
        _READING.now = before
