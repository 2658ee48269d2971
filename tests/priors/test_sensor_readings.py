"""All that is read of one photo."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from drones import packet
from PIL import Image
from PIL.ExifTags import Base

from geocalib.imaging import Metadata, read_photo
from geocalib.priors.readings import read_gravity


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
    readings = read_gravity(None, photo.metadata)
    assert readings.gravity is not None
    assert readings.gravity.gravity == pytest.approx((0, 1, 0))
    assert readings.gravity.sigma_deg == 1.0
    assert readings.notes == ()


def test_a_gimbal_turned_to_portrait() -> None:
    # The camera is rolled by 90 degrees, and the picture turned back.
    photo = read_photo(jpeg(packet(roll="+90.00", pitch="+0.00"), orientation=6))
    readings = read_gravity(None, photo.metadata)
    assert readings.gravity is not None
    assert readings.gravity.gravity == pytest.approx((0, 1, 0))


def test_the_surest_of_two_counts(tmp_path: Path) -> None:
    sidecar = tmp_path / "drone.json"
    values = {"gravity": [0, 0, 1], "frame": "camera"}
    for sigma_deg, expected in ((0.2, (0, 0, 1)), (3.0, (0, 1, 0))):
        sidecar.write_text(json.dumps(values | {"sigma_deg": sigma_deg}))
        metadata = Metadata(xmp=packet(pitch="+0.00"))
        readings = read_gravity(str(tmp_path / "drone.jpg"), metadata)
        assert readings.gravity is not None
        assert readings.gravity.gravity == pytest.approx(expected)


def test_what_cannot_be_used_becomes_a_note(tmp_path: Path) -> None:
    (tmp_path / "IMG.json").write_text("{")
    readings = read_gravity(str(tmp_path / "IMG.jpg"), Metadata(xmp=b"<"))
    assert readings.gravity is None
    xmp, sidecar = readings.notes
    assert "XMP packet is damaged" in xmp
    assert "IMG.json is not JSON" in sidecar
    assert all(note.endswith("it was ignored") for note in readings.notes)


def test_nothing_to_read() -> None:
    assert read_gravity(None, Metadata()).gravity is None
