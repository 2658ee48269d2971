"""Pictures on disk: what a file is called, and that it is whole and never one of the inputs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from geocalib.errors import ConfigError
from geocalib.nets.download import replacing

if TYPE_CHECKING:
    from PIL import Image

WRITABLE = {
    ".jpg": "JPEG",
    ".jpeg": "JPEG",
    ".png": "PNG",
    ".tif": "TIFF",
    ".tiff": "TIFF",
    ".webp": "WEBP",
}
"""What Pillow calls the formats that pictures are written in."""

QUALITY = 95
"""Of JPEG and WebP."""


def places(images: Sequence[str], output: str, suffix: str = "") -> dict[str, Path]:
    """The file for each image.

    A path with a suffix is the file of a single image; any other, and that of an existing folder,
    is a folder, as ``folder_places`` has it.
    """
    path = Path(output)
    if path.is_dir() or not path.suffix:
        return folder_places(images, output, suffix)
    if path.suffix.lower() not in WRITABLE:
        raise ConfigError(f"{output}: pictures are written as {', '.join(WRITABLE)}; choose one")
    if len(images) > 1:
        raise ConfigError(f"{output} is one file for {len(images)} images; give a folder")
    return _checked(images, [path])


def folder_places(images: Sequence[str], folder: str, suffix: str = "") -> dict[str, Path]:
    """The file for each image, where files stand as the images do below the folder they share.

    A name that says no format which can be written becomes one of a PNG.
    """
    paths = [os.path.abspath(image) for image in images]
    shared = os.path.commonpath([os.path.dirname(path) for path in paths])
    names = [os.path.relpath(path, shared) + suffix for path in paths]
    named = (name if Path(name).suffix.lower() in WRITABLE else f"{name}.png" for name in names)
    return _checked(images, [Path(folder) / name for name in named])


def _checked(images: Sequence[str], files: Sequence[Path]) -> dict[str, Path]:
    """The files by image, if none of them is one of the images."""
    inputs = {os.path.realpath(image) for image in images}
    for file in files:
        if os.path.realpath(file) in inputs:
            raise ConfigError(f"{file} is one of the photos and stays; choose another output")
    return dict(zip(images, files, strict=True))


def save(picture: Image.Image, path: Path) -> None:
    """Write a picture as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        picture.save(file, WRITABLE[path.suffix.lower()], quality=QUALITY)
