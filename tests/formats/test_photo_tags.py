"""EXIF and XMP that are written, as ExifTool, Pillow and our own priors read them."""

from __future__ import annotations

import json
import math
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from PIL.ExifTags import IFD, Base

from calibrations import one
from geocalib.errors import FormatError
from geocalib.formats import exif, realityscan, xmp
from geocalib.imaging.read import read_header
from geocalib.priors.exif import focal_reading
from peers import Note, note

needs_exiftool = pytest.mark.skipif(shutil.which("exiftool") is None, reason="no ExifTool here")

CHANGED = ("System:", "File:", "Composite:", "XMP-GPano:", "SourceFile", "XMP-x:")
"""What ExifTool says of the file, or of what we write."""


def exiftool(*words: object) -> dict[str, Any]:
    """What ExifTool reads in a file: the last word."""
    command = ["exiftool", "-n", "-j", "-G1", "-struct", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)[0]
    return found


def jpeg(folder: Path, **tags: str) -> Path:
    """A photo; tags are set by ExifTool."""
    path = folder / "photo.jpg"
    Image.effect_noise((640, 480), 50).convert("RGB").save(path)
    if tags:
        words = [f"-{name}={value}" for name, value in tags.items()]
        subprocess.run(["exiftool", "-q", "-overwrite_original", *words, path], check=True)
    return path


def scan(content: bytes) -> bytes:
    """The picture of a JPEG file, without what is said about it."""
    return content[content.rindex(b"\xff\xdb") :]


@needs_exiftool
@pytest.mark.parametrize("order", ["II", "MM"])
def test_exiftool_reads_the_copy_and_all_that_was_there(
    tmp_path: Path, order: str, record_property: Note
) -> None:
    thumbnail = tmp_path / "thumbnail.jpg"
    Image.new("RGB", (16, 12)).save(thumbnail)
    path = jpeg(
        tmp_path,
        ExifByteOrder=order,
        Make="Maker & Sons",
        Model="Model",
        UserComment="a comment",
        FocalLength="50",
        FocalLengthIn35mmFormat="99",
        GPSLatitude="47.5",
        GPSLatitudeRef="N",
    )
    title = ["-XMP-dc:Title=a title", "-XMP-GPano:PosePitchDegrees=77", "-Artist=somebody"]
    subprocess.run(
        ["exiftool", "-q", "-overwrite_original", *title, f"-ThumbnailImage<={thumbnail}", path],
        check=True,
    )
    before = path.read_bytes()
    calibration = one("radial", image=str(path))
    (copy,) = exif.write([calibration], tmp_path / "copies")
    assert copy == tmp_path / "copies" / "photo.jpg"
    assert path.read_bytes() == before
    assert scan(copy.read_bytes()) == scan(before)

    old, new = exiftool("-b", path), exiftool("-b", copy)
    assert not any(key.endswith(("Warning", "Error")) for key in new)
    ours = ("ExifIFD:FocalLengthIn35mmFormat", "ExifIFD:ExifImageWidth", "ExifIFD:ExifImageHeight")
    for key, value in old.items():
        if not key.startswith(CHANGED) and key not in ours:
            assert new[key] == value, key
    assert new["IFD1:ThumbnailImage"] == old["IFD1:ThumbnailImage"]
    # The engraved focal length stays, and the pixels per millimetre are of it.
    assert new["ExifIFD:FocalLength"] == 50
    assert new["ExifIFD:FocalPlaneXResolution"] * 50 == pytest.approx(500, rel=1e-6)
    assert new["ExifIFD:FocalLengthIn35mmFormat"] == round(500 / 800 * math.hypot(36, 24))
    assert new["ExifIFD:CameraElevationAngle"] == pytest.approx(-10, abs=1e-6)
    assert new["XMP-GPano:PosePitchDegrees"] == pytest.approx(-10, abs=1e-6)
    assert new["XMP-GPano:PoseRollDegrees"] == pytest.approx(5, abs=1e-6)
    assert new["XMP-dc:Title"] == "a title"
    focal = new["ExifIFD:FocalPlaneXResolution"] * new["ExifIFD:FocalLength"]
    note(record_property, "exif", "ExifTool", abs(focal - 500))


@needs_exiftool
def test_exiftool_finds_nothing_wrong(tmp_path: Path) -> None:
    calibration = one("simple_radial", image=str(jpeg(tmp_path)))
    required = "Missing required"
    for file in (*exif.write([calibration], tmp_path / "o"), *xmp.write([calibration], tmp_path)):
        words = ["exiftool", "-validate", "-warning", "-error", "-a", "-s3", file]
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        lines = [line for line in said.splitlines()[1:] if required not in line]
        assert lines == [], said


@needs_exiftool
def test_exiftool_reads_the_side_car(tmp_path: Path, record_property: Note) -> None:
    path = jpeg(tmp_path)
    (file,) = xmp.write([one("kannala_brandt", image=str(path))], tmp_path)
    assert file == tmp_path / "photo.xmp"
    found = exiftool(file)
    assert found["XMP-exif:FocalLengthIn35mmFormat"] == 11
    assert found["XMP-exif:FocalLength"] == pytest.approx(200 / 800 * math.hypot(36, 24), rel=1e-6)
    focal = found["XMP-exif:FocalPlaneXResolution"] * found["XMP-exif:FocalLength"]
    assert focal == pytest.approx(200, rel=1e-6)
    note(record_property, "xmp", "ExifTool", abs(focal - 200))
    assert found["XMP-exifEX:CameraElevationAngle"] == pytest.approx(-10, abs=1e-6)
    assert found["XMP-GPano:PoseRollDegrees"] == pytest.approx(5, abs=1e-6)


@pytest.mark.parametrize("orientation", [1, 6])
def test_our_own_prior_reads_the_focal_length_to_the_last_digit(
    tmp_path: Path, orientation: int
) -> None:
    path = tmp_path / "photo.jpg"
    tags = Image.Exif()
    tags[Base.Orientation] = orientation
    Image.new("RGB", (640, 480)).save(path, exif=tags)
    size = (640, 480) if orientation == 1 else (480, 640)
    calibration = one("pinhole", image=str(path), size=size, f=511.3, orientation=orientation)
    (copy,) = exif.write([calibration], tmp_path / "copy.jpg")
    seen, found = read_header(str(copy))
    reading, notes = focal_reading(found, seen)
    assert not notes
    assert reading is not None
    assert reading.focal_px == pytest.approx(511.3, rel=1e-6)
    with Image.open(copy) as opened:
        assert opened.getexif()[Base.Orientation] == orientation
        assert opened.getexif().get_ifd(IFD.Exif)[0x9405] == pytest.approx(-10, abs=1e-6)


def test_a_known_sensor_gives_the_true_focal_length(tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    tags = Image.Exif()
    tags[Base.Model] = "NIKON D90"
    Image.new("RGB", (640, 480)).save(path, exif=tags)
    (copy,) = exif.write([one("pinhole", image=str(path))], tmp_path / "o")
    # 640 pixels and 480 of a sensor of 23.6 x 15.8 mm: its height is cut.
    _, found = read_header(str(copy))
    assert float(found[Base.FocalLength]) == pytest.approx(500 / (480 / 15.8), rel=1e-6)


def test_the_photo_itself_is_never_written(tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    Image.new("RGB", (640, 480)).save(path)
    before = path.read_bytes()
    for place in (path, tmp_path, tmp_path / "link"):
        if place.name == "link":
            place.symlink_to(tmp_path)
        with pytest.raises(FormatError, match=r"photo\.jpg stays as it is; name another folder"):
            exif.write([one(image=str(path))], place)
    assert path.read_bytes() == before


def damaged_exif() -> bytes:
    """Of a table that lies beyond the end."""
    return b"Exif\0\0" + struct.pack("<2sHI", b"II", 42, 9999)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"\x89PNG", "it is no JPEG file; --format xmp writes a side-car"),
        (b"\xff\xd8\xff", "data are damaged; --format xmp writes a side-car"),
        (b"\xff\xd8\x00\x00\x00\x00\x00", "it is a damaged JPEG file"),
        (
            b"\xff\xd8\xff\xe1" + struct.pack(">H", 2 + len(damaged_exif())) + damaged_exif(),
            "EXIF or XMP data are damaged; --format xmp",
        ),
        (
            b"\xff\xd8\xff\xe1\x00\x25" + exif.XMP_HEAD + b"<rdf/>" + b"\xff\xda\x00\x02",
            "its XMP is written in another way; --format xmp",
        ),
    ],
)
def test_files_that_cannot_be_tagged(head: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=rf"gone\.jpg: .*{message}"):
        exif.tagged(one(image="gone.jpg"), head)


def test_tags_that_leave_no_room(tmp_path: Path) -> None:
    body = exif.EXIF_HEAD + struct.pack("<2sHIHI", b"II", 42, 8, 0, 0)
    body += bytes(exif.LARGEST_SEGMENT - len(body))
    content = b"\xff\xd8\xff\xe1" + struct.pack(">H", len(body) + 2) + body + b"\xff\xda\x00\x02"
    with pytest.raises(FormatError, match="no room for more; --format xmp writes a side-car"):
        exif.tagged(one(image="gone.jpg"), content)


def test_realityscan(tmp_path: Path) -> None:
    calibration = one("radial", c=(330.0, 236.0))
    (file,) = realityscan.write([calibration], tmp_path)
    assert file == tmp_path / "photo.xmp"
    text = file.read_text()
    told = dict(
        line.strip().removesuffix("/>").split("=", 1)
        for line in text.splitlines()
        if line.strip().startswith("xcr:")
    )
    values = {name: value.strip('"') for name, value in told.items()}
    side = 640
    assert float(values["xcr:FocalLength35mm"]) / 36 * side == pytest.approx(500)
    assert float(values["xcr:PrincipalPointU"]) * side + 320 == pytest.approx(330)
    assert float(values["xcr:PrincipalPointV"]) * side + 240 == pytest.approx(236)
    numbers = np.array(values["xcr:DistortionCoeficients"].split(), float)
    np.testing.assert_allclose(numbers, [*calibration.distortion, 0, 0, 0, 0])
    assert values["xcr:DistortionModel"] == "brown3"


@needs_exiftool
def test_the_side_car_of_realityscan_is_xmp(tmp_path: Path, record_property: Note) -> None:
    (file,) = realityscan.write([one("pinhole")], tmp_path)
    found = exiftool(file)
    focal = found["XMP-xcr:FocalLength35mm"] * 640 / 36
    assert focal == pytest.approx(500)
    note(record_property, "realityscan", "ExifTool", abs(focal - 500))


@pytest.mark.parametrize("camera", [{"model": "kannala_brandt"}, {"aspect": 1.1}])
def test_what_realityscan_cannot_hold(tmp_path: Path, camera: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match=r"photo\.jpg: RealityScan .*geocalib undistort"):
        realityscan.write([one(**camera)], tmp_path)
    assert list(tmp_path.iterdir()) == []
