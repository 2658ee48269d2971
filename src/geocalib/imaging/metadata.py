"""What a file holds beside its pixels: which way up it is, and what tells of its camera."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from PIL import Image
from PIL.ExifTags import IFD, Base

from geocalib.imaging.makernotes import Numbers, held
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
(``geocalib.priors.held``), and what has edited the picture since."""


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
    """What the maker noted of how the camera was held (``imaging.makernotes``)."""
    taken: int = 1
    """The orientation in which the sensor took the picture, 1 to 8 as in EXIF. It is not that of
    the stored picture where a decoder has turned that upright, as those of HEIC do."""
    damage: tuple[str, ...] = ()
    """Notes on what of it could not be read."""

    @classmethod
    def create(cls, orientation: int, tags: Mapping[int, Any], info: Mapping[Any, Any]) -> Metadata:
        """Of all tags of a file, and of what Pillow tells of its image."""
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
