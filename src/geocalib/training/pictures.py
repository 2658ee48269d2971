"""The files of panoramas: which there are, how large they are, and what they show."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from geocalib.errors import PanoramaError
from geocalib.training.hdr import HDR_SUFFIXES, read_hdr

SUFFIXES = (".webp", ".jpg", ".jpeg", ".png", *HDR_SUFFIXES)


def find_panoramas(folder: Path) -> list[Path]:
    """The pictures of a folder, sorted by name."""
    found = sorted(path for path in folder.glob("*") if path.suffix.lower() in SUFFIXES)
    if not found:
        raise PanoramaError(f"{folder} holds no panorama ({', '.join(SUFFIXES)}); put some there")
    return found


def panorama_width(path: Path) -> int:
    """Pixels across a panorama, which is half as high."""
    if path.suffix.lower() in HDR_SUFFIXES:
        return read_panorama(path).width
    try:
        with Image.open(path) as image:
            return _checked(image, path).width
    except OSError as error:
        raise PanoramaError(f"cannot read panorama {path}: {error}") from error


def read_panorama(path: Path) -> Image.Image:
    """What a panorama shows, in RGB; light probes are tone-mapped."""
    if path.suffix.lower() in HDR_SUFFIXES:
        return _checked(Image.fromarray(read_hdr(path)), path)
    try:
        with Image.open(path) as image:
            return _checked(image, path).convert("RGB")
    except OSError as error:
        raise PanoramaError(f"cannot read panorama {path}: {error}") from error


def _checked(image: Image.Image, path: Path) -> Image.Image:
    width, height = image.size
    if width != 2 * height:
        raise PanoramaError(f"{path} is {width}x{height}; a panorama is twice as wide as high")
    return image
