"""XMP side-cars: focal length, elevation of the camera and pose of a photo.

``photo.xmp`` beside ``photo.jpg`` is where programs look for it; the photo stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from xml.sax.saxutils import quoteattr

from geocalib.errors import FormatError
from geocalib.formats.outputs import write_one_each
from geocalib.formats.photo_tags import PhotoTags, photo_tags
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.record import Frame

SUFFIX = ".xmp"
FRAME: Frame = "upright"

NAMESPACES = {
    "exif": "http://ns.adobe.com/exif/1.0/",
    "exifEX": "http://cipa.jp/exif/1.0/",
    "GPano": "http://ns.google.com/photos/1.0/panorama/",
    "xcr": "http://www.capturingreality.com/ns/xcr/1.1#",
}
"""XML namespaces by their usual prefixes."""

END = "</rdf:RDF>"

MILLIMETRES = 4
"""EXIF's number of the unit of resolutions."""


def write(outcomes: Iterable[Outcome], path: str | Path, frame: Frame = FRAME) -> list[Path]:
    """Write a file per image. See ``geocalib.formats`` for the path and what is returned."""
    return write_one_each(outcomes, path, dumps, SUFFIX, frame)


def dumps(calibration: Calibration, frame: Frame = FRAME) -> str:
    """The content of a file."""
    return packet(properties(photo_tags(calibration.in_frame(frame))))


def properties(tags: PhotoTags) -> dict[str, str]:
    """By their names in XMP. The pose is the one of panoramas, which this is none of."""
    across, down = tags.pixels_per_mm
    return {
        "exif:FocalLength": ratio(tags.focal_mm),
        "exif:FocalLengthIn35mmFilm": str(tags.equivalent_mm),
        "exif:FocalPlaneXResolution": ratio(across),
        "exif:FocalPlaneYResolution": ratio(down),
        "exif:FocalPlaneResolutionUnit": str(MILLIMETRES),
        "exif:PixelXDimension": str(tags.size[0]),
        "exif:PixelYDimension": str(tags.size[1]),
        "exifEX:CameraElevationAngle": ratio(tags.elevation_deg),
        "GPano:UsePanoramaViewer": "False",
        "GPano:PosePitchDegrees": f"{tags.elevation_deg:.6f}",
        "GPano:PoseRollDegrees": f"{tags.roll_deg:.6f}",
    }


def fraction(value: float) -> Fraction:
    """The nearest one whose parts have 31 bits."""
    return Fraction(value).limit_denominator(1_000_000)


def ratio(value: float) -> str:
    exact = fraction(value)
    return f"{exact.numerator}/{exact.denominator}"


def packet(values: Mapping[str, str]) -> str:
    """A packet of its own."""
    return (
        '<x:xmpmeta xmlns:x="adobe:ns:meta/">\n'
        '  <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\n'
        f"{_description(values, '')}"
        f"  {END}\n"
        "</x:xmpmeta>\n"
    )


def without(old: str, names: Iterable[str]) -> str:
    """A packet without the values under these names, which are regular expressions."""
    for name in names:
        old = re.sub(rf"<({name})\b[^>]*?(?:/>|>.*?</\1>)", "", old, flags=re.DOTALL)
        old = re.sub(rf"\s(?:{name})\s*=\s*(?:\"[^\"]*\"|'[^']*')", "", old)
    return old


def merged(old: str, values: Mapping[str, str]) -> str:
    """A packet with the values in it, in place of those it had under these names."""
    old = without(old, map(re.escape, values))
    head, end, tail = old.rpartition(END)
    if not end:
        raise FormatError("its XMP is written in another way")
    about = re.search(r"rdf:about\s*=\s*[\"']([^\"'<]*)", head)
    return f"{head}\n{_description(values, about[1] if about else '')}{end}{tail}"


def _description(values: Mapping[str, str], about: str) -> str:
    prefixes = dict.fromkeys(name.partition(":")[0] for name in values)
    said = {f"xmlns:{prefix}": NAMESPACES[prefix] for prefix in prefixes} | dict(values)
    lines = "".join(f"\n      {name}={quoteattr(value)}" for name, value in said.items())
    return f'    <rdf:Description rdf:about="{about}"{lines}/>\n'
