"""The files of panoramas: which there are, how large they are, and what they show."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from geocalib.errors import ImageError, PanoramaError
from geocalib.files.image_files import why_not_a_file
from geocalib.imaging.read import read_header, read_photo
from geocalib_lab.panoramas.hdr import HDR_SUFFIXES, read_hdr

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
        return _checked(read_header(path)[0], path)[0]
    except ImageError as error:
        raise PanoramaError(f"cannot read panorama {error}") from error


def read_panorama(path: Path) -> Image.Image:
    """What a panorama shows, in RGB; light probes are tone-mapped."""
    if (reason := why_not_a_file(str(path))) is not None:
        raise PanoramaError(f"cannot read panorama {reason}")
    if path.suffix.lower() in HDR_SUFFIXES:
        picture = Image.fromarray(read_hdr(path))
    else:
        try:
            picture = Image.fromarray(read_photo(path, short_side=None).pixels)
        except ImageError as error:
            raise PanoramaError(f"cannot read panorama {error}") from error
    _checked(picture.size, path)
    return picture


def _checked(size: tuple[int, int], path: Path) -> tuple[int, int]:
    width, height = size
    if width != 2 * height:
        raise PanoramaError(f"{path} is {width}x{height}; a panorama is twice as wide as high")
    return size
