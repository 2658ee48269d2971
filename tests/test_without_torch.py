"""Where torch is not installed: everything but training and panoramas works, and answers alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from geocalib import Calibrator

ROOT = Path(__file__).parents[1]
PHOTO = ROOT / "examples" / "town.jpg"

BLOCKED = "import sys; sys.modules['torch'] = None\n"
"""What makes torch as good as not installed."""

COMMAND = BLOCKED + "from geocalib.cli.app import main; main()"

COMMANDS = (
    BLOCKED
    + """
import json
from geocalib.cli.app import app
for words in json.loads(sys.argv[1]):
    app(words, standalone_mode=False)
"""
)
"""Several of them, given as JSON, in one process."""


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program of its own, with one thread."""
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def numbers(record: dict[str, Any]) -> list[float]:
    names = ("roll_deg", "pitch_deg", "vfov_deg", "fx")
    return [record[name] for name in names] + [record["sigma"][name] for name in names[:3]]


def test_answers_are_those_with_torch(tmp_path: Path) -> None:
    photos = [tmp_path / name for name in ("a.jpg", "b.jpg")]
    for photo in photos:
        Image.open(PHOTO).reduce(4).save(photo)
    out = tmp_path / "out"
    out.mkdir()
    kept = out / "one.jsonl"
    commands = (
        ["calibrate", photos[0], "--json", "-o", kept],
        ["calibrate", *photos, "--shared", "--json", "-o", out / "set.jsonl"],
        ["calibrate", photos[0], "--lines", "only", "--json", "-o", out / "lines.jsonl"],
        ["show", photos[0], "-o", out / "shown.png"],
        ["rectify", photos[0], "--calibration", kept, "-o", out / "rectified.png"],
        ["info"],
        ["info", photos[0]],
    )
    done = run(COMMANDS, json.dumps(commands, default=str))
    assert done.returncode == 0, done.stderr
    calibrator = Calibrator(device="cpu", engine="torch")
    records = {
        name: [json.loads(line) for line in (out / f"{name}.jsonl").read_text().splitlines()]
        for name in ("one", "set", "lines")
    }
    alone = calibrator.calibrate(photos[0])
    assert numbers(records["one"][0]) == pytest.approx(numbers(alone.to_dict()), abs=0.01)
    several = calibrator.calibrate_set(photos)
    for record, outcome in zip(records["set"], several, strict=True):
        assert numbers(record) == pytest.approx(numbers(outcome.to_dict()), abs=0.01)
    by_lines = calibrator.calibrate(photos[0], lines="only")
    assert numbers(records["lines"][0]) == pytest.approx(numbers(by_lines.to_dict()), rel=1e-9)
    assert (out / "shown.png").is_file()
    assert (out / "rectified.png").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["calibrate", str(PHOTO), "--engine", "torch"], "this engine needs torch"),
        (["calibrate", str(PHOTO), "--weights", "published-pinhole"], "published-pinhole needs"),
        (["export", "onnx", "-o", "lean.onnx"], "export needs torch"),
    ],
)
def test_what_needs_torch_says_so_in_one_line(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(COMMAND, *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert 'pip install "geocalib[torch]"' in done.stderr
    assert done.stderr.count("\n") == 1


def test_tensors_of_the_published_interface_need_torch() -> None:
    done = run(BLOCKED + "from geocalib import GeoCalib; next(GeoCalib('lean').parameters())")
    last = done.stderr.splitlines()[-1]
    assert last.endswith('tensors need torch: pip install "geocalib[torch]"')


def test_helpers_of_the_published_interface_do_without_torch() -> None:
    script = """
import numpy as np
from geocalib.errors import MissingPackageError
from geocalib.utils import get_device, numpy_image_to_torch, torch_image_to_numpy
assert get_device() == "cpu"
assert (torch_image_to_numpy(np.full((3, 4, 6), 0.2)) == 51).all()
try:
    numpy_image_to_torch(np.zeros((4, 6, 3)))
except MissingPackageError as error:
    print(error)
"""
    done = run(BLOCKED + script)
    assert done.stdout == 'tensors need torch: pip install "geocalib[torch]"\n', done.stderr


def test_a_calibrator_starts_with_nothing_heavy() -> None:
    heavy = "torch", "array_api_compat", "matplotlib", "typer", "rich", "scipy", "yaml"
    done = run(
        "import sys; from geocalib import Calibrator; Calibrator(device='cpu');"
        f"print(*sorted(set({heavy}) & set(sys.modules)))"
    )
    assert done.stderr == ""
    assert done.stdout.split() == []
