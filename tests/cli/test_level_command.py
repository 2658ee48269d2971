"""``geocalib level``: a model and the calibrations of its photos become an upright model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner, Result

from geocalib.cli.app import app
from geocalib.formats import json_lines
from geocalib.level.models import read_model
from leaning import DOWN, photos


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["level", *map(str, words)])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Poses of 20 photos, three of which are wrong about gravity; what was found; a cloud."""
    rotations, calibrations = photos(20, (0.5, 1.0), wrong=3)
    lines = [
        f"{number}.jpg {' '.join(map(repr, np.column_stack([R.T, np.ones(3)]).ravel().tolist()))}"
        for number, R in enumerate(rotations)
    ]
    (tmp_path / "poses.txt").write_text("\n".join(lines) + "\n")
    json_lines.write(calibrations, tmp_path / "out.jsonl")
    header = "ply\nformat ascii 1.0\nelement vertex 1\n"
    header += "".join(f"property float {name}\n" for name in "xyz") + "end_header\n"
    (tmp_path / "cloud.ply").write_text(header + " ".join(map(str, DOWN)) + "\n")
    return tmp_path


@pytest.mark.parametrize(("up", "axis"), [("z", (0, 0, 1)), ("y", (0, 1, 0)), ("-y", (0, -1, 0))])
def test_poses_and_points_are_set_upright(model: Path, up: str, axis: tuple[int, ...]) -> None:
    out = model / "new" / "poses.txt"
    result = run(
        *(model / "poses.txt", "-o", out, "--calibration", model / "out.jsonl"),
        *("--ply", model / "cloud.ply", f"--up={up}"),
    )
    assert result.exit_code == 0, result.output
    assert "by 17 photos" in result.output
    assert result.output.count("degrees off and was left out") == 3
    before, after = read_model(model / "poses.txt"), read_model(out)
    turns = [after.rotations[name].T @ R for name, R in before.rotations.items()]
    for turn in turns:
        np.testing.assert_allclose(turn, turns[0], atol=1e-9)
        assert np.degrees(np.arccos(-(turn @ DOWN) @ axis)) < 0.6
    # The shortest turn: its axis is level.
    assert Rotation.from_matrix(turns[0]).as_rotvec() @ axis == pytest.approx(0, abs=1e-9)
    point = np.array((model / "new" / "cloud.ply").read_text().split()[-3:], float)
    np.testing.assert_allclose(point, turns[0] @ DOWN, atol=1e-6)


def test_nothing_is_overwritten(model: Path) -> None:
    given = (model / "poses.txt", "--calibration", model / "out.jsonl")
    before = {file: file.read_bytes() for file in model.iterdir()}
    result = run(*given, "-o", model / "poses.txt")
    assert result.exit_code == 2
    assert "is an input and stays as it is" in result.output
    (model / "old.txt").write_text("mine")
    result = run(*given, "-o", model / "old.txt")
    assert result.exit_code == 2
    assert "old.txt exists; choose another name or add --overwrite" in result.output
    (model / "old.txt").unlink()
    # A damaged cloud costs nothing: no file of the model appears.
    (model / "bad.ply").write_bytes((model / "cloud.ply").read_bytes()[:-30])
    result = run(*given, "-o", model / "new.txt", "--ply", model / "bad.ply")
    assert result.exit_code == 2
    assert "bad.ply is cut short" in result.output
    (model / "bad.ply").unlink()
    assert {file: file.read_bytes() for file in model.iterdir()} == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "which photos? Add --images DIR, or --calibration FILE"),
        (("--calibration", "out.jsonl", "--heading"), "--heading looks at the walls"),
        (("--images", "nowhere"), "no photo of poses.txt is calibrated"),
        (("--calibration", "out.jsonl", "--ply", "no.ply"), "no.ply does not exist"),
    ],
)
def test_what_is_missing_is_said(
    model: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(model)
    result = run("poses.txt", "-o", "new.txt", *words)
    assert result.exit_code == 2
    assert message in result.output
    assert not Path("new.txt").exists()
