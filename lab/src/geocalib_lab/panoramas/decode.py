"""Panoramas from their files into one file of plain pixels, which loads at once."""

from __future__ import annotations

import io
import json
import os
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from geocalib.errors import PanoramaError
from geocalib.files import write_text
from geocalib_lab.panoramas.panorama import level_sizes
from geocalib_lab.panoramas.pictures import panorama_width, read_panorama

DECODED = (".rgb", ".json")
"""What the names of the pixels and of their index end in."""


def decode_folder(
    folder: Path,
    out_file: Path,
    names: Sequence[str],
    width: int | None = None,
    compress_again: int | None = None,
) -> Path:
    """Decode panoramas into one file of uint8 RGB pixels, with all cores; return its index.

    The file holds every panorama in all sizes of a ``PanoramaBank``. The index, a JSON file
    beside it, tells each one's name, size and offset in bytes. Wider panoramas than ``width``
    pixels are shrunk to it. Nothing is done where the file is already there and made of the same
    pictures.

    compress_again: quality of WebP with which the smaller sizes are compressed anew. Traces of
    compression are as large as the pixels of the file, so a view that magnifies a panorama shows
    them large, and they betray how narrow it is; a smaller panorama that was compressed in the
    same way shows them equally large in a wide view.
    """
    index_file = out_file.with_suffix(".json")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        entries = list(pool.map(lambda name: _describe(folder, name, width), names))
        offset = 0
        for entry in entries:
            entry["offset"] = offset
            entry["compress_again"] = compress_again
            offset += sum(3 * w * h for w, h in level_sizes(entry["width"], entry["height"]))
        if not entries:
            raise PanoramaError(f"no panoramas of {folder} are named; give at least one name")
        if _is_made_of(out_file, index_file, entries, offset):
            return index_file
        out_file.parent.mkdir(parents=True, exist_ok=True)
        # Under its name the file is always complete.
        partial = out_file.with_name(out_file.name + ".partial")
        pixels = np.memmap(partial, dtype=np.uint8, mode="w+", shape=(offset,))
        for _ in pool.map(lambda entry: _decode(folder, entry, pixels), entries):
            pass
        pixels.flush()
    index_file.unlink(missing_ok=True)
    partial.replace(out_file)
    write_text(index_file, json.dumps(entries, indent=0))
    return index_file


def is_decoded(file: Path) -> bool:
    """Whether ``decode_folder`` wrote a file, or its index."""
    try:
        entries = json.loads(file.with_suffix(".json").read_text())
    except (OSError, ValueError):
        return False
    return isinstance(entries, list) and all(
        isinstance(entry, dict) and {"name", "offset", "checksum"} <= entry.keys()
        for entry in entries
    )


def _describe(folder: Path, name: str, width: int | None) -> dict[str, Any]:
    full_width = panorama_width(folder / name)
    width = min(full_width, width or full_width) // 2 * 2
    checksum = zlib.crc32((folder / name).read_bytes())
    return {"name": name, "width": width, "height": width // 2, "checksum": checksum}


def _is_made_of(out_file: Path, index_file: Path, entries: list[dict[str, Any]], size: int) -> bool:
    if not (out_file.exists() and index_file.exists() and out_file.stat().st_size == size):
        return False
    try:
        return bool(json.loads(index_file.read_text()) == entries)
    except json.JSONDecodeError:
        return False


def _decode(folder: Path, entry: dict[str, Any], pixels: np.memmap[Any, Any]) -> None:
    start = entry["offset"]
    picture = read_panorama(folder / entry["name"])
    for number, size in enumerate(level_sizes(entry["width"], entry["height"])):
        level = picture
        if level.size != size:
            level = picture.resize(size, Image.Resampling.BOX)
        if number > 0 and entry["compress_again"] is not None:
            level = _compress(level, entry["compress_again"])
        end = start + 3 * size[0] * size[1]
        pixels[start:end] = np.asarray(level).ravel()
        start = end


def _compress(picture: Image.Image, quality: int) -> Image.Image:
    file = io.BytesIO()
    picture.save(file, "WEBP", quality=quality)
    with Image.open(file) as image:
        return image.convert("RGB")
