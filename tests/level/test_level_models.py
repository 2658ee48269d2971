"""Models of every kind, turned: each photo sees what it saw, in a world that was turned."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from geocalib.errors import FormatError
from geocalib.level.models import Model, read_model
from geocalib.localize import colmap_model

TURN = Rotation.from_euler("xyz", [20, -130, 75], degrees=True).as_matrix()

POSES = Rotation.random(3, rng=np.random.default_rng(0))
"""From the world to the camera."""
PLACES = np.array([[1.0, 2, 3], [-4, 5, 0.5], [0, 0, 7]])
"""Of the cameras."""
NAMES = ["a.jpg", "left/b.jpg", "d.jpg"]
POINTS = np.array([[0.25, -1, 4], [2, 2, -2]])


def colmap(folder: Path) -> Path:
    """In text."""
    folder.mkdir(parents=True)
    images = ["# a comment"]
    for number, (R, place, name) in enumerate(zip(POSES, PLACES, NAMES, strict=True), 1):
        x, y, z, w = R.as_quat().tolist()
        pose = [w, x, y, z, *(-R.apply(place)).tolist()]
        images += [f"{number} {' '.join(map(repr, pose))} 1 {name}"]
        images += ["10.5 20.25 7 30 40 8" if number == 1 else ""]
    (folder / "images.txt").write_text("\n".join(images) + "\n")
    (folder / "cameras.txt").write_text("1 SIMPLE_PINHOLE 640 480 500 320 240\n")
    points = [f"{7 + i} {x} {y} {z} 10 20 30 0.5 1 {i}" for i, (x, y, z) in enumerate(POINTS)]
    (folder / "points3D.txt").write_text("\n".join(points) + "\n")
    return folder


def binary(folder: Path) -> Path:
    """The same, converted by COLMAP."""
    if shutil.which("colmap") is None:
        pytest.skip("colmap is not installed")
    text = colmap(folder / "text")
    (folder / "binary").mkdir()
    command = ["colmap", "model_converter", "--output_type", "BIN", "--input_path", text]
    subprocess.run([*command, "--output_path", folder / "binary"], check=True, capture_output=True)
    return folder / "binary"


def camera_to_world() -> list[np.ndarray]:
    poses = []
    for R, place in zip(POSES, PLACES, strict=True):
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = R.as_matrix().T, place
        poses.append(pose)
    return poses


def nerfstudio(folder: Path) -> Path:
    file = folder / "transforms.json"
    frames = [
        {"file_path": name, "transform_matrix": (pose @ np.diag([1.0, -1, -1, 1])).tolist()}
        for name, pose in zip(NAMES, camera_to_world(), strict=True)
    ]
    applied = np.eye(4)[:3].tolist()
    file.write_text(
        json.dumps({"fl_x": 500, "frames": frames, "applied_transform": applied, "aabb": 4})
    )
    return file


def plain(folder: Path) -> Path:
    file = folder / "poses.txt"
    lines = ["# NAME and rows"]
    for name, pose, rows in zip(NAMES, camera_to_world(), (4, 3, 4), strict=True):
        lines.append(f"{name} {' '.join(map(repr, pose[:rows].ravel().tolist()))}")
    file.write_text("\n".join(lines) + "\n")
    return file


def plain_json(folder: Path) -> Path:
    file = folder / "poses.json"
    poses = {name: pose.tolist() for name, pose in zip(NAMES, camera_to_world(), strict=True)}
    file.write_text(json.dumps(poses))
    return file


def bundler(folder: Path) -> Path:
    file = folder / "bundle.out"
    lines = ["# Bundle file v0.3", "4 2"]
    for R, place in zip(POSES, PLACES, strict=True):
        matrix = np.diag([1, -1, -1]) @ R.as_matrix()
        rows = [*matrix, -matrix @ place]
        lines += ["500 0 0", *(" ".join(map(repr, row.tolist())) for row in rows)]
    lines += ["0 0 0"] * 5
    for point in POINTS:
        lines += [" ".join(map(str, point)), "10 20 30", "1 0 5 1.5 -2.5"]
    file.write_text("\n".join(lines) + "\n")
    (folder / "list.txt").write_text("\n".join([*NAMES, "unplaced.jpg 0 600"]) + "\n")
    return file


KINDS = [colmap, binary, nerfstudio, plain, plain_json, bundler]


def written(model: Model, turn: np.ndarray, output: Path) -> Path:
    for file, content in model.turned(turn, output).items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return output


def output_of(source: Path, folder: Path) -> Path:
    return folder / "out" if source.is_dir() else folder / "out" / source.name


@pytest.mark.parametrize("kind", KINDS)
def test_every_photo_is_turned(tmp_path: Path, kind) -> None:  # type: ignore[no-untyped-def]
    source = kind(tmp_path / "in") if kind is colmap else kind(tmp_path)
    before = read_model(source)
    after = read_model(written(before, TURN, output_of(source, tmp_path)))
    assert len(before.rotations) == len(after.rotations) == len(NAMES)
    # Folders of nerfstudio's paths begin at the file.
    old, new = (
        {Path(name).name: rotation for name, rotation in model.rotations.items()}
        for model in (before, after)
    )
    for name, expected in zip(NAMES, POSES, strict=True):
        name = Path(name).name
        np.testing.assert_allclose(old[name], expected.as_matrix(), atol=1e-9)
        np.testing.assert_allclose(new[name], expected.as_matrix() @ TURN.T, atol=1e-9)


@pytest.mark.parametrize("kind", [colmap, binary])
def test_points_of_colmap_stay_where_photos_see_them(tmp_path: Path, kind) -> None:  # type: ignore[no-untyped-def]
    source = kind(tmp_path / "in")
    out = written(read_model(source), TURN, tmp_path / "out")
    before, after = colmap_model.read_model(source), colmap_model.read_model(out)
    for number, point in before.points.items():
        np.testing.assert_allclose(after.points[number], TURN @ point, atol=1e-12)
        for name, image in before.images.items():
            other = after.images[name]
            seen = other.rotation @ after.points[number] + other.translation
            expected = image.rotation @ point + image.translation
            np.testing.assert_allclose(seen, expected, atol=1e-9)
    assert before.images["a.jpg"].keypoints.tolist() == after.images["a.jpg"].keypoints.tolist()
    assert colmap_model.read_cameras(out).keys() == {1}


def test_frames_of_the_current_colmap(tmp_path: Path) -> None:
    pycolmap = pytest.importorskip("pycolmap")
    text, out = colmap(tmp_path / "text"), tmp_path / "out"
    for write in ("write_binary", "write_text"):
        source = tmp_path / write
        source.mkdir()
        getattr(pycolmap.Reconstruction(str(text)), write)(str(source))
        assert any(file.stem == "frames" for file in source.iterdir())
        shutil.rmtree(out, ignore_errors=True)
        written(read_model(source), TURN, out)
        before, after = pycolmap.Reconstruction(str(source)), pycolmap.Reconstruction(str(out))
        for number, image in before.images.items():
            other = after.images[number]
            expected = image.cam_from_world().rotation.matrix() @ TURN.T
            np.testing.assert_allclose(
                other.cam_from_world().rotation.matrix(), expected, atol=1e-9
            )
            np.testing.assert_allclose(
                other.projection_center(), TURN @ image.projection_center(), atol=1e-9
            )
        for number, point in before.points3D.items():
            np.testing.assert_allclose(after.points3D[number].xyz, TURN @ point.xyz, atol=1e-9)


def test_what_else_nerfstudio_keeps(tmp_path: Path) -> None:
    source = nerfstudio(tmp_path)
    out = written(read_model(source), TURN, tmp_path / "out" / "transforms.json")
    content = json.loads(out.read_text())
    assert (content["fl_x"], content["aabb"]) == (500, 4)
    # Paths start at the new file; places turn along; the way from the first world is told.
    assert [frame["file_path"] for frame in content["frames"]] == [f"../{name}" for name in NAMES]
    for frame, place in zip(content["frames"], PLACES, strict=True):
        np.testing.assert_allclose(np.array(frame["transform_matrix"])[:3, 3], TURN @ place)
    np.testing.assert_allclose(np.array(content["applied_transform"])[:, :3], TURN)


def test_points_of_bundler(tmp_path: Path) -> None:
    out = written(read_model(bundler(tmp_path)), TURN, tmp_path / "out" / "bundle.out")
    lines = out.read_text().splitlines()
    np.testing.assert_allclose(np.array(lines[22].split(), float), TURN @ POINTS[0])
    assert lines[23:25] == ["10 20 30", "1 0 5 1.5 -2.5"]
    assert (tmp_path / "out" / "list.txt").read_text() == (tmp_path / "list.txt").read_text()


def cut(file: Path) -> Path:
    file.write_bytes(file.read_bytes()[:-10])
    return file


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: cut(binary(f) / "images.bin").parent, r"images\.bin is damaged or is no COLMAP"),
        (lambda f: cut(binary(f) / "points3D.bin").parent, r"points3D\.bin is damaged"),
        (lambda f: cut(colmap(f / "a") / "images.txt").parent, "line 6: the name of the image"),
        (lambda f: f, "neither images.bin nor images.txt; give a COLMAP model's folder"),
        (lambda f: f / "missing", "does not exist"),
        (lambda f: cut(nerfstudio(f)), r"transforms\.json is not JSON"),
        (lambda f: cut(plain(f)), r"poses\.txt, d\.jpg"),
        (lambda f: cut(cut(cut(cut(bundler(f))))), "is cut short"),
    ],
)
def test_damaged_models(tmp_path: Path, damage, message: str) -> None:  # type: ignore[no-untyped-def]
    source = damage(tmp_path)
    with pytest.raises(FormatError, match=message):
        read_model(source).turned(TURN, tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "[1]", "neither a transforms.json nor an object of poses"),
        ("a.json", '{"frames": [{"file_path": "a"}]}', "frame 1: a pose is a matrix"),
        ("a.json", '{"a.jpg": [[1,1,0,0],[0,1,0,0],[0,0,1,0]]}', "no rotation and translation"),
        ("a.txt", "a.jpg 1 2 3\n", "line 1: 12 numbers are missing"),
        ("a.txt", "\n", "holds no pose"),
        ("bundle.out", "v3\n", "does not begin with '# Bundle file'"),
        ("bundle.out", "# Bundle file v0.3\n", r"list\.txt is missing"),
        ("a.ply", "ply\n", "holds points and no photos; give the model, and --ply"),
        ("a.jpg", "", "is no model that is read here"),
    ],
)
def test_files_of_others(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(FormatError, match=message):
        read_model(tmp_path / name)
