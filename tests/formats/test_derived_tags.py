"""The tags of pictures that were made of photos, by ExifTool and by our own reader."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageCms

from calibrations import one
from fake_calibrator import picture
from geocalib.formats.derived_tags import save_options
from geocalib.imaging.read import read_header, read_photo
from geocalib.priors.exif import focal_reading
from geocalib.server.stages import rendered

PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
XMP = b"""<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF
 xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about=""
 xmlns:tiff="http://ns.adobe.com/tiff/1.0/" xmlns:xmp="http://ns.adobe.com/xap/1.0/"
 xmlns:GPano="http://ns.google.com/photos/1.0/panorama/"
 xmlns:drone-dji="http://www.dji.com/drone-dji/1.0/" tiff:Orientation="6" xmp:Rating="4"
 GPano:PosePitchDegrees="12" drone-dji:GimbalPitchDegree="-30.0"
 drone-dji:GimbalRollDegree="+1.0"/></rdf:RDF></x:xmpmeta>"""
FORMATS = {"JPEG": "jpg", "PNG": "png", "TIFF": "tif", "WEBP": "webp"}
KEPT = {
    "EXIF:Make": "Apple",
    "EXIF:Model": "iPhone 6",
    "EXIF:Copyright": "somebody",
    "EXIF:ExposureTime": 0.004,
    "EXIF:ISO": 32,
    "EXIF:FocalLength": 4.15,
    "EXIF:GPSLatitude": 50.5,
    "EXIF:DateTimeOriginal": "2026:01:02 03:04:05",
    "EXIF:UserComment": "hello",
    "XMP:Rating": 4,
    "ICC_Profile:ProfileDescription": "sRGB built-in",
}
LEFT_OUT = (
    *("MakerNotes", "EXIF:MakerNote", "EXIF:CameraElevationAngle", "EXIF:SubjectArea"),
    *("EXIF:ThumbnailImage", "XMP:Orientation", "XMP:PosePitchDegrees", "XMP:GimbalPitchDegree"),
)


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """A photo of 640x480 as it is seen, stored on its side."""
    exif = Image.Exif()
    exif.update({0x010F: "Apple", 0x0110: "iPhone 6", 0x0112: 6, 0x8298: "somebody"})
    exif[0x8769] = {
        0x829A: 1 / 250,
        0x8827: 32,
        0x920A: 4.15,
        0xA405: 29,
        0x9003: "2026:01:02 03:04:05",
        0xA002: 480,
        0xA003: 640,
        0x9286: b"ASCII\0\0\0hello",
        0x9214: (100, 100, 20, 20),
        0x927C: b"Apple iOS\0\0\1MM\0\0",
        0x9405: 3.5,
    }
    exif[0x8825] = {1: "N", 2: (50.0, 30.0, 0.0)}
    path = tmp_path / "photo.jpg"
    picture(480, 640).save(path, exif=exif, xmp=XMP, icc_profile=PROFILE)
    return path


def told(path: Path) -> dict[str, Any]:
    """What ExifTool reads of a file."""
    program = shutil.which("exiftool")
    if program is None:
        pytest.skip("there is no exiftool; apt-get install libimage-exiftool-perl")
    words = [program, "-json", "-G", "-n", str(path)]
    (tags,) = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    return dict(tags)


def opened(path: Path) -> Image.Image:
    return Image.open(io.BytesIO(path.read_bytes()))


def made(
    photo: Path, format: str, kind: str = "rectify", size: tuple[int, int] = (640, 480)
) -> tuple[Path, Any]:
    """A file of the picture, and its camera. size: of the photo, as it is seen."""
    centre = (size[0] / 2, size[1] / 2)
    warped = getattr(one("pinhole", size=size, c=centre), kind)(photo)
    path = photo.with_name(f"made.{FORMATS[format]}")
    warped.image.save(path, format, **save_options(photo, warped.camera, format))
    return path, warped.camera


def test_the_photo_has_what_is_to_be_left_out(photo: Path) -> None:
    before = told(photo)
    assert before["EXIF:Orientation"] == 6
    assert sum(name in before for name in LEFT_OUT) >= 4


@pytest.mark.parametrize("format", FORMATS)
def test_exiftool_reads_what_was_kept_and_what_is_new(photo: Path, format: str) -> None:
    path, camera = made(photo, format)
    after = told(path)
    assert {name: after.get(name) for name in KEPT} == KEPT
    assert not [name for name in after if name in LEFT_OUT or name.startswith("MakerNotes")]
    width, height = opened(path).size
    assert after["EXIF:Orientation"] == 1
    assert (after["EXIF:ExifImageWidth"], after["EXIF:ExifImageHeight"]) == (width, height)
    fy = camera.focal[0, 1].item()
    assert after["EXIF:FocalLength"] * after["EXIF:FocalPlaneYResolution"] == pytest.approx(fy)
    assert after.get("ExifTool:Warning") is None


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("kind", ["upright", "rectify", "undistort"])
def test_our_reader_finds_the_camera_of_the_new_picture(
    photo: Path, format: str, kind: str
) -> None:
    path, camera = made(photo, format, kind)
    size, tags = read_header(path)
    reading, notes = focal_reading(tags, size)
    assert reading is not None, notes
    assert reading.focal_px == pytest.approx(camera.focal[0, 1].item(), rel=0.02)
    again = read_photo(path, short_side=None)
    assert again.metadata.orientation == 1
    assert not again.metadata.held


def test_a_picture_of_a_photo_that_says_nothing_says_nothing(tmp_path: Path) -> None:
    picture(640, 480).save(tmp_path / "plain.png")
    path, _ = made(tmp_path / "plain.png", "JPEG")
    assert not opened(path).getexif()
    assert "icc_profile" not in opened(path).info


def test_damaged_tags_are_left_out_and_the_picture_is_written(photo: Path) -> None:
    content = bytearray(photo.read_bytes())
    start = content.index(b"Exif\0\0") + 14
    content[start : start + 400] = np.random.default_rng(0).bytes(400)
    photo.write_bytes(content)
    # Nobody knows any more that it lies on its side.
    path, _ = made(photo, "JPEG", size=(480, 640))
    assert opened(path).size[0] > 0


def test_pictures_of_the_server_have_the_tags_too(photo: Path) -> None:
    content = rendered(photo.read_bytes(), one("pinhole"), "upright", "keep", "jpeg")
    image = Image.open(io.BytesIO(content))
    assert image.getexif()[0x0110] == "iPhone 6"
    assert image.getexif()[0x0112] == 1
    assert image.info["icc_profile"] == PROFILE
