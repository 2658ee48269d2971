"""COLMAP models in text and binary, as COLMAP itself writes them."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from geocalib.errors import FormatError
from geocalib.localize.colmap_model import NO_POINT, ColmapModel, read_cameras, read_model

CAMERAS = """# comment
1 PINHOLE 1000 800 810.5 800 500 400
2 SIMPLE_RADIAL 640 480 500 320 240 -0.1
5 OPENCV_FISHEYE 640 480 300 300 320 240 0.01 0 0 0
"""
IMAGES = """# comment
3 0.5 0.5 -0.5 0.5 1.5 -2 3.25 1 folder/a.jpg
10.5 20.25 7 30 40 -1 50 60 9
8 1 0 0 0 0 0 0 2 empty.jpg

"""
POINTS = """# comment
7 1.5 -2.25 3 10 20 30 0.5 3 0
9 1e3 0 -4 1 2 3 0.25 3 2
"""


@pytest.fixture
def text(tmp_path: Path) -> Path:
    folder = tmp_path / "text"
    folder.mkdir()
    (folder / "cameras.txt").write_text(CAMERAS)
    (folder / "images.txt").write_text(IMAGES)
    (folder / "points3D.txt").write_text(POINTS)
    return folder


@pytest.fixture
def binary(text: Path, tmp_path: Path) -> Path:
    """The same model, converted by COLMAP."""
    if shutil.which("colmap") is None:
        pytest.skip("colmap is not installed")
    return convert(text, tmp_path / "binary", "BIN")


def convert(source: Path, target: Path, kind: str) -> Path:
    target.mkdir()
    options = ["--input_path", str(source), "--output_path", str(target), "--output_type", kind]
    subprocess.run(["colmap", "model_converter", *options], check=True, capture_output=True)
    return target


def check_images(model: ColmapModel) -> None:
    assert sorted(model.images) == ["empty.jpg", "folder/a.jpg"]
    image = model.images["folder/a.jpg"]
    expected = Rotation.from_quat([0.5, 0.5, -0.5, 0.5], scalar_first=True).as_matrix()
    assert image.camera_id == 1
    assert image.rotation == pytest.approx(expected, abs=1e-12)
    assert image.translation.tolist() == [1.5, -2, 3.25]
    assert image.keypoints.tolist() == [[10.5, 20.25], [30, 40], [50, 60]]
    assert image.point_ids.tolist() == [7, NO_POINT, 9]
    assert model.images["empty.jpg"].keypoints.shape == (0, 2)


def check(folder: Path) -> None:
    model = read_model(folder)
    check_images(model)
    assert {key: point.tolist() for key, point in model.points.items()} == {
        7: [1.5, -2.25, 3],
        9: [1000, 0, -4],
    }
    cameras = read_cameras(folder)
    assert {key: camera.model.name for key, camera in cameras.items()} == {
        1: "pinhole",
        2: "simple_radial",
        5: "kannala_brandt",
    }
    assert cameras[1].K[0].tolist() == [[810.5, 0, 500], [0, 800, 400], [0, 0, 1]]
    assert cameras[2].distortion.tolist() == [[-0.1]]
    assert cameras[5].size.tolist() == [[640, 480]]


def test_text(text: Path) -> None:
    check(text)


def test_names_with_spaces(text: Path) -> None:
    (text / "images.txt").write_text("1 1 0 0 0 0 0 0 1 a b.jpg\r\n\r\n")
    assert list(read_model(text).images) == ["a b.jpg"]


def test_binary_as_colmap_writes_it(binary: Path) -> None:
    assert (binary / "points3D.bin").exists()
    check(binary)


def test_text_as_colmap_writes_it(binary: Path, tmp_path: Path) -> None:
    check(convert(binary, tmp_path / "again", "TXT"))


def write_binary(folder: Path) -> None:
    """By the documented layout: one image with one keypoint, one point, one camera."""
    folder.mkdir()
    camera = struct.pack("<QIiQQ4d", 1, 4, 1, 1000, 800, 810.5, 800, 500, 400)
    pose = struct.pack("<QI7dI", 1, 3, 1, 0, 0, 0, 1, 2, 3, 4)
    keypoints = struct.pack("<Qddqddq", 2, 10.5, 20.25, 7, 30, 40, -1)
    point = struct.pack("<QQdddBBBdQII", 1, 7, 1.5, -2.25, 3, 1, 2, 3, 0.5, 1, 3, 0)
    (folder / "cameras.bin").write_bytes(camera)
    (folder / "images.bin").write_bytes(pose + b"folder/a.jpg\0" + keypoints)
    (folder / "points3D.bin").write_bytes(point)


def test_binary_by_its_layout(tmp_path: Path) -> None:
    write_binary(tmp_path / "model")
    model = read_model(tmp_path / "model")
    image = model.images["folder/a.jpg"]
    assert (image.camera_id, image.translation.tolist()) == (4, [1, 2, 3])
    assert np.array_equal(image.rotation, np.eye(3))
    assert image.point_ids.tolist() == [7, NO_POINT]
    assert model.points[7].tolist() == [1.5, -2.25, 3]
    assert read_cameras(tmp_path / "model")[4].f.item() == 800


@pytest.mark.parametrize("name", ["cameras.bin", "images.bin", "points3D.bin"])
def test_binary_cut_short_anywhere(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    write_binary(folder)
    whole = (folder / name).read_bytes()
    for length in range(len(whole)):
        (folder / name).write_bytes(whole[:length])
        with pytest.raises(FormatError, match=f"{name} is cut short or is no COLMAP file"):
            (read_cameras if name == "cameras.bin" else read_model)(folder)


def test_unknown_camera_model(tmp_path: Path) -> None:
    write_binary(tmp_path / "model")
    for key, line in ((99, "has the unknown model 99"), (7, "COLMAP's FOV has no counterpart")):
        data = struct.pack("<QIiQQ5d", 1, 4, key, 10, 8, 1, 1, 1, 1, 1)
        (tmp_path / "model" / "cameras.bin").write_bytes(data)
        with pytest.raises(FormatError, match=f"camera 4.*{line}"):
            read_cameras(tmp_path / "model")


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("images.txt", "1 1 0 0 0 0 0 0 1\n\n", "line 1: must be IMAGE_ID QW QX"),
        ("images.txt", "1 1 0 0 0 0 0 0 1 a.jpg\n1 2\n", "line 1: must be IMAGE_ID QW QX"),
        ("images.txt", "1 1 0 0 0 0 0 0 1 a.jpg\n1 2 x\n", "line 1: must be IMAGE_ID QW QX"),
        ("images.txt", "1 0 0 0 0 0 0 0 1 a.jpg\n\n", "image a.jpg has no sound pose"),
        ("points3D.txt", "# c\n1 2 3\n", "line 2: must begin with POINT3D_ID X Y Z, got '1 2 3'"),
        ("points3D.txt", "one 2 3 4\n", "line 1: must begin with POINT3D_ID X Y Z"),
    ],
)
def test_malformed_text(text: Path, name: str, content: str, line: str) -> None:
    (text / name).write_text(content)
    with pytest.raises(FormatError, match=f"{name}.*{line}"):
        read_model(text)


def test_no_model(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"holds neither images.bin nor images.txt"):
        read_model(tmp_path)
