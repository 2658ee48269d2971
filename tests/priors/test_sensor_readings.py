"""All that is read of one photo."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import pytest
from drones import packet
from PIL import Image
from PIL.ExifTags import Base

from geocalib.imaging import Metadata, read_photo
from geocalib.priors.readings import Readings, read_gravity


def jpeg(xmp: bytes, orientation: int = 1, camera: str = "FC6310") -> bytes:
    """A photo as a drone writes it."""
    exif = Image.Exif()
    exif[Base.Orientation], exif[Base.Model] = orientation, camera
    file = io.BytesIO()
    Image.new("RGB", (64, 48)).save(file, "JPEG", exif=exif, xmp=xmp)
    return file.getvalue()


def test_a_gimbal_out_of_a_file() -> None:
    photo = read_photo(jpeg(packet(pitch="+0.00")))
    assert photo.metadata.tags[Base.Model] == "FC6310"
    readings = read_gravity(None, photo.metadata, photo.size)
    assert readings.gravity is not None
    assert readings.gravity.gravity == pytest.approx((0, 1, 0))
    assert readings.gravity.sigma_deg == 1.0
    assert readings.notes == ()


def test_a_gimbal_turned_to_portrait() -> None:
    # The camera is rolled by 90 degrees, and the picture turned back.
    photo = read_photo(jpeg(packet(roll="+90.00", pitch="+0.00"), orientation=6))
    readings = read_gravity(None, photo.metadata, photo.size)
    assert readings.gravity is not None
    assert readings.gravity.gravity == pytest.approx((0, 1, 0))


def both(folder: Path, gravity: list[float], sigma_deg: float) -> Readings:
    """Of a level gimbal, one degree sure, and of a file beside the photo."""
    values = {"gravity": gravity, "frame": "camera", "sigma_deg": sigma_deg}
    (folder / "drone.json").write_text(json.dumps(values))
    return read_gravity(str(folder / "drone.jpg"), Metadata(xmp=packet(pitch="+0.00")), (64, 48))


def test_two_that_agree_are_weighed_by_their_information(tmp_path: Path) -> None:
    angle = math.radians(1.5)
    readings = both(tmp_path, [math.sin(angle), math.cos(angle), 0], 2.0)
    assert readings.gravity is not None
    # A quarter of the weight, so a fifth of the way.
    roll = math.degrees(math.atan2(*readings.gravity.gravity[:2]))
    assert roll == pytest.approx(1.5 / 5, rel=1e-3)
    assert readings.gravity.sigma_deg == pytest.approx(math.sqrt(0.8))
    assert readings.gravity.source.startswith("gimbal in XMP and ")
    assert readings.notes == ()


@pytest.mark.parametrize(("sigma_deg", "expected"), [(0.2, (0, 0, 1)), (3.0, (0, 1, 0))])
def test_of_two_that_contradict_the_surer_counts(
    tmp_path: Path, sigma_deg: float, expected: tuple[float, ...]
) -> None:
    readings = both(tmp_path, [0, 0, 1], sigma_deg)
    assert readings.gravity is not None
    assert readings.gravity.gravity == pytest.approx(expected)
    (note,) = readings.notes
    assert "sigma off" in note


def test_what_cannot_be_used_becomes_a_note(tmp_path: Path) -> None:
    (tmp_path / "IMG.json").write_text("{")
    readings = read_gravity(str(tmp_path / "IMG.jpg"), Metadata(xmp=b"<"), (64, 48))
    assert readings.gravity is None
    xmp, sidecar = readings.notes
    assert "XMP packet is damaged" in xmp
    assert "IMG.json is not JSON" in sidecar
    assert all(note.endswith("it was ignored") for note in readings.notes)


def test_nothing_to_read() -> None:
    assert read_gravity(None, Metadata(), (64, 48)).gravity is None
