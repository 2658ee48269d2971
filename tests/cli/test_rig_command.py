"""``geocalib rig``: a rig and folders in, answers out, what does not fit named."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from fake_calibrator import FakeCalibrator, Run, picture
from geocalib.formats import json_lines

PAGE = Path(__file__).parents[2] / "docs" / "rig.md"


@pytest.fixture
def shots(run: Run) -> list[str]:
    """Two steps of two cameras, and a rig of theirs."""
    names = [f"trip/{camera}/{step}.png" for camera in ("left", "right") for step in (1, 2)]
    for seed, name in enumerate(names):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        picture(seed=seed).save(name)
    cameras = {"left": {}, "right": {"yaw_deg": 90}}
    Path("rig.json").write_text(json.dumps({"cameras": cameras}))
    return names


def test_one_fit_of_all(run: Run, shots: list[str], calibrator: FakeCalibrator) -> None:
    Path("w").touch()
    words = ("--camera-model", "radial", "--exif", "--lines", "off", "--weights", "w")
    result = run("rig", "rig.json", "trip", *words, "--device", "cpu")
    assert result.exit_code == 0
    assert result.stderr == "4 photos of 2 cameras at 2 times\n"
    assert "left/1.png" in result.stdout
    assert calibrator.opened == [("w", "cpu")]
    ((images, known),) = calibrator.calls
    assert images == shots
    rig = known.pop("rig")
    assert (list(rig.camera), list(rig.time)) == ([0, 0, 1, 1], [0, 1, 0, 1])
    # What is ahead of the rig is to the left of the camera that looks to the right.
    np.testing.assert_allclose(rig.camera_from_rig[1, :, 2], [-1, 0, 0], atol=1e-12)
    assert known == {
        "camera_model": "radial",
        "shared_intrinsics": [0, 0, 1, 1],
        "exif": True,
        "lines": "off",
        "keep_fields": False,
    }


def test_inputs_and_files_of_others_are_kept(run: Run, shots: list[str]) -> None:
    Path("notes.csv").write_text("dear diary\n")
    before = {path: path.read_bytes() for path in Path.cwd().rglob("*.*")}
    for output in (shots[0], "rig.json", "notes.csv"):
        result = run("rig", "rig.json", "trip", "--csv", "-o", output)
        assert (result.exit_code, len(result.stderr.splitlines())) == (2, 2)
        line = "exists; choose" if output == "notes.csv" else "is an input and stays as it is; choo"
        assert f"error: {output} {line}" in result.stderr
    assert run("rig", "rig.json", "trip", "--json", "-o", "rig.json", "--overwrite").exit_code == 2
    assert {path: path.read_bytes() for path in Path.cwd().rglob("*.*")} == before
    assert run("rig", "rig.json", "trip", "--csv", "-o", "notes.csv", "--overwrite").exit_code == 0


def test_formats(run: Run, shots: list[str]) -> None:
    lines = run("rig", "rig.json", "trip", "--json").stdout.splitlines()
    assert [json.loads(line)["image"] for line in lines] == shots
    rows = list(csv.DictReader(run("rig", "rig.json", "trip", "--csv").stdout.splitlines()))
    assert [row["image"] for row in rows] == shots
    result = run("rig", "rig.json", "trip", "-o", "out.jsonl")
    assert result.stderr.endswith("see out.jsonl\n")
    assert [outcome.image for outcome in json_lines.read("out.jsonl")] == shots
    result = run("rig", "rig.json", "trip", "--format", "ros", "-o", "ros")
    assert result.stderr.endswith("see 4 files in ros\n")
    assert Path("ros/left/1.png.yaml").exists()


def test_patterns_of_the_command(run: Run, calibrator: FakeCalibrator) -> None:
    for name in ("l_7.png", "r_7.png"):
        picture().save(name)
    result = run("rig", "stereo", ".", "--images", "left=l_*", "--images", "right=r_*.png")
    assert result.stderr == "2 photos of 2 cameras at 1 time\n"
    assert calibrator.images == ["l_7.png", "r_7.png"]


def test_strangers_and_missing_photos(run: Run, shots: list[str]) -> None:
    picture().save("trip/map.png")
    result = run("rig", "rig.json", "trip", "gone")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "error: gone does not exist; check the path",
        "error: trip/map.png is of no camera of rig.json: not left/*, right/*",
        "4 photos of 2 cameras at 2 times",
    ]
    assert "left/1.png" in result.stdout
    assert "map" not in result.stdout


def test_a_broken_photo(run: Run, shots: list[str]) -> None:
    Path(shots[0]).write_bytes(b"no picture")
    result = run("rig", "rig.json", "trip", "--json")
    assert result.exit_code == 1
    assert f"error: {shots[0]}" in result.stderr
    errors = [json.loads(line)["error"] is None for line in result.stdout.splitlines()]
    assert errors == [False, True, True, True]


def test_photos_at_different_times(run: Run, shots: list[str]) -> None:
    for name in shots[2:]:
        Path(name).rename(name.replace(".png", "b.png"))
    result = run("rig", "rig.json", "trip")
    assert "warning: no two photos were taken at once" in result.stderr


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("cube", "trip", "--images", "top=t_*"), "--images top=t_*: give CAMERA=PATTERN; the cam"),
        (
            ("cube", "trip", "--images", "up"),
            "--images up: give CAMERA=PATTERN; the cameras are fr",
        ),
        (("cube", "trip", "--images", "up=t"), "cube, camera up: images is 't'; give the end of"),
        (("none.yaml", "trip"), "none.yaml cannot be read: No such file or directory"),
        (("rig.json", "trip", "--lines", "only"), "--lines only knows nothing of rigs"),
        (("rig.json", "trip", "--json", "--csv"), "--json and --csv contradict each other"),
        (("rig.json", "trip", "--format", "ros"), "--format ros writes files; say where"),
        (("rig.json", "trip/left/1.png", "x/left/1.jpg"), "trip/left/1.png and x/left/1.jpg: both"),
    ],
)
def test_bad_words(run: Run, shots: list[str], words: tuple[str, ...], line: str) -> None:
    Path("x/left").mkdir(parents=True)
    picture().save("x/left/1.jpg")
    result = run("rig", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {line}")
    assert result.stderr.count("\n") == 1


def test_no_photo_of_the_rig(run: Run, shots: list[str]) -> None:
    result = run("rig", "cube", "trip/right/1.png", "--images", "right=r_*")
    assert result.exit_code == 2
    assert "error: no photo is of cube: none is front/*, r_*," in result.stderr


def test_the_page_names_every_option(run: Run) -> None:
    page = PAGE.read_text()
    options = set(re.findall(r"--[a-z-]+", run("rig", "--help").stdout))
    assert {option for option in options if option not in page} == {"--help"}
