"""Copies of JPEG files with the answer in EXIF and XMP: focal length and rotation of the camera.
The picture and all else in the file stay as they are, byte by byte.

EXIF is a TIFF file within the JPEG file, full of offsets, some of them in undocumented notes
of makers. Hence nothing in it is moved: changed tables are appended to it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from PIL.ExifTags import IFD, Base

from geocalib.errors import FormatError
from geocalib.files import write_bytes
from geocalib.formats import xmp
from geocalib.formats.outputs import files_of_each
from geocalib.formats.photo_tags import PhotoTags, photo_tags
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.record import Frame

SUFFIX = ""
"""Copies are called as their photos are."""
FRAME: Frame = "upright"

CAMERA_ELEVATION_ANGLE = 0x9405

EXIF_HEAD, XMP_HEAD = b"Exif\0\0", b"http://ns.adobe.com/xap/1.0/\0"

PACKET = '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>\n{}<?xpacket end="w"?>'
"""What programs find packets of XMP by within a file."""

START, APP0, APP1, SCAN = 0xD8, 0xE0, 0xE1, 0xDA
"""Markers of JPEG."""

LARGEST_SEGMENT = 65533
"""Bytes after the two that tell the length."""

SHORT, LONG, RATIONAL, SIGNED = 3, 4, 5, 10
"""TIFF's numbers of its types."""

Value = tuple[int, float]
"""A type and a number of it."""


def write(outcomes: Iterable[Outcome], path: str | Path, frame: Frame = FRAME) -> list[Path]:
    """Write a copy of each image's file, never to the file itself. See ``geocalib.formats`` for
    the path and what is returned."""
    contents = {}
    for file, calibration in files_of_each(outcomes, path, SUFFIX, frame).items():
        photo = calibration.image
        if photo is None or not os.path.exists(photo):
            raise FormatError(f"{photo or 'the photo'} is not there; --format xmp does without it")
        if os.path.realpath(photo) == os.path.realpath(file):
            raise FormatError(f"{photo} stays as it is; name another folder for the copy")
        contents[file] = tagged(calibration, Path(photo).read_bytes())
    for file, content in contents.items():
        write_bytes(file, content)
    return list(contents)


def tagged(calibration: Calibration, content: bytes) -> bytes:
    """The content of a JPEG file with the tags of a calibration."""
    tags = photo_tags(calibration)
    try:
        segments, rest = _segments(content)
        exif = _first(segments, EXIF_HEAD)
        old = exif.body[len(EXIF_HEAD) :] if exif else struct.pack("<2sHIHI", b"II", 42, 8, 0, 0)
        packets = [Segment(APP1, EXIF_HEAD + _with_tags(old, _values(tags)))]
        said = _first(segments, XMP_HEAD)
        values = xmp.properties(tags)
        text = (
            xmp.merged(said.body[len(XMP_HEAD) :].decode("utf-8"), values)
            if said
            else PACKET.format(xmp.packet(values))
        )
        packets.append(Segment(APP1, XMP_HEAD + text.encode()))
        kept = [segment for segment in segments if segment not in (exif, said)]
        # JFIF's head comes first where there is one.
        first = 1 if kept and kept[0].marker == APP0 else 0
        every = [*kept[:first], *packets, *kept[first:]]
        return b"\xff\xd8" + b"".join(segment.bytes for segment in every) + rest
    except FormatError as error:
        raise FormatError(f"{calibration.image}: {error}; --format xmp writes a side-car") from None
    except (struct.error, IndexError, UnicodeDecodeError):
        raise FormatError(
            f"{calibration.image}: its EXIF or XMP data are damaged; --format xmp writes a side-car"
        ) from None


class Segment(NamedTuple):
    """A segment of a JPEG file, before its picture."""

    marker: int
    body: bytes

    @property
    def bytes(self) -> bytes:
        if len(self.body) > LARGEST_SEGMENT:
            raise FormatError("its tags leave no room for more")
        return struct.pack(">BBH", 0xFF, self.marker, len(self.body) + 2) + self.body


def _segments(content: bytes) -> tuple[list[Segment], bytes]:
    """The segments, and all from the scan on."""
    if content[:2] != bytes([0xFF, START]):
        raise FormatError("it is no JPEG file")
    found: list[Segment] = []
    at = 2
    while True:
        while content[at] == 0xFF and content[at + 1] == 0xFF:
            at += 1  # Fill bytes.
        mark, marker, length = struct.unpack_from(">BBH", content, at)
        if mark != 0xFF:
            raise FormatError("it is a damaged JPEG file")
        if marker == SCAN:
            return found, content[at:]
        found.append(Segment(marker, content[at + 4 : at + 2 + length]))
        at += 2 + length


def _first(segments: Iterable[Segment], head: bytes) -> Segment | None:
    return next((s for s in segments if s.marker == APP1 and s.body.startswith(head)), None)


def _values(tags: PhotoTags) -> dict[int, Value]:
    across, down = tags.pixels_per_mm
    return {
        Base.FocalLength: (RATIONAL, tags.focal_mm),
        CAMERA_ELEVATION_ANGLE: (SIGNED, tags.elevation_deg),
        Base.ExifImageWidth: (LONG, tags.size[0]),
        Base.ExifImageHeight: (LONG, tags.size[1]),
        Base.FocalPlaneXResolution: (RATIONAL, across),
        Base.FocalPlaneYResolution: (RATIONAL, down),
        Base.FocalPlaneResolutionUnit: (SHORT, xmp.MILLIMETRES),
        Base.FocalLengthIn35mmFilm: (SHORT, tags.equivalent_mm),
    }


def _with_tags(tiff: bytes, values: Mapping[int, Value]) -> bytes:
    """A TIFF file with these values in its table of EXIF, which is appended to it."""
    order: Literal["<", ">"] = "<" if tiff[:2] == b"II" else ">"
    magic, main = struct.unpack_from(f"{order}HI", tiff, 2)
    if magic != 42 or tiff[:2] not in (b"II", b"MM"):
        raise FormatError("its EXIF data are damaged")
    tables, _ = _table(tiff, main, order)
    pointer = tables.get(IFD.Exif)
    entries: dict[int, bytes] = {}
    if pointer is not None:
        entries, _ = _table(tiff, struct.unpack(f"{order}I", pointer[8:])[0], order)
    grown = bytearray(tiff + b"\0" * (len(tiff) % 2))
    for tag, (kind, number) in values.items():
        if kind in (RATIONAL, SIGNED):
            exact = xmp.fraction(number)
            packed = struct.pack(f"{order}I", len(grown))
            sign = "i" if kind == SIGNED else "I"
            grown += struct.pack(f"{order}2{sign}", exact.numerator, exact.denominator)
        else:
            form = f"{order}H2x" if kind == SHORT else f"{order}I"
            packed = struct.pack(form, int(number))
        entries[tag] = struct.pack(f"{order}HHI", tag, kind, 1) + packed
    place = _append(grown, entries, 0, order)
    if pointer is not None:
        struct.pack_into(f"{order}I", grown, tiff.index(pointer, main) + 8, place)
    else:
        _, following = _table(tiff, main, order)
        tables[IFD.Exif] = struct.pack(f"{order}HHII", IFD.Exif, LONG, 1, place)
        struct.pack_into(f"{order}I", grown, 4, _append(grown, tables, following, order))
    return bytes(grown)


def _table(tiff: bytes, at: int, order: str) -> tuple[dict[int, bytes], int]:
    """The entries of a table, 12 bytes each, by their tags, and where the next table is."""
    (count,) = struct.unpack_from(f"{order}H", tiff, at)
    rows = [tiff[at + 2 + 12 * i : at + 14 + 12 * i] for i in range(count)]
    (following,) = struct.unpack_from(f"{order}I", tiff, at + 2 + 12 * count)
    return {struct.unpack(f"{order}H", row[:2])[0]: row for row in rows}, following


def _append(grown: bytearray, entries: Mapping[int, bytes], following: int, order: str) -> int:
    """Append a table; where it is."""
    place = len(grown)
    grown += struct.pack(f"{order}H", len(entries))
    grown += b"".join(entries[tag] for tag in sorted(entries))
    grown += struct.pack(f"{order}I", following)
    return place
