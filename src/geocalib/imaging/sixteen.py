"""Pixels of 16 bits to 8, by the bits that are in use.

Cameras count to 10, 12, 14 or 16 bits, and files have room for 16 whichever it is. The brightest
pixel tells: nothing is stretched by more than a camera of 10 bits explains, and what was dark is.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

DEPTHS = (10, 12, 14, 16)
"""Bits that cameras count in."""

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
