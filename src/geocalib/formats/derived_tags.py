"""The tags of a picture that was made of a photo: upright, rectified, undistorted.

EXIF, XMP and the colour profile of the photo are kept. What the new picture makes untrue is not:
the orientation becomes 1, size and focal length are those of the new camera, and what tells how the
camera was held, or where in the photo something is, is left out: notes of the maker, angles of
gimbals and panoramas, the subject's area, the small copy of the photo.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from os import PathLike
from typing import Any

from PIL import Image
from PIL.ExifTags import IFD, Base
from PIL.PngImagePlugin import PngInfo
from PIL.TiffImagePlugin import IFDRational

from geocalib.cameras.camera import Camera
from geocalib.formats import xmp
from geocalib.formats.photo_tags import PhotoTags, tags_of
from geocalib.imaging.metadata import read_tags
from geocalib.imaging.read import quiet

DESCRIPTIVE = frozenset(
    {
        *(Base.ImageDescription, Base.Make, Base.Model, Base.Software, Base.DateTime),
        *(Base.Artist, Base.HostComputer, Base.Copyright, Base.Rating, Base.RatingPercent),
        *(Base.XResolution, Base.YResolution, Base.ResolutionUnit),
        *(Base.XPTitle, Base.XPComment, Base.XPAuthor, Base.XPKeywords, Base.XPSubject),
    }
)
"""Tags of the first table that say nothing of how pixels are stored, as a TIFF file's others do."""

SUBJECT_AREA = 0x9214
UNTRUE = frozenset({Base.MakerNote, Base.CameraElevationAngle, SUBJECT_AREA, Base.SubjectLocation})
"""Tags of EXIF's own table that hold for the photo alone."""

UNTRUE_XMP = (
    *(r"tiff:(?:Orientation|ImageWidth|ImageLength)", r"exif:Pixel[XY]Dimension"),
    *(r"exif:FocalLengthIn35mmFilm", r"exif:FocalPlane\w+", r"exif:Subject(?:Area|Location)"),
    *(r"exifEX:CameraElevationAngle", r"GPano:\w+", r"drone-dji:(?:Gimbal|Flight)\w+"),
    *(r"Camera:(?:Pitch|Roll|Yaw)", r"crs:(?:HasCrop|Crop\w+)", r"xmp:Thumbnails"),
)
"""Names of XMP that hold for the photo alone; EXIF says the sizes anew."""

LARGEST = 65_500
"""Bytes of EXIF, or of XMP, for which JPEG has room."""

XMP_OF_TIFF = 700
XMP_OF_PNG = "XML:com.adobe.xmp"


def save_options(photo: str | PathLike[str] | bytes, camera: Camera, format: str) -> dict[str, Any]:
    """What Pillow's ``save`` takes for a picture with the tags of its photo.

    photo: a file or its content; camera: one, of the picture; format: as Pillow calls it, JPEG,
    PNG, TIFF or WEBP.
    """
    with quiet(), Image.open(BytesIO(photo) if isinstance(photo, bytes) else photo) as image:
        known = read_tags(image)[1]
        profile, packet = image.info.get("icc_profile"), _packet(image.info.get("xmp"))
        exif = _exif(image, tags_of(known, camera)) if known else {}
    options: dict[str, Any] = {"icc_profile": profile}
    if format == "PNG":
        options["pnginfo"] = chunks = PngInfo()
        if packet:
            chunks.add_itxt(XMP_OF_PNG, packet.decode())
    elif format == "TIFF":
        exif |= {XMP_OF_TIFF: packet} if packet else {}
    elif packet and len(packet) <= LARGEST:
        options["xmp"] = packet
    options["exif"] = _written(exif)
    return {name: value for name, value in options.items() if value is not None}


def _exif(photo: Image.Image, tags: PhotoTags) -> dict[int, Any]:
    """The photo's own, as far as they hold, and those of the new picture; tables are values."""
    old = photo.getexif()
    new: dict[int, Any] = {tag: value for tag, value in old.items() if tag in DESCRIPTIVE}
    own = {tag: value for tag, value in old.get_ifd(IFD.Exif).items() if tag not in UNTRUE}
    tables = {
        IFD.Exif: own | _sizes(tags, Base.FocalLength in own),
        IFD.GPSInfo: old.get_ifd(IFD.GPSInfo),
    }
    return new | {Base.Orientation: 1} | {tag: table for tag, table in tables.items() if table}


def _written(tags: Mapping[int, Any]) -> bytes | None:
    """None where there are none, or they are damaged, or too large for JPEG."""
    exif = Image.Exif()
    exif.update(tags)
    try:
        content = exif.tobytes()
    except Exception:  # As many kinds as there are bytes that may be damaged, as in ``read_tags``.
        return None
    return content if tags and len(content) <= LARGEST else None


def _sizes(tags: PhotoTags, engraved: bool) -> dict[int, Any]:
    """By their numbers in EXIF. engraved: whether the photo tells its focal length, to which the
    resolution of the sensor belongs."""
    across, down = (IFDRational(xmp.fraction(value)) for value in tags.pixels_per_mm)
    sizes: dict[int, Any] = {
        Base.ExifImageWidth: tags.size[0],
        Base.ExifImageHeight: tags.size[1],
        Base.FocalLengthIn35mmFilm: tags.equivalent_mm,
    }
    if engraved:
        sizes |= {
            Base.FocalPlaneXResolution: across,
            Base.FocalPlaneYResolution: down,
            Base.FocalPlaneResolutionUnit: xmp.MILLIMETRES,
        }
    return sizes


def _packet(old: bytes | str | None) -> bytes | None:
    """A packet of XMP as far as it holds; none where it is damaged."""
    if not old:
        return None
    try:
        text = old if isinstance(old, str) else old.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return xmp.without(text, UNTRUE_XMP).encode()
