"""Pictures grouped by camera: by what their files say, or by the user's table."""

from __future__ import annotations

import csv
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL.ExifTags import Base

from geocalib.errors import ConfigError, FormatError, ImageError
from geocalib.imaging.read import read_header

NAMES = (Base.Make, Base.Model, Base.BodySerialNumber, Base.LensMake, Base.LensModel)
"""Tags of text that tell cameras and lenses apart."""

LENGTHS = (Base.FocalLength, Base.FocalLengthIn35mmFilm, Base.DigitalZoomRatio)
"""Tags of numbers that tell how far a zoom lens was turned."""

COLUMNS = ("image", "camera")


BY_EXIF = "exif"


def group(images: Sequence[Any], sharing: bool | str | Path | Sequence[int]) -> Sequence[int]:
    """An integer per picture, equal where the camera is. sharing: True: one took all; "exif": as
    the files say; the path of a table; or these integers."""
    if isinstance(sharing, bool):
        return [0] * len(images) if sharing else list(range(len(images)))
    if not isinstance(sharing, str | os.PathLike):
        return sharing
    if not all(isinstance(image, str | os.PathLike) for image in images):
        raise ConfigError("only files can be grouped by EXIF or by a table; give integers instead")
    paths = [os.fspath(image) for image in images]
    return group_by_exif(paths) if sharing == BY_EXIF else group_by_file(paths, sharing)


def group_by_exif(images: Sequence[str]) -> list[int]:
    """An integer per picture, equal where camera, lens, focal length and size are.

    Portrait and landscape count as one size. Pictures without EXIF data are distinguished by their
    size alone. One that cannot be read has a camera of its own.
    """
    return _numbered(_signature(image) for image in images)


def names_camera(tags: Mapping[int, Any]) -> bool:
    """Whether the EXIF data of a picture tell cameras, lenses or focal lengths apart."""
    return any(_text(tags, tag) for tag in NAMES) or any(_number(tags, tag) for tag in LENGTHS)


def group_by_file(images: Sequence[str], file: str | Path) -> list[int]:
    """An integer per picture, equal where the column ``camera`` of a CSV file is.

    Its column ``image`` holds paths as they were given or as seen from the file's folder, or names
    that only one picture has. Pictures that it does not name, or with an empty camera, have a
    camera each.
    """
    rows = _rows(Path(file))
    names = _unique_names(images)
    cameras: dict[str, str] = {}
    for source, name, camera in rows:
        here = os.path.normpath(os.path.join(os.path.dirname(file), name))
        known = next((path for path in (os.path.normpath(name), here) if path in images), None)
        image = known or names.get(name)
        if image is not None and cameras.setdefault(image, camera) != camera:
            raise FormatError(f"{source}: {name} has camera {cameras[image]} already, not {camera}")
    if not cameras:
        raise FormatError(f"{file}: names none of the images; check its column image")
    return _numbered(cameras.get(image) or (image, "alone") for image in images)


def _signature(image: str) -> Hashable:
    try:
        size, tags = read_header(image)
    except ImageError:
        return image
    texts = tuple(_text(tags, tag) for tag in NAMES)
    return texts, tuple(_number(tags, tag) for tag in LENGTHS), max(size), min(size)


def _text(tags: Mapping[int, Any], tag: int) -> str:
    return str(tags.get(tag, "")).strip("\0 ").casefold()


def _number(tags: Mapping[int, Any], tag: int) -> float:
    """To a tenth, 0 where there is none: some cameras write more digits than they know."""
    try:
        return round(float(tags.get(tag, 0)), 1)
    except (TypeError, ValueError, ArithmeticError):
        return 0.0


def _numbered(keys: Iterable[Hashable]) -> list[int]:
    """Keys as 0, 1, ... in the order in which they first appear."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _unique_names(images: Sequence[str]) -> dict[str, str]:
    """The pictures by their file names, where only one has that name."""
    named: dict[str, str | None] = {}
    for image in images:
        name = os.path.basename(image)
        named[name] = None if name in named else image
    return {name: image for name, image in named.items() if image is not None}


def _rows(file: Path) -> list[tuple[str, str, str]]:
    """Where each row stands, its image and its camera."""
    try:
        # File names need not be valid text: their bytes go through unchanged.
        with file.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
            reader = csv.DictReader(stream)
            absent = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if absent:
                raise FormatError(
                    f"{file}: has no column {' and '.join(absent)}; its first line must name both"
                )
            return [
                (f"{file}, line {reader.line_num}", row["image"], row["camera"] or "")
                for row in reader
                if row["image"]
            ]
    except OSError as error:
        raise FormatError(f"{file} cannot be read ({error.strerror}); check the path") from None
    except csv.Error as error:
        raise FormatError(f"{file}: this is not CSV: {error}") from None
