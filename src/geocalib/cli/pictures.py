"""Pictures on disk: what a file is called, and how it is written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geocalib.errors import ConfigError
from geocalib.files import write_bytes

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
"""The quality of written JPEG and WebP files."""

SOFTWARE = "geocalib"
"""The program that a picture's metadata name as its maker."""


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
    return {images[0]: path}


def folder_places(images: Sequence[str], folder: str, suffix: str = "") -> dict[str, Path]:
    """The file for each image, where files stand as the images do below the folder they share.

    A name that says no format which can be written becomes one of a PNG.
    """
    paths = [os.path.abspath(image) for image in images]
    shared = os.path.commonpath([os.path.dirname(path) for path in paths])
    names = [os.path.relpath(path, shared) + suffix for path in paths]
    named = (name if Path(name).suffix.lower() in WRITABLE else f"{name}.png" for name in names)
    return {image: Path(folder) / name for image, name in zip(images, named, strict=True)}


def format_of(path: Path) -> str:
    """What Pillow calls the format that a file's name says."""
    return WRITABLE[path.suffix.lower()]


def save(picture: Image.Image, path: Path, **options: Any) -> None:
    """Write a picture as a whole or not at all. options: further ones of Pillow."""
    from PIL.PngImagePlugin import PngInfo

    chunks = options.pop("pnginfo", None) or PngInfo()
    chunks.add_text("Software", SOFTWARE)
    # In memory first: Pillow does not say why a disk takes no more.
    content = BytesIO()
    picture.save(content, format_of(path), quality=QUALITY, pnginfo=chunks, **options)
    write_bytes(path, content.getbuffer())


def is_drawn(path: Path) -> bool:
    """Whether a file is a PNG that ``save`` wrote."""
    from PIL import Image

    try:
        with Image.open(path, formats=["PNG"]) as picture:
            return bool(picture.info.get("Software") == SOFTWARE)
    except (OSError, ValueError, SyntaxError):
        return False
