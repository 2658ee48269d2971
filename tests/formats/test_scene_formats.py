"""glTF, USD, Nuke's .chan and scripts for Maya, read by their programs or by their own rules."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from calibrations import one
from geocalib.errors import FormatError
from geocalib.formats import FORMATS, gltf, maya, nuke, usd
from geocalib.formats.scenes import EYE_HEIGHT
from geocalib.result.calibration import Calibration
from peers import Note, note
from seen_by_blender import CHECK, compare, in_blender, needs_blender, photo, seen

CENTRED = {"c": (320.0, 240.0), "roll_deg": 12.0, "pitch_deg": -15.0}

GROUND = np.array([(x, y, 0.0) for x in (-2.0, 0.0, 3.0) for y in (4.0, 7.0, 20.0)])
"""Points of the world with z up, metres."""


def y_up(points: np.ndarray) -> np.ndarray:
    return points @ np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])


def in_camera(points: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """Points in the frame of a camera that looks along -z with y up; pose (4, 4) to the world."""
    return (points - pose[:3, 3]) @ pose[:3, :3]


# glTF


def validator() -> str | None:
    """The folder of npm packages with glTF's validator, if there is one."""
    if shutil.which("node") is None:
        return None
    words = ["node", "-e", "console.log(require.resolve('gltf-validator'))"]
    done = subprocess.run(words, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def pixels_of_gltf(file: Path, size: tuple[int, int]) -> np.ndarray:
    """(N, 2) pixels of the ground, by the rules of the specification alone."""
    values = json.loads(file.read_text())
    assert values["asset"]["version"] == "2.0"
    (root,) = values["scenes"][values["scene"]]["nodes"]
    node = values["nodes"][root]
    camera = values["cameras"][node["camera"]]
    assert camera["type"] == "perspective"
    lens = camera["perspective"]
    assert 0 < lens["znear"] < lens["zfar"]
    x, y, z = in_camera(y_up(GROUND), np.array(node["matrix"]).reshape(4, 4).T).T
    tangent = math.tan(0.5 * lens["yfov"])
    across, up = x / -z / tangent / lens["aspectRatio"], y / -z / tangent
    return np.stack([(1 + across) / 2 * size[0], (1 - up) / 2 * size[1]], -1)


@pytest.mark.parametrize("camera", [CENTRED, CENTRED | {"aspect": 1.2}])
def test_gltf_by_its_rules(tmp_path: Path, camera: dict[str, Any]) -> None:
    calibration = one("pinhole", image=photo(tmp_path), **camera)
    (file,) = gltf.write([calibration], tmp_path)
    assert file == tmp_path / "photo.jpg.gltf"
    apart = pixels_of_gltf(file, (640, 480)) - seen(calibration, GROUND)
    assert np.abs(apart).max() < 1e-6


@pytest.mark.skipif(validator() is None, reason="no gltf-validator of npm's here")
def test_the_validator_finds_nothing_in_gltf(tmp_path: Path, record_property: Note) -> None:
    (file,) = gltf.write([one("pinhole", image=photo(tmp_path), **CENTRED)], tmp_path)
    script = (
        "const fs = require('fs'); require('gltf-validator')"
        ".validateBytes(new Uint8Array(fs.readFileSync(process.argv[1])))"
        ".then(report => console.log(JSON.stringify(report.issues)))"
    )
    done = subprocess.run(["node", "-e", script, file], capture_output=True, text=True, check=True)
    issues = json.loads(done.stdout)
    assert (issues["numErrors"], issues["numWarnings"], issues["numInfos"]) == (0, 0, 0), issues
    note(record_property, "gltf", "gltf-validator", 0)


@needs_blender
@pytest.mark.parametrize(
    ("format", "size"), [("gltf", (640, 480)), ("gltf", (480, 640)), ("nuke", (640, 480))]
)
def test_blender_imports_it(
    tmp_path: Path, format: str, size: tuple[int, int], record_property: Note
) -> None:
    middle = {"size": size, "c": (size[0] / 2, size[1] / 2)}
    calibration = one("pinhole", image=photo(tmp_path, size), **CENTRED | middle)
    (file,) = FORMATS[format]([calibration], tmp_path)
    found = in_blender(tmp_path / "o.json", "-P", CHECK, "--", tmp_path / "o.json", file, *size)
    apart = compare(found, calibration)
    assert apart < 0.05
    note(record_property, format, "Blender", apart)


# USD


def pixels_of_usd(file: Path, size: tuple[int, int]) -> np.ndarray:
    """(N, 2) pixels of the ground, by USD's own camera."""
    module = pytest.importorskip("pxr", reason="no usd-core here")
    assert module
    from pxr import Gf, Usd, UsdGeom

    stage = Usd.Stage.Open(str(file))
    assert UsdGeom.GetStageUpAxis(stage) == "Y"
    unit = UsdGeom.GetStageMetersPerUnit(stage)
    camera = UsdGeom.Camera(stage.GetDefaultPrim().GetChild("Camera")).GetCamera()
    frustum = camera.frustum
    matrix = frustum.ComputeViewMatrix() * frustum.ComputeProjectionMatrix()
    found = np.array([matrix.Transform(Gf.Vec3d(*p)) for p in (y_up(GROUND) / unit).tolist()])
    return (found[:, :2] * [1, -1] + 1) / 2 * size


@pytest.mark.parametrize(
    "camera", [CENTRED, {"size": (480, 640), "c": (200.0, 350.0)}, {"aspect": 0.9}]
)
def test_usd_sees_what_we_see(
    tmp_path: Path, camera: dict[str, Any], record_property: Note
) -> None:
    size = camera.get("size", (640, 480))
    calibration = one("pinhole", image=photo(tmp_path, size), **camera)
    (file,) = usd.write([calibration], tmp_path)
    apart = np.abs(pixels_of_usd(file, size) - seen(calibration, GROUND)).max()
    assert apart < 1e-3
    note(record_property, "usd", "usd-core", apart)


def test_names_in_usd(tmp_path: Path) -> None:
    pytest.importorskip("pxr", reason="no usd-core here")
    from pxr import Usd

    for name in ('a "b" \\ é.jpg', b"caf\xe9.jpg".decode("utf-8", "surrogateescape")):
        place = tmp_path / f"{len(name)}.usda"
        (file,) = usd.write([one("pinhole", image=str(tmp_path / name))], place)
        stage = Usd.Stage.Open(str(file))
        told = stage.GetRootLayer().customLayerData
        assert told["picture"] == name.encode("utf-8", "replace").decode()


# Nuke


def rotated(degrees: list[float], order: str) -> np.ndarray:
    """The product of the rotations about x, y and z, in that order from left to right."""
    turns = {
        axis: Rotation.from_euler(axis, angle, degrees=True)
        for axis, angle in zip("xyz", degrees, strict=True)
    }
    first, second, third = (turns[axis] for axis in order)
    return (first * second * third).as_matrix()


def test_a_line_of_chan_for_each_frame(tmp_path: Path) -> None:
    images = [one("pinhole", image=f"{n}.jpg", **CENTRED | {"roll_deg": n}) for n in (5.0, 170.0)]
    (file,) = nuke.write(images, tmp_path)
    assert file == tmp_path / "camera.chan"
    lines = [line.split("\t") for line in file.read_text().splitlines()]
    for number, (line, calibration) in enumerate(zip(lines, images, strict=True), 1):
        assert line[0] == str(number)
        *place, a, b, c, vfov = map(float, line[1:])
        pose = np.eye(4)
        pose[:3, 3], pose[:3, :3] = place, rotated([a, b, c], "xyz")
        assert pose[1, 3] == EYE_HEIGHT
        x, y, z = in_camera(y_up(GROUND), pose).T
        focal = 240 / math.tan(math.radians(vfov) / 2)
        pixels = np.stack([320 + focal * x / -z, 240 - focal * y / -z], -1)
        assert np.abs(pixels - seen(calibration, GROUND)).max() < 1e-6


# Maya


class Maya:
    """What a script asks of Maya's commands."""

    def __init__(self) -> None:
        self.camera_words: dict[str, Any] = {}
        self.attributes: dict[str, Any] = {}
        self.pictures: list[str] = []

    def camera(self, **words: Any) -> tuple[str, str]:
        self.camera_words = words
        return "camera1", "cameraShape1"

    def setAttr(self, name: str, *values: Any, type: str = "") -> None:
        self.attributes[name] = values

    def polyPlane(self, **words: Any) -> None:
        self.attributes["ground"] = words

    def imagePlane(self, camera: str, fileName: str) -> None:
        self.pictures.append(fileName)


def run_in_maya(file: Path, monkeypatch: pytest.MonkeyPatch) -> Maya:
    commands, module = Maya(), types.ModuleType("maya")
    module.cmds = commands  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "maya", module)
    exec(compile(file.read_text(), file, "exec"), {"__file__": str(file)})
    return commands


@pytest.mark.parametrize(
    "camera", [CENTRED, {"size": (480, 640), "c": (200.0, 350.0)}, {"aspect": 0.9}]
)
def test_maya_sees_what_we_see(
    tmp_path: Path, camera: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    size = camera.get("size", (640, 480))
    calibration = one("pinhole", image=photo(tmp_path, size), **camera)
    (file,) = maya.write([calibration], tmp_path)
    told = run_in_maya(file, monkeypatch)
    # Maya's "zxy" turns about z first.
    assert told.attributes["camera1.rotateOrder"] == (2,)
    pose = np.eye(4)
    pose[:3, :3] = rotated(list(told.attributes["camera1.rotate"]), "yxz")
    pose[:3, 3] = told.attributes["camera1.translate"]
    x, y, z = in_camera(100 * y_up(GROUND), pose).T
    lens = told.camera_words
    inches = lens["focalLength"] / 25.4 * np.stack([x, y]) / -z
    offset = np.array([lens["horizontalFilmOffset"], lens["verticalFilmOffset"]])
    film = np.array([lens["horizontalFilmAperture"], lens["verticalFilmAperture"]])
    across, up = (inches.T - offset).T / film[:, None]
    pixels = np.stack([(0.5 + across) * size[0], (0.5 - up) * size[1]], -1)
    assert np.abs(pixels - seen(calibration, GROUND)).max() < 1e-6
    assert told.pictures == [calibration.image]
    resolution = [told.attributes[f"defaultResolution.{side}"][0] for side in ("width", "height")]
    assert tuple(resolution) == size


# All of them


@pytest.mark.parametrize("format", ["gltf", "usd", "maya", "blender"])
def test_a_lens_that_bends_comes_with_a_straight_picture(tmp_path: Path, format: str) -> None:
    calibration = one("simple_radial", image=photo(tmp_path), c=(320.0, 240.0))
    file, picture = FORMATS[format]([calibration], tmp_path / "new")
    assert picture.name == "photo.jpg.straight.jpg"
    assert picture.name in file.read_text()


@pytest.mark.parametrize("format", ["gltf", "nuke"])
def test_no_place_for_a_principal_point(tmp_path: Path, format: str) -> None:
    with pytest.raises(
        FormatError, match=r"photo\.jpg: .*no place for a principal point 12 pixels"
    ):
        FORMATS[format]([one("pinhole", image=photo(tmp_path))], tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_chan_has_straight_pictures_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calibration = one(image=photo(tmp_path), c=(320.0, 240.0))
    images = [one("pinhole", image=str(tmp_path / "flat.jpg"), c=(320, 240)), calibration]
    file, picture = nuke.write(images, tmp_path / "new")
    assert picture == tmp_path / "new" / "photo.jpg.straight.jpg"
    straight = calibration.undistort(str(calibration.image))
    (vfov,) = [float(line.split("\t")[-1]) for line in file.read_text().splitlines()[1:]]
    height = straight.image.size[1]
    assert height / 2 / math.tan(math.radians(vfov) / 2) == pytest.approx(straight.camera.f.item())
    nuke.write([one(image="gone.jpg", c=(320.0, 240.0))], tmp_path / "gone")
    assert "gone.jpg is not there to be straightened" in capsys.readouterr().err


@pytest.mark.parametrize("write", [maya.dumps, FORMATS["blender"].each])
def test_a_name_is_no_program(write: Callable[[Calibration], str]) -> None:
    """The name of a photo may hold what ends a text of Python's."""
    text = write(one("pinhole", image="\"\"\"\nraise SystemExit\n'''.jpg"))
    compile(text, "script", "exec")
    assert "\nraise" not in text
