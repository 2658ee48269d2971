"""``geocalib localize``: models and matches in, poses out, bad lines named."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import calibrations
from fake_calibrator import Run
from geocalib.cameras import Camera
from geocalib.formats import json_lines
from geocalib.localize.colmap_model import read_cameras, read_model
from geocalib.localize.rotation import from_quaternion
from matched_views import View, make_view

QUERY = "a.jpg PINHOLE 1000 800 800 800 500 400"


@pytest.fixture
def view() -> View:
    """Of 40 matches 30 are right."""
    return make_view(0, right=30, wrong=10, noise=0.5)


@pytest.fixture
def files(run: Run, view: View) -> None:
    """A model whose points are those of the view, one image of it, and matches of a query."""
    Path("model").mkdir()
    Path("model/cameras.txt").write_text("1 PINHOLE 1000 800 800 800 500 400\n")
    Path("model/images.txt").write_text("1 1 0 0 0 0 0 0 1 db/1.jpg\n10 20 1 30 40 -1\n")
    points = enumerate(view.points.tolist(), 1)
    lines = [f"{key} {x!r} {y!r} {z!r} 0 0 0 0.5 1 0\n" for key, (x, y, z) in points]
    Path("model/points3D.txt").write_text("".join(lines))
    pixels = enumerate(view.pixels.tolist(), 1)
    Path("matches.txt").write_text("".join(f"a.jpg {x!r} {y!r} {key}\n" for key, (x, y) in pixels))
    Path("queries.txt").write_text(f"# queries\n{QUERY}\n")


def poses(path: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rotation and centre by name."""
    found = {}
    for line in Path(path).read_text().splitlines():
        name, *numbers = line.split()
        values = np.array(numbers, dtype=float)
        rotation = from_quaternion(values[:4])
        found[name] = rotation, -rotation.T @ values[4:]
    return found


def localize(run: Run, *more: object) -> object:
    return run("localize", "model", "queries.txt", "--matches", "matches.txt", *more)


def check(view: View, rotation: np.ndarray, centre: np.ndarray) -> None:
    degrees, metres = view.errors(rotation, centre)
    assert degrees < 0.2
    assert metres < 0.03


@pytest.mark.usefixtures("files")
def test_poses_for_hloc(run: Run, view: View) -> None:
    result = localize(run, "-o", "out/poses.txt")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "1 pose written to out/poses.txt\n"
    ((name, pose),) = poses("out/poses.txt").items()
    assert name == "a.jpg"
    check(view, *pose)


@pytest.mark.usefixtures("files")
def test_poses_as_a_model(run: Run, view: View) -> None:
    assert localize(run, "-o", "out", "--format", "colmap").exit_code == 0
    image = read_model("out").images["a.jpg"]
    check(view, image.rotation, -image.rotation.T @ image.translation)
    assert read_cameras("out")[image.camera_id].K[0].tolist() == view.camera.K[0].tolist()
    if shutil.which("colmap"):
        Path("binary").mkdir()
        ends = ["--input_path", "out", "--output_path", "binary", "--output_type", "BIN"]
        subprocess.run(["colmap", "model_converter", *ends], check=True, capture_output=True)
        again = read_model("binary").images["a.jpg"]
        assert again.rotation == pytest.approx(image.rotation, abs=1e-9)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("output", "line"),
    [
        (("model", "--format", "colmap"), "model/cameras.txt lies in "),
        (("model/poses.txt",), "model/poses.txt lies in "),
        (("queries.txt",), "queries.txt is an input and stays as it is; choose another output"),
        (("matches.txt",), "matches.txt is an input and stays"),
        (("linked.txt",), "linked.txt is an input and stays"),
    ],
)
def test_inputs_are_never_written_to(run: Run, output: tuple[str, ...], line: str) -> None:
    Path("linked.txt").hardlink_to("queries.txt")
    before = {path: path.read_bytes() for path in Path.cwd().rglob("*.txt")}
    result = localize(run, "--overwrite", "-o", *output)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {line}")
    assert {path: path.read_bytes() for path in Path.cwd().rglob("*.txt")} == before


@pytest.mark.usefixtures("files")
def test_a_model_of_others_is_kept(run: Run) -> None:
    Path("mine").mkdir()
    Path("mine/points3D.txt").write_text("1 2 3\n")
    result = localize(run, "-o", "mine", "--format", "colmap")
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert "mine/points3D.txt exists; choose another name or add --overwrite" in result.stderr
    assert [path.name for path in Path("mine").iterdir()] == ["points3D.txt"]
    assert localize(run, "-o", "mine", "--format", "colmap", "--overwrite").exit_code == 0
    assert "a.jpg" in read_model("mine").images


@pytest.mark.usefixtures("files")
def test_bad_lines_are_named_and_left_out(run: Run, view: View) -> None:
    with Path("matches.txt").open("a") as file:
        file.write("a.jpg 1 2\na.jpg 1 2 999\na.jpg nan 2 1\n")
    with Path("queries.txt").open("a") as file:
        file.write("b.jpg FOV 1 2 3\nc.jpg PINHOLE wide\nd.jpg PINHOLE 9 9 9 9 4 4\ne.jpg\n")
    result = localize(run, "-o", "poses.txt")
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert lines[0].startswith("error: queries.txt, line 3: COLMAP's FOV has no counterpart here")
    assert lines[1].startswith("error: queries.txt, line 4: must be NAME or NAME MODEL WIDTH")
    assert lines[2:] == [
        "error: matches.txt, line 41: must be NAME X Y POINT3D_ID, got 'a.jpg 1 2'",
        "error: matches.txt, line 42: the model has no 3D point 999",
        "error: matches.txt, line 43: must be NAME X Y POINT3D_ID, got 'a.jpg nan 2 1'",
        "error: d.jpg: failed: a pose needs at least 4 matches whose pixels have a ray",
        "error: e.jpg: has no camera; give MODEL WIDTH HEIGHT PARAMS[] or a --calibration",
        "1 pose written to poses.txt",
    ]
    check(view, *poses("poses.txt")["a.jpg"])


@pytest.mark.usefixtures("files")
def test_camera_and_gravity_of_a_calibration(run: Run, view: View) -> None:
    """Gravity in the world comes from the calibrated photo of the model, whose pose is trivial."""
    down = calibrations.one().gravity
    camera = Camera.create("pinhole", f=800.0, size=(1000, 800), dtype=np.float64)
    query = replace(
        calibrations.one("pinhole", image="photos/a.jpg"),
        cameras=camera,
        gravity=view.rotation @ down,
    )
    mapped = replace(query, image="photos/db/1.jpg", gravity=down)
    json_lines.write([query, mapped, calibrations.FAILURE], "calibrations.jsonl")
    Path("queries.txt").write_text("a.jpg\n")
    result = localize(run, "-o", "poses.txt", "--calibration", "calibrations.jsonl")
    assert (result.exit_code, result.stderr) == (0, "1 pose written to poses.txt\n")
    check(view, *poses("poses.txt")["a.jpg"])
    json_lines.write([query], "calibrations.jsonl")
    again = ("-o", "poses.txt", "--overwrite", "--calibration", "calibrations.jsonl")
    result = localize(run, *again)
    assert result.exit_code == 0
    assert "warning: gravity is not used: no image of the model is calibrated" in result.stderr
    result = localize(run, *again, "--world-gravity", 0, 0, 0)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: a.jpg: the world gravity must be 3 finite numbers")


@pytest.mark.usefixtures("files")
def test_gravity_needs_calibrated_queries(run: Run) -> None:
    json_lines.write([replace(calibrations.one("pinhole"), image="db/1.jpg")], "others.jsonl")
    for more in (("--world-gravity", 0, 1, 0), ("--calibration", "others.jsonl")):
        result = localize(run, "-o", "poses.txt", "--overwrite", *more)
        assert result.exit_code == 0
        assert "warning: gravity is not used: no query is calibrated" in result.stderr


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("model", "none.txt", "--matches", "matches.txt"), "none.txt names no photo; give it"),
        (("model", "photo.jpg", "--matches", "matches.txt"), "photo.jpg is no text; it must hold"),
        (("model", "queries.txt", "--matches", "photo.txt"), "photo.txt is no text; it must hold"),
        (("gone", "queries.txt", "--matches", "matches.txt"), "gone holds neither images.bin nor"),
        (("model", "gone.txt", "--matches", "matches.txt"), "gone.txt: No such file or directory"),
        (("model", "queries.txt", "--matches", "m.h5"), "m.h5: matches in HDF5 need --features"),
        (
            ("model", "queries.txt", "--matches", "matches.txt", "--threshold", "-1"),
            "threshold must be above 0, got -1.0",
        ),
    ],
)
def test_nothing_can_be_done(run: Run, arguments: tuple[str, ...], line: str) -> None:
    Path("none.txt").write_text("# nothing yet\n")
    for name in ("photo.jpg", "photo.txt"):
        Path(name).write_bytes(b"\xff\xd8\xff\xe0\0\x10JFIF\0\n\xe1\n\0")
    result = run("localize", *arguments, "-o", "poses.txt")
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith(f"error: {line}")
    assert not Path("poses.txt").exists()
