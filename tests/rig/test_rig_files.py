"""Rigs as other programs write them, and files that hold none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy.spatial.transform import Rotation

from geocalib.errors import FormatError
from geocalib.rig import RigDescription, cube_faces, read_rig
from geocalib.rig.description import from_angles

KALIBR = """\
cam0:
  cam_overlaps: [1]
  camera_model: pinhole
  distortion_coeffs: [-0.2, 0.06, 0.0, 0.0]
  distortion_model: radtan
  intrinsics: [461.6, 460.1, 362.6, 246.0]
  resolution: [752, 480]
  rostopic: /cam0/image_raw
cam1:
  T_cn_cnm1:
  - [0.0, 0.0, -1.0, -0.11]
  - [0.0, 1.0, 0.0, 0.0]
  - [1.0, 0.0, 0.0, 0.0]
  - [0.0, 0.0, 0.0, 1.0]
  camera_model: pinhole
cam2:
  T_cn_cnm1:
  - [0.0, 1.0, 0.0, -0.11]
  - [-1.0, 0.0, 0.0, 2.0e-05]
  - [0.0, 0.0, 1.0, 0.0]
  - [0.0, 0.0, 0.0, 1.0]
"""

# As COLMAP 4 writes it (pycolmap.Reconstruction.write_text), with an inertial sensor.
RIGS = """\
# Rig calib list with one line of data per calib:
#   RIG_ID, NUM_SENSORS, REF_SENSOR_TYPE, REF_SENSOR_ID, SENSORS[] as (SENSOR_TYPE, SENSOR_ID, ...
# Number of rigs: 2
1 4 CAMERA 1 CAMERA 2 1 0.92338051687663869 0.10259783520851541 0.20519567041703082 \
-0.30779350562554619 1 2 3 IMU 7 1 1 0 0 0 1 2 3 IMU 8 0
2 1 CAMERA 5
"""

TURNED = [
    [0.72631579, 0.61052632, 0.31578947],
    [-0.52631579, 0.78947368, -0.31578947],
    [-0.44210526, 0.06315789, 0.89473684],
]
"""What COLMAP takes the pose of camera 2 for."""


def write(file: Path, content: str) -> Path:
    file.write_text(content)
    return file


def rotations(rig: RigDescription) -> np.ndarray:
    return rig.camera_from_rig


class TestOwn:
    CAMERAS: dict[str, Any] = {  # noqa: RUF012
        "front": None,
        "left": {"yaw_deg": -60, "pitch_deg": 5.5},
        "right": {
            "camera_from_rig": [0.5, 0.5, 0.5, 0.5],
            "images": "r_*.png",
            "intrinsics": "left",
        },
    }

    @pytest.mark.parametrize("suffix", [".json", ".yaml", ".yml"])
    def test_everything(self, tmp_path: Path, suffix: str) -> None:
        dump = json.dumps if suffix == ".json" else yaml.safe_dump
        rig = read_rig(write(tmp_path / f"rig{suffix}", dump({"cameras": self.CAMERAS})))
        assert sorted(rig.names) == ["front", "left", "right"]
        found = {camera.name: camera for camera in rig.cameras}
        np.testing.assert_allclose(found["front"].camera_from_rig, from_angles())
        np.testing.assert_allclose(found["left"].camera_from_rig, from_angles(-60, 5.5))
        expected = Rotation.from_quat([0.5, 0.5, 0.5, 0.5]).as_matrix()
        np.testing.assert_allclose(found["right"].camera_from_rig, expected, atol=1e-12)
        assert (found["left"].images, found["right"].images) == ("left/*", "r_*.png")
        assert [found[name].intrinsics for name in found] == [
            "front" if name == "front" else "left" for name in found
        ]

    @pytest.mark.parametrize(
        ("cameras", "line"),
        [
            ({}, "there is no camera"),
            ({"a": 5}, "camera a: is 5, not a mapping of yaw_deg, pitch_deg"),
            ({"a": {"yaw": 5}}, "camera a: 'yaw' is not known; known: yaw_deg"),
            ({"a": {"yaw_deg": "x"}}, "camera a: yaw_deg is 'x', not a number of degrees"),
            ({"a": {"yaw_deg": True}}, "camera a: yaw_deg is True, not a number"),
            ({"a": {"yaw_deg": 10**400}}, "camera a: yaw_deg is 1000"),
            ({"a": {"camera_from_rig": [1]}}, "camera a: camera_from_rig is no rotation"),
            ({"a": {"camera_from_rig": [10**400, 0, 0, 0]}}, "camera_from_rig is no rotation"),
            (
                {"a": {"camera_from_rig": [1, 0, 0, 0], "roll_deg": 1}},
                "camera a: camera_from_rig and roll_deg say the same; give one of them",
            ),
            ({"a": {"images": 1.5}}, "camera a: images is 1.5, not a name"),
            ({"": {}}, "a camera's name is '', not a name"),
            ({"a": {"images": "left.png"}}, "camera a: images is 'left.png'; give the end of"),
        ],
    )
    def test_bad_values(self, tmp_path: Path, cameras: object, line: str) -> None:
        file = write(tmp_path / "rig.json", json.dumps({"cameras": cameras}))
        with pytest.raises(FormatError) as error:
            read_rig(file)
        assert str(error.value).startswith(str(file))
        assert line in str(error.value)
        assert "\n" not in str(error.value)


class TestKalibr:
    def test_chain(self, tmp_path: Path) -> None:
        rig = read_rig(write(tmp_path / "camchain.yaml", KALIBR))
        assert rig.names == ("cam0", "cam1", "cam2")
        assert [camera.images for camera in rig.cameras] == ["cam0/*", "cam1/*", "cam2/*"]
        chain = yaml.safe_load(KALIBR)
        first, second = (np.array(chain[name]["T_cn_cnm1"])[:3, :3] for name in ("cam1", "cam2"))
        np.testing.assert_allclose(rotations(rig), [np.eye(3), first, second @ first], atol=1e-12)
        # A direction ahead of cam0 lies to the left of cam1.
        np.testing.assert_allclose(rotations(rig)[1] @ [0, 0, 1], [-1, 0, 0], atol=1e-12)

    def test_the_directive_of_opencv(self, tmp_path: Path) -> None:
        rig = read_rig(write(tmp_path / "chain.yaml", "%YAML:1.0\n" + KALIBR))
        assert len(rig.cameras) == 3

    @pytest.mark.parametrize(
        ("content", "line"),
        [
            (KALIBR.replace("cam1:", "cam3:"), "there is cam2 but no cam1; the chain is cut"),
            (KALIBR.replace("T_cn_cnm1", "T_cam_imu"), "cam1: there is no T_cn_cnm1"),
            (KALIBR.replace("-1.0, -0.11]", "-1.0]"), "cam1: T_cn_cnm1 is no rotation"),
            ("cam0: {}\ncam1: 5\n", "cam1: there is no T_cn_cnm1"),
        ],
    )
    def test_bad_chains(self, tmp_path: Path, content: str, line: str) -> None:
        file = write(tmp_path / "camchain.yaml", content)
        with pytest.raises(FormatError, match=line) as error:
            read_rig(file)
        assert str(error.value).startswith(str(file))


class TestColmapConfig:
    def config(self) -> list[dict[str, Any]]:
        pose = {
            "cam_from_rig_rotation": [0.9, 0.1, 0.2, -0.3],
            "cam_from_rig_translation": [0, 0, 0],
        }
        return [
            {
                "cameras": [
                    {"image_prefix": "rig1/camera1/", "ref_sensor": True},
                    {"image_prefix": "rig1/camera2/", **pose},
                ]
            },
            {"cameras": [{"image_prefix": "rig2/camera1/", "ref_sensor": True}]},
        ]

    def test_rigs(self, tmp_path: Path) -> None:
        rig = read_rig(write(tmp_path / "rig_config.json", json.dumps(self.config())))
        assert rig.names == ("rig1/camera1", "rig1/camera2", "rig2/camera1")
        assert [camera.rig for camera in rig.cameras] == ["1", "1", "2"]
        assert rig.cameras[1].images == "rig1/camera2/*"
        np.testing.assert_allclose(rotations(rig)[1], TURNED, atol=1e-7)
        np.testing.assert_allclose(rotations(rig)[[0, 2]], [np.eye(3)] * 2)

    def test_as_before_rigs_were_native(self, tmp_path: Path) -> None:
        cameras = [
            {"camera_id": 1, "image_prefix": "left1_image"},
            {"camera_id": 2, "image_prefix": "left2_image", "rel_qvec": [0, 1, 0, 0]},
        ]
        content = json.dumps([{"ref_camera_id": 1, "cameras": cameras}])
        rig = read_rig(write(tmp_path / "rig.json", content))
        assert [camera.images for camera in rig.cameras] == ["left1_image*", "left2_image*"]
        np.testing.assert_allclose(rotations(rig), [np.eye(3), np.diag([1, -1, -1])], atol=1e-12)

    @pytest.mark.parametrize(
        ("keys", "value", "line"),
        [
            ((0, "cameras", 1, "cam_from_rig_rotation"), [1, 0, 0], "rotation is no rotation"),
            ((0, "cameras", 1), {"image_prefix": "x"}, "camera 2: there is no cam_from_rig_rot"),
            ((0, "cameras", 0), {"ref_sensor": True}, "rig 1, camera 1: there is no image_prefix"),
            ((0, "cameras", 0, "image_prefix"), "", "image_prefix is '', not a name"),
            ((1, "cameras"), [], "rig 2: there is no list of cameras"),
            ((1,), 7, "rig 2: there is no list of cameras"),
        ],
    )
    def test_bad_configs(
        self, tmp_path: Path, keys: tuple[Any, ...], value: object, line: str
    ) -> None:
        content: Any = self.config()
        place = content
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value
        with pytest.raises(FormatError, match=line):
            read_rig(write(tmp_path / "rig_config.json", json.dumps(content)))


class TestColmapModel:
    def test_rigs(self, tmp_path: Path) -> None:
        write(tmp_path / "rigs.txt", RIGS)
        rig = read_rig(tmp_path)
        assert rig.names == ("1", "2", "5")
        assert [camera.rig for camera in rig.cameras] == ["1", "1", "2"]
        np.testing.assert_allclose(rotations(rig)[1], TURNED, atol=1e-7)
        assert read_rig(tmp_path / "rigs.txt").names == rig.names

    def test_folders_of_the_images(self, tmp_path: Path) -> None:
        """Camera 1 has one folder, 2 shares its folder with 5."""
        write(tmp_path / "rigs.txt", RIGS)
        images = "# Image list\n"
        for number, (camera, name) in enumerate(
            [(1, "a b/1.jpg"), (1, "a b/2.jpg"), (2, "c/1.jpg"), (5, "c/2.jpg")], 1
        ):
            points = "" if number % 2 else "1 2 -1"
            images += f"{number} 1 0 0 0 0 0 0 {camera} {name}\n{points}\n"
        write(tmp_path / "images.txt", images)
        assert read_rig(tmp_path).names == ("a b", "2", "5")

    @pytest.mark.parametrize(
        ("line", "problem"),
        [
            ("1 2 CAMERA 1 CAMERA 2 0", "camera 2 has no pose in its rig"),
            ("1 2 CAMERA 1 CAMERA 2 1 1 0 0 0 0 0", "must be RIG_ID NUM_SENSORS"),
            ("1 1 CAMERA 1 CAMERA 2 0", "must be RIG_ID NUM_SENSORS"),
            ("1 1", "must be RIG_ID NUM_SENSORS"),
            ("1 2 CAMERA 1 CAMERA 2 1 a 0 0 0 0 0 0", "must be RIG_ID NUM_SENSORS"),
            ("1 2 CAMERA 1 CAMERA 2 1 0 0 0 0 0 0 0", "the pose of 2 is no rotation"),
        ],
    )
    def test_bad_lines(self, tmp_path: Path, line: str, problem: str) -> None:
        file = write(tmp_path / "rigs.txt", f"# Rigs\n{line}\n")
        with pytest.raises(FormatError) as error:
            read_rig(file)
        assert str(error.value).startswith(f"{file}, line 2: {problem}")

    def test_no_rigs(self, tmp_path: Path) -> None:
        with pytest.raises(FormatError, match=r"holds no rigs\.txt; name the file of the rig"):
            read_rig(tmp_path)
        (tmp_path / "rigs.bin").write_bytes(b"")
        with pytest.raises(FormatError, match=r"rigs\.bin: .* model_converter --output_type TXT"):
            read_rig(tmp_path)
        with pytest.raises(FormatError, match="there is no camera"):
            read_rig(write(tmp_path / "rigs.txt", "# none\n"))


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("rig.json", "{", "rig.json, line 1: is no JSON"),
        ("rig.json", "5", "rig.json: holds no rig; a rig is a mapping of cameras, kalibr's"),
        ("rig.json", "[]", "holds no rig"),
        ("rig.json", '{"cameras": [1]}', "holds no rig"),
        (
            "rig.json",
            "[" * 100_000,
            "rig.json: cannot be read: it holds numbers of",
        ),
        ("rig.json", "1" * 5000, "cannot be read: it holds numbers of thousands of digits"),
        ("rig.yaml", "[" * 5000, "lists in lists without end"),
        ("rig.yaml", "a: [1\nb", "is no YAML"),
        ("rig.yaml", "", "holds no rig"),
        ("rig.ini", "", r"rigs are read from \.json, \.yaml or \.txt"),
    ],
)
def test_files_without_a_rig(tmp_path: Path, name: str, content: str, line: str) -> None:
    with pytest.raises(FormatError, match=line) as error:
        read_rig(write(tmp_path / name, content))
    assert "\n" not in str(error.value)


def test_no_file_and_no_text(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"none\.json cannot be read: No such file"):
        read_rig(tmp_path / "none.json")
    with pytest.raises(FormatError, match=r"rigs are read from .* one of the words cube, stereo"):
        read_rig("none")
    (tmp_path / "rig.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FormatError, match="is no text"):
        read_rig(tmp_path / "rig.json")


def test_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_rig("cube").names == cube_faces().names
    assert read_rig("stereo").names == ("left", "right")
    # A folder of that name is meant first.
    Path("cube").mkdir()
    write(Path("cube/rigs.txt"), RIGS)
    assert read_rig("cube").names == ("1", "2", "5")
