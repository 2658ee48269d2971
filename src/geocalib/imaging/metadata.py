"""What a file holds beside its pixels: which way up it is, and what tells of its camera.

A maker's note (EXIF tag 0x927C) is a signature and a TIFF directory. Each maker has a signature and
a place where the directory begins; offsets count from the begin of the note, or of the EXIF data it
lay in. Few of its tags are of interest, so these alone are read, however damaged others are:
accelerations and level gauges. What the numbers mean is said by ``geocalib.priors.readings``.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from PIL import Image
from PIL.ExifTags import IFD, Base

from geocalib.records import dataclass

CAMERA_TAGS = frozenset(
    {
        Base.Make,
        Base.Model,
        Base.LensModel,
        Base.FocalLength,
        Base.FocalLengthIn35mmFilm,
        Base.FocalPlaneXResolution,
        Base.FocalPlaneResolutionUnit,
        Base.DigitalZoomRatio,
        Base.ExifImageWidth,
        Base.ExifImageHeight,
        Base.Software,
        Base.CameraElevationAngle,
    }
)
"""What tells which camera and lens it is, how long (``geocalib.priors.exif``) and how it was held
(``geocalib.priors.readings``), and what has edited the picture since."""


@dataclass(frozen=True)
class Metadata:
    """What a file holds beside its pixels, as far as it tells of the camera."""

    orientation: int = 1
    """By EXIF, 1 to 8: how the stored picture is turned to be upright."""
    tags: Mapping[int, Any] = field(default_factory=dict)
    """EXIF tags about the camera."""
    xmp: bytes | None = None
    """The XMP packet."""
    held: Mapping[str, Numbers] = field(default_factory=dict)
    """What the maker noted of how the camera was held."""
    taken: int = 1
    """The orientation in which the sensor took the picture, 1 to 8 as in EXIF. It is not that of
    the stored picture where a decoder has turned that upright, as those of HEIC do."""
    damage: tuple[str, ...] = ()
    """Notes on what of it could not be read."""

    @classmethod
    def create(cls, orientation: int, tags: Mapping[int, Any], info: Mapping[Any, Any]) -> Metadata:
        """Metadata from all tags of a file, and from Pillow's properties of its image."""
        xmp = info.get("xmp")
        packet = xmp.encode() if isinstance(xmp, str) else xmp
        noted, damage = held(tags) if Base.MakerNote in tags else ({}, ())
        taken: Any = info.get("original_orientation")
        return cls(
            orientation,
            {tag: value for tag, value in tags.items() if tag in CAMERA_TAGS},
            packet if isinstance(packet, bytes) else None,
            noted,
            int(taken) if taken in range(2, 9) else orientation,
            damage,
        )


def read_tags(image: Image.Image) -> tuple[int, dict[int, Any], tuple[str, ...]]:
    """The orientation (1 to 8), the tags of an image by number, and notes on what is wrong.

    Read them after the image was loaded: some formats are turned upright on loading.
    """
    try:
        if raw := image.info.get("exif"):
            Image.Exif().load(raw)  # An image that failed to read them once hides it since.
        exif = image.getexif()
        tags = {**exif, **exif.get_ifd(IFD.Exif)}
    except Exception:  # Damaged data fail in Pillow's parser in as many ways as there are bytes.
        return 1, {}, ("the EXIF data are damaged and were ignored",)
    orientation = tags.get(Base.Orientation, 1)
    known = isinstance(orientation, int) and 1 <= orientation <= 8
    return int(orientation) if known else 1, tags, ()


LARGEST_NOTE = 1 << 20
"""Bytes: EXIF data of JPEG have room for 64 kB."""

MOST_NUMBERS = 64
"""In a tag of interest."""
ENTRY = 12
"""Bytes of a tag in a directory."""
ORDERS = {b"II": "<", b"MM": ">"}
TYPES = {1: "B", 3: "H", 4: "I", 5: "II", 6: "b", 7: "B", 8: "h", 9: "i", 10: "ii", 13: "I"}
"""Letters of ``struct`` for TIFF's types."""
WIDE = {5: 8, 10: 8, 12: 8, 3: 2, 8: 2, 4: 4, 9: 4, 11: 4, 13: 4}
"""Bytes of a number of TIFF's types; 1 of the others."""
RATIONAL = (5, 10)

Numbers = tuple[float, ...]


@dataclass(frozen=True)
class NoteLayout:
    """Where a maker's directory is, and which of its tags tell how the camera was held."""

    signature: bytes
    order_at: int | None
    """Where the byte order is stated, as II or MM; None, or where it is not: that of the shorter
    directory."""
    begins: int
    """Number of bytes before the directory."""
    tags: Mapping[str, tuple[int, ...]]
    """By the name that the numbers go by: the tag, after those of the directories it lies in."""
    camera: str = ""
    """A pattern that make and model together must begin with."""
    absolute: bool = False
    """Whether offsets count from the begin of the EXIF data. Where that was, the first value tells,
    which comes 4 bytes after the directory, wherever a program has moved the note since."""
    letters: str = ""
    """Format letters of ``struct``, if numbers are packed otherwise than the tags' types say."""


LEVEL_GAUGE = {"olympus_roll": (0x2020, 0x0903), "olympus_pitch": (0x2020, 0x0904)}
PENTAX_LEVEL, PENTAX_NEW_LEVEL = {"pentax_level": (0x022B,)}, {"pentax_new_level": (0x022B,)}
K5, K3_III = r".*\bK-5\b", r".*\bK-3 Mark III\b"
LAYOUTS = (
    NoteLayout(b"Apple iOS\0", 12, 14, {"apple_acceleration": (0x0008,)}),
    NoteLayout(b"OLYMPUS\0", 8, 12, LEVEL_GAUGE),
    NoteLayout(b"OM SYSTEM\0", 12, 16, LEVEL_GAUGE),
    # Its offsets count from elsewhere, which a single number does not need.
    NoteLayout(
        b"Panasonic\0", None, 12, {"panasonic_roll": (0x0090,), "panasonic_pitch": (0x0091,)}
    ),
    NoteLayout(b"", None, 0, {"canon_level": (0x4059,)}, camera="Canon", absolute=True),
    # Each as its side, roll and pitch: other models are not known to write the same.
    NoteLayout(b"PENTAX \0", 8, 10, PENTAX_LEVEL, camera=K5, letters="bbb"),
    NoteLayout(b"PENTAX \0", 8, 10, PENTAX_NEW_LEVEL, camera=K3_III, letters="xbxhh"),
    NoteLayout(b"AOC\0", 4, 6, PENTAX_LEVEL, camera=K5, absolute=True, letters="bbb"),
    NoteLayout(b"AOC\0", 4, 6, PENTAX_NEW_LEVEL, camera=K3_III, absolute=True, letters="xbxhh"),
)


def held(tags: Mapping[int, Any]) -> tuple[dict[str, Numbers], tuple[str, ...]]:
    """The numbers by their names, finite or NaN, out of the maker's note among EXIF tags by their
    numbers; and a note if it is damaged."""
    note = tags.get(Base.MakerNote)
    if not isinstance(note, bytes) or len(note) > LARGEST_NOTE:
        return {}, ()
    camera = f"{tags.get(Base.Make, '')} {tags.get(Base.Model, '')}"
    for layout in LAYOUTS:
        if note.startswith(layout.signature) and re.match(layout.camera, camera):
            try:
                return _read(note, layout), ()
            except (struct.error, ValueError):
                return {}, ("the maker's note in the EXIF data is damaged and was ignored",)
    return {}, ()


def _read(note: bytes, layout: NoteLayout) -> dict[str, Numbers]:
    order = _order(note, layout)
    origin = _origin(note, order, layout.begins) if layout.absolute else 0
    found = {}
    for name, path in layout.tags.items():
        numbers: Numbers | None = (layout.begins,)
        for tag in path:
            # What a tag on the way holds is the place of the directory with the next.
            if numbers is None:
                break
            numbers = _entry(note, order, int(numbers[0]), tag, origin, layout.letters)
        if numbers is not None:
            found[name] = numbers
    return found


def _order(note: bytes, layout: NoteLayout) -> str:
    """The letter of ``struct`` for the byte order of a note."""
    stated = note[layout.order_at :][:2] if layout.order_at is not None else b""
    if stated in ORDERS:
        return ORDERS[stated]
    return min("<>", key=lambda order: struct.unpack_from(f"{order}H", note, layout.begins))


def _origin(note: bytes, order: str, directory: int) -> int:
    """The offset that was the begin of a note, of one whose first value comes after the directory
    and 4 bytes."""
    (count,) = struct.unpack_from(f"{order}H", note, directory)
    end = directory + 2 + ENTRY * count
    entries = (
        struct.unpack_from(f"{order}HHII", note, at) for at in range(directory + 2, end, ENTRY)
    )
    places = [place for _, kind, length, place in entries if WIDE.get(kind, 1) * length > 4]
    return min(places, default=end + 4) - end - 4


def _entry(
    note: bytes, order: str, directory: int, tag: int, origin: int, packed: str
) -> Numbers | None:
    """The numbers of a tag of the directory of so many bytes into a note, of which offsets count
    from ``origin`` bytes before; None if it has none. packed: letters of ``struct`` for the
    numbers, if not by the type."""
    (count,) = struct.unpack_from(f"{order}H", note, directory)
    for at in range(directory + 2, directory + 2 + ENTRY * count, ENTRY):
        found, kind, length = struct.unpack_from(f"{order}HHI", note, at)
        if found != tag:
            continue
        if kind not in TYPES or not 0 < length <= MOST_NUMBERS:
            raise ValueError("a tag is no list of numbers")
        letters = TYPES[kind] * length
        size = struct.calcsize(f"{order}{letters}")
        if packed and struct.calcsize(f"{order}{packed}") > size:
            raise ValueError("a tag is shorter than what it holds")
        place = at + 8
        if size > 4:
            (offset,) = struct.unpack_from(f"{order}I", note, place)
            place = offset - origin
        if place < 0:
            raise ValueError("a tag lies before its note")
        values = struct.unpack_from(f"{order}{packed or letters}", note, place)
        return _ratios(values) if kind in RATIONAL else tuple(map(float, values))
    return None


def _ratios(values: tuple[int, ...]) -> Numbers:
    """The ratios of numerators, each followed by its denominator; NaN where that is 0."""
    pairs = zip(values[::2], values[1::2], strict=True)
    return tuple(over / under if under else math.nan for over, under in pairs)
