"""Scripts for Blender and fSpy's files, as Blender itself sees them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from calibrations import one
from geocalib.errors import FormatError
from geocalib.formats import blender, fspy
from geocalib.formats.scenes import EYE_HEIGHT
from peers import Note, note
from seen_by_blender import CHECK, compare, in_blender, needs_blender, photo, seen


@needs_blender
@pytest.mark.parametrize(
    "camera",
    [
        {"roll_deg": 6.0, "pitch_deg": -12.0},
        {"size": (480, 640), "c": (250.0, 300.0), "pitch_deg": 20.0},
        {"aspect": 1.2, "pitch_deg": -5.0},
        {"aspect": 0.8, "size": (400, 640), "c": (180.0, 330.0)},
    ],
)
def test_its_camera_is_ours(tmp_path: Path, camera: dict[str, Any], record_property: Note) -> None:
    size = camera.get("size", (640, 480))
    calibration = one("pinhole", image=photo(tmp_path, size), **camera)
    (file,) = blender.write([calibration], tmp_path)
    assert file == tmp_path / "photo.jpg.blender.py"
    found = in_blender(tmp_path / "o.json", "-P", file, "-P", CHECK, "--", tmp_path / "o.json")
    apart = compare(found, calibration)
    assert apart < 0.05
    note(record_property, "blender", "Blender", apart)
    ahead = np.array([[0.0, 500, EYE_HEIGHT]])
    np.testing.assert_allclose(found["horizon"][:2], seen(calibration, ahead)[0], atol=0.05)
    assert {"photo.jpg", "ground of photo.jpg", "horizon of photo.jpg"} <= {*found["things"]}
    assert [Path(name).name for name in found["backgrounds"]] == ["photo.jpg"]
    assert found["sizes"] == [list(size)]
    expected = [calibration.fx * 36 / size[0], 36, 0.1, 1000]
    np.testing.assert_allclose(found["lens"], expected, rtol=1e-6)


@needs_blender
def test_a_lens_that_bends_comes_with_a_straight_picture(tmp_path: Path) -> None:
    calibration = one("simple_radial", image=photo(tmp_path))
    file, picture = blender.write([calibration], tmp_path / "new")
    assert picture == tmp_path / "new" / "photo.jpg.straight.jpg"
    found = in_blender(tmp_path / "o.json", "-P", file, "-P", CHECK, "--", tmp_path / "o.json")
    straight = calibration.undistort(str(calibration.image))
    assert found["sizes"] == [list(straight.image.size)]
    with Image.open(picture) as drawn:
        assert drawn.size == straight.image.size
    like = one(
        "pinhole", f=straight.camera.f.item(), size=straight.image.size, c=straight.camera.c[0]
    )
    assert compare(found, like) < 0.05


@needs_blender
@pytest.mark.parametrize("size", [(640, 480), (480, 640)])
def test_blender_sees_files_of_fspy_alike(
    tmp_path: Path, size: tuple[int, int], record_property: Note
) -> None:
    calibration = one("pinhole", image=photo(tmp_path, size), size=size, pitch_deg=-15)
    (file,) = fspy.write([calibration], tmp_path)
    found = in_blender(tmp_path / "o.json", "-P", CHECK, "--", tmp_path / "o.json", file)
    apart = compare(found, calibration)
    assert apart < 0.05
    note(record_property, "fspy", "Blender", apart)


@pytest.mark.parametrize("size", [(640, 480), (480, 640)])
def test_files_of_fspy_are_read_back(tmp_path: Path, size: tuple[int, int]) -> None:
    calibration = one("pinhole", image=photo(tmp_path, size), size=size)
    (file,) = fspy.write([calibration], tmp_path / "scene.fspy")
    project = fspy.read(file)
    np.testing.assert_allclose(project.camera.K[0], calibration.K, rtol=1e-12)
    np.testing.assert_allclose(project.gravity, calibration.gravity, atol=1e-12)
    assert project.image == Path(str(calibration.image)).read_bytes()


def test_what_fspy_itself_tells(tmp_path: Path) -> None:
    """By hand: a level camera at the origin, of 90 degrees across, the middle a tenth aside."""
    state = {
        "cameraParameters": {
            "principalPoint": {"x": 0.1, "y": 0.2},
            "horizontalFieldOfView": np.pi / 2,
            "cameraTransform": {"rows": [[1, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]]},
            "imageWidth": 1000,
            "imageHeight": 500,
        }
    }
    text = json.dumps(state).encode()
    content = b"fspy" + np.array([1, len(text), 3], "<u4").tobytes() + text + b"jpg"
    (tmp_path / "a.fspy").write_bytes(content)
    project = fspy.read(tmp_path / "a.fspy")
    np.testing.assert_allclose(project.camera.K[0], [[500, 0, 550], [0, 500, 150], [0, 0, 1]])
    np.testing.assert_allclose(project.gravity, [0, 1, 0], atol=1e-12)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a photo", "is no file of fSpy's"),
        (b"fspy" + bytes([2, 0, 0, 0] + [0] * 8), "version 2 of fSpy's files; 1 is read"),
        (b"fspy" + bytes([1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]) + b"{}", "is cut short"),
        (
            b"fspy" + bytes([1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]) + b"{}",
            "no camera that was solved",
        ),
    ],
)
def test_files_of_others(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.fspy").write_bytes(content)
    with pytest.raises(FormatError, match=message):
        fspy.read(tmp_path / "a.fspy")


def test_without_its_photo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FormatError, match=r"gone\.jpg is not there; this format needs the picture"):
        fspy.write([one("pinhole", image="gone.jpg")], tmp_path)
    assert list(tmp_path.iterdir()) == []
    # A script does without, and says where its picture would come from.
    blender.write([one(image="gone.jpg")], tmp_path)
    assert "gone.jpg is not there to be straightened" in capsys.readouterr().err


def test_a_photo_on_its_side_stands_upright_in_its_picture(tmp_path: Path) -> None:
    path = tmp_path / "side.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (640, 480), "red").save(path, exif=exif)
    calibration = one("pinhole", image=str(path), size=(480, 640), orientation=6)
    file, picture = blender.write([calibration], tmp_path)
    with Image.open(picture) as drawn:
        assert drawn.size == (480, 640)
    assert "PICTURE = 'side.jpg.straight.jpg'" in file.read_text()
