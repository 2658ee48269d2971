"""What makers note of how a camera was held: accelerations and level gauges, as numbers.

A maker's note (EXIF tag 0x927C) is a signature and a TIFF directory. Each maker has a signature and
a place where the directory begins; offsets count from the begin of the note. Few of its tags are of
interest, so these alone are read, however damaged others are. What the numbers mean is said by
``geocalib.priors.held``.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any

from PIL.ExifTags import Base

from geocalib.records import dataclass

LARGEST_NOTE = 1 << 20
"""Bytes: EXIF data of JPEG have room for 64 kB."""

MOST_NUMBERS = 16
"""In a tag of interest."""
ENTRY = 12
"""Bytes of a tag in a directory."""
ORDERS = {b"II": "<", b"MM": ">"}
TYPES = {1: "B", 3: "H", 4: "I", 5: "II", 6: "b", 8: "h", 9: "i", 10: "ii", 13: "I"}
"""Letters of ``struct`` for TIFF's types."""
RATIONAL = (5, 10)

Numbers = tuple[float, ...]


@dataclass(frozen=True)
class Layout:
    """Where a maker's directory is, and which of its tags tell how the camera was held."""

    signature: bytes
    order_at: int | None
    """Where the byte order is stated, as II or MM; None: little-endian."""
    begins: int
    """Bytes before the directory."""
    tags: Mapping[str, tuple[int, ...]]
    """By the name that the numbers go by: the tag, after those of the directories it lies in."""


LEVEL_GAUGE = {"olympus_roll": (0x2020, 0x0903), "olympus_pitch": (0x2020, 0x0904)}
LAYOUTS = (
    Layout(b"Apple iOS\0", 12, 14, {"apple_acceleration": (0x0008,)}),
    Layout(b"OLYMPUS\0", 8, 12, LEVEL_GAUGE),
    Layout(b"OM SYSTEM\0", 12, 16, LEVEL_GAUGE),
    # Its offsets count from elsewhere, which a single number does not need.
    Layout(b"Panasonic\0", None, 12, {"panasonic_roll": (0x0090,), "panasonic_pitch": (0x0091,)}),
)


def held(tags: Mapping[int, Any]) -> tuple[dict[str, Numbers], tuple[str, ...]]:
    """The numbers by their names, finite or NaN, out of the maker's note among EXIF tags by their
    numbers; and a note if it is damaged."""
    note = tags.get(Base.MakerNote)
    if not isinstance(note, bytes) or len(note) > LARGEST_NOTE:
        return {}, ()
    for layout in LAYOUTS:
        if note.startswith(layout.signature):
            try:
                return _read(note, layout), ()
            except (struct.error, ValueError):
                return {}, ("the maker's note in the EXIF data is damaged and was ignored",)
    return {}, ()


def _read(note: bytes, layout: Layout) -> dict[str, Numbers]:
    order = "<"
    if layout.order_at is not None:
        order = ORDERS.get(note[layout.order_at :][:2], order)
    found = {}
    for name, path in layout.tags.items():
        numbers: Numbers | None = (layout.begins,)
        for tag in path:
            # What a tag on the way holds is the place of the directory with the next.
            numbers = None if numbers is None else _entry(note, order, int(numbers[0]), tag)
        if numbers is not None:
            found[name] = numbers
    return found


def _entry(note: bytes, order: str, directory: int, tag: int) -> Numbers | None:
    """The numbers of a tag of the directory of so many bytes into a note; None if it has none."""
    (count,) = struct.unpack_from(f"{order}H", note, directory)
    for at in range(directory + 2, directory + 2 + ENTRY * count, ENTRY):
        found, kind, length = struct.unpack_from(f"{order}HHI", note, at)
        if found != tag:
            continue
        if kind not in TYPES or not 0 < length <= MOST_NUMBERS:
            raise ValueError("a tag is no list of numbers")
        letters, size = TYPES[kind] * length, struct.calcsize(f"{order}{TYPES[kind] * length}")
        place = at + 8
        if size > 4:
            (place,) = struct.unpack_from(f"{order}I", note, place)
        values = struct.unpack_from(f"{order}{letters}", note, place)
        return _ratios(values) if kind in RATIONAL else tuple(map(float, values))
    return None


def _ratios(values: tuple[int, ...]) -> Numbers:
    """Of numerators, each followed by its denominator; NaN where that is 0."""
    pairs = zip(values[::2], values[1::2], strict=True)
    return tuple(over / under if under else math.nan for over, under in pairs)
