"""transforms.json: the numbers, and poses checked by what they do to gravity and rays."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from calibrations import FAILURE, one, several
from geocalib.errors import FormatError
from geocalib.formats import nerfstudio

OPENGL_FROM_OURS = np.diag([1.0, -1.0, -1.0])
"""x right, y up, z back, from x right, y down, z forward."""


@pytest.mark.parametrize(
    ("roll_deg", "pitch_deg"), [(0, 0), (30, 0), (0, 40), (-170, -60), (20, 89.9), (0, -90)]
)
def test_poses_are_level(roll_deg: float, pitch_deg: float) -> None:
    calibration = one(roll_deg=roll_deg, pitch_deg=pitch_deg)
    pose = np.array(nerfstudio.camera_to_world(calibration))
    rotation = pose[:3, :3]
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(rotation) == pytest.approx(1)
    assert pose[:3, 3].tolist() == [0, 0, 0]
    assert pose[3].tolist() == [0, 0, 0, 1]
    down = rotation @ OPENGL_FROM_OURS @ calibration.gravity
    np.testing.assert_allclose(down, [0, 0, -1], atol=1e-12)


@pytest.mark.parametrize("pitch_deg", [-35.0, 0.0, 35.0])
def test_cameras_look_along_y(pitch_deg: float) -> None:
    """The optical axis rises by the pitch over the direction y, whatever the roll."""
    pose = np.array(nerfstudio.camera_to_world(one(roll_deg=25, pitch_deg=pitch_deg)))
    ahead = pose[:3, :3] @ [0, 0, -1]
    pitch = np.radians(pitch_deg)
    np.testing.assert_allclose(ahead, [0, np.cos(pitch), np.sin(pitch)], atol=1e-12)


def test_a_level_camera_by_hand() -> None:
    pose = nerfstudio.camera_to_world(one(roll_deg=0, pitch_deg=0))
    np.testing.assert_allclose(
        pose, [[1, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]], atol=1e-15
    )


def test_one_camera_is_said_once() -> None:
    first, second, _ = several()
    content = json.loads(nerfstudio.dumps([first, FAILURE, second]))
    frames = content.pop("frames")
    focal, centre, size = {"fl_x": 500.0, "fl_y": 500.0}, {"cx": 310.3, "cy": 251.7}, (640, 480)
    lens = {"k1": -0.12, "k2": 0.0, "p1": 0.0, "p2": 0.0}
    assert (content.pop("w"), content.pop("h")) == size
    assert content == {"camera_model": "OPENCV", "pixels": "stored"} | focal | centre | lens
    assert [frame["file_path"] for frame in frames] == ["left/a.jpg", "left/b.jpg"]
    assert all(set(frame) == {"file_path", "transform_matrix"} for frame in frames)
    assert frames[1]["transform_matrix"] == nerfstudio.camera_to_world(second)


def test_cameras_that_differ_are_said_per_frame() -> None:
    wide = {"f": 140.0, "distortion": (0.1, 0.2, 0.3, 0.4)}
    content = json.loads(
        nerfstudio.dumps(
            [
                one("kannala_brandt", **wide),
                one("kannala_brandt", size=(100, 200), c=(50, 100), aspect=0.5, **wide),
            ]
        )
    )
    assert set(content) == {"camera_model", "pixels", "frames"}
    assert content["camera_model"] == "OPENCV_FISHEYE"
    frame = content["frames"][1]
    assert (frame["fl_x"], frame["fl_y"], frame["cx"], frame["cy"]) == (70, 140, 50, 100)
    assert (frame["w"], frame["h"]) == (100, 200)
    assert [frame[f"k{i}"] for i in (1, 2, 3, 4)] == [0.1, 0.2, 0.3, 0.4]


def test_image_paths_start_at_the_file(tmp_path: Path) -> None:
    images = [tmp_path / "photos" / "a.jpg", tmp_path / "out" / "b.jpg"]
    (path,) = nerfstudio.write([one(image=str(image)) for image in images], tmp_path / "out")
    assert path == tmp_path / "out" / "transforms.json"
    frames = json.loads(path.read_text())["frames"]
    assert [frame["file_path"] for frame in frames] == ["../photos/a.jpg", "b.jpg"]


def test_what_nerfstudio_lacks() -> None:
    with pytest.raises(FormatError, match=r"ordinary or fisheye cameras, not both .*camera_model"):
        nerfstudio.dumps([one("pinhole"), one("kannala_brandt")])
    with pytest.raises(FormatError, match=r"division.*calibrate with camera_model='radial'"):
        nerfstudio.dumps([one("division")])
