"""Photos with makers' notes of how the camera was held, written by hand as the makers do."""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from PIL import Image
from PIL.ExifTags import IFD, Base

Entry = tuple[int, bytes, int]
"""Of a TIFF directory: type, value, count."""
ONE_MILLION = 10**6


def directory(entries: Mapping[int, Entry], at: int, order: str) -> bytes:
    """A TIFF directory that begins so many bytes after the point that its offsets count from."""
    head, tail = struct.pack(f"{order}H", len(entries)), b""
    end = at + 2 + 12 * len(entries) + 4
    for tag, (kind, value, count) in sorted(entries.items()):
        place = value.ljust(4, b"\0")
        if len(value) > 4:
            place = struct.pack(f"{order}I", end + len(tail))
            tail += value
        head += struct.pack(f"{order}HHI", tag, kind, count) + place
    return head + bytes(4) + tail


def apple(acceleration: Sequence[float] | Sequence[tuple[int, int]]) -> bytes:
    """As an iPhone: three ratios with signs, in g."""
    ratios = [
        value if isinstance(value, tuple) else (round(value * ONE_MILLION), ONE_MILLION)
        for value in acceleration
    ]
    value = b"".join(struct.pack(">ii", *ratio) for ratio in ratios)
    entries = {0x0001: (9, struct.pack(">i", 14), 1), 0x0008: (10, value, len(ratios))}
    return b"Apple iOS\0\0\x01MM" + directory(entries, 14, ">")


def panasonic(roll: int, pitch: int) -> bytes:
    """Tenths of degrees with signs, written as if they had none."""
    numbers = {0x0090: roll, 0x0091: pitch}
    entries = {tag: (3, struct.pack("<h", value), 1) for tag, value in numbers.items()}
    return b"Panasonic\0\0\0" + directory(entries, 12, "<")


def olympus(roll: int, pitch: int, on: int = 1, signature: bytes = b"OLYMPUS\0II\x03\0") -> bytes:
    """Tenths of degrees, each beside whether the gauge is on, in a directory of their own."""
    at = len(signature)
    inner = {
        0x0903: (8, struct.pack("<hh", roll, on), 2),
        0x0904: (8, struct.pack("<hh", pitch, on), 2),
    }
    begin = at + 2 + 12 + 4
    outer = {0x2020: (13, struct.pack("<I", begin), 1)}
    return signature + directory(outer, at, "<") + directory(inner, begin, "<")


def canon(roll: int, pitch: int, begin: int = 0x1234, order: str = "<") -> bytes:
    """Tenths of degrees up to 360 among other numbers, as of a note that began so many bytes into
    the EXIF data: its last bytes tell where."""
    level = struct.pack(f"{order}13i", 52, 0, 0, 0, roll, pitch, *[0] * 7)
    entries = {
        0x0006: (2, b"Canon EOS R5\0", 13),
        0x0007: (2, b"1.0", 3),
        0x4059: (4, level, 13),
    }
    mark = {"<": b"II*\0", ">": b"MM\0*"}[order]
    return directory(entries, begin, order) + mark + struct.pack(f"{order}I", begin)


def pentax(level: bytes, signature: bytes = b"PENTAX \0MM", begin: int = 0) -> bytes:
    """Numbers of a level gauge, as of a note that began so many bytes into what offsets count
    from."""
    entries = {0x0000: (1, bytes(4), 4), 0x022B: (7, level.ljust(8, b"\0"), 8)}
    return signature + directory(entries, begin + len(signature), ">")


def by_phone(picture: Image.Image, roll_deg: float, pitch_deg: float, millimetres: int) -> bytes:
    """A lying picture as an iPhone writes it, with the angles that it felt and a 35 mm
    equivalent."""
    roll, pitch = math.radians(roll_deg), math.radians(pitch_deg)
    felt = (-math.cos(roll) * math.cos(pitch), -math.sin(roll) * math.cos(pitch), math.sin(pitch))
    return photo(apple(felt), tags={Base.FocalLengthIn35mmFilm: millimetres}, picture=picture)


OM_SYSTEM = b"OM SYSTEM\0\0\0II\x04\0"


def photo(
    note: bytes,
    orientation: int = 1,
    size: tuple[int, int] = (64, 48),
    tags: Mapping[Any, Any] | None = None,
    kind: str = "JPEG",
    picture: Image.Image | None = None,
) -> bytes:
    """A picture, or a grey one of stored (width, height), with a maker's note and further EXIF
    tags; those below 0x8000 are of the first directory."""
    exif = Image.Exif()
    exif[Base.Orientation] = orientation
    exif[Base.Make] = {b"A": "Apple", b"P": "Panasonic", b"O": "OLYMPUS"}.get(note[:1], "X")
    inner = exif.get_ifd(IFD.Exif)
    inner[Base.MakerNote] = note
    for tag, value in (tags or {}).items():
        (exif if tag < 0x8000 else inner)[tag] = value
    file = io.BytesIO()
    picture = picture or Image.new("RGB", size, "gray")
    if kind == "HEIF":
        import pillow_heif

        pillow_heif.from_pillow(picture).save(file, quality=60, exif=exif.tobytes())
    else:
        picture.save(file, kind, exif=exif)
    return file.getvalue()
