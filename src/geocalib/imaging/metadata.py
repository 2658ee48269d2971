"""What a file holds beside its pixels: which way up it is, and what tells of its camera."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from PIL import Image
from PIL.ExifTags import IFD, Base

from geocalib.records import dataclass

LENS_TAGS = frozenset(
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
    }
)
"""What tells which lens it is, and how long (``geocalib.priors.exif``)."""


@dataclass(frozen=True)
class Metadata:
    """What a file holds beside its pixels, as far as it tells of the camera."""

    orientation: int = 1
    """By EXIF, 1 to 8: how the stored picture is turned to be upright."""
    tags: Mapping[int, Any] = field(default_factory=dict)
    """EXIF tags about the lens."""
    xmp: bytes | None = None
    """The XMP packet."""

    @classmethod
    def create(cls, orientation: int, tags: Mapping[int, Any], xmp: object) -> Metadata:
        """Of all tags of a file, and of what an image has as its packet."""
        packet = xmp.encode() if isinstance(xmp, str) else xmp
        return cls(
            orientation,
            {tag: value for tag, value in tags.items() if tag in LENS_TAGS},
            packet if isinstance(packet, bytes) else None,
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
