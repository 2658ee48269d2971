"""What ``make demo`` shows, and the photograph that it shows."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from geocalib import Camera
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.synthetic import render_scene

EXAMPLES = Path(__file__).parents[1] / "examples"
TRUTH = json.loads((EXAMPLES / "town.json").read_text(encoding="utf-8"))
TOWN = 8

# What the packaged weights must reach, in degrees and pixels.
LARGEST_ERROR = {"roll": 2.0, "pitch": 2.0, "vFoV": 10.0, "focal": 100.0}


def test_demo_finds_the_camera_and_draws_it(tmp_path: Path) -> None:
    # One thread: on a busy machine, threads that wait for each other are slow.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = [sys.executable, "-W", "error", str(EXAMPLES / "demo.py")]
    shown = subprocess.run(
        run, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
    ).stdout
    rows = [line.split() for line in shown.splitlines()]
    found = {
        row[0]: [float(v) for v in row[-3:]] for row in rows if row and row[0] in LARGEST_ERROR
    }
    assert found.keys() == LARGEST_ERROR.keys()
    for name, (true, estimated, sigma) in found.items():
        assert abs(estimated - true) < LARGEST_ERROR[name]
        assert sigma > 0
    assert [found[name][0] for name in ("roll", "pitch", "vFoV")] == list(TRUTH.values())
    assert "status: converged" in shown
    with Image.open(tmp_path / "out" / "demo.png") as picture:
        assert picture.width == 1600


def test_the_photograph_is_that_of_the_camera_beside_it() -> None:
    photo = Image.open(EXAMPLES / "town.jpg")
    small = (120, 80)
    assert photo.width * small[1] == photo.height * small[0]
    f = 0.5 * small[1] / math.tan(math.radians(0.5 * TRUTH["vfov_deg"]))
    angles = torch.tensor([[TRUTH["roll_deg"]], [TRUTH["pitch_deg"]]])
    camera = Camera.create("pinhole", f=f, size=small)
    gravity = from_roll_pitch(*angles.deg2rad())

    def difference(gravity: torch.Tensor) -> float:
        expected = 255 * render_scene(camera, gravity, TOWN)[0].numpy()
        found = np.asarray(photo.resize(small, Image.Resampling.BOX), dtype=np.float32)
        return float(np.abs(expected - found).mean())

    # Far tiles melt earlier in the smaller picture; a camera off by two degrees is far worse.
    assert difference(gravity) < 5
    for off in ([[2.0], [0.0]], [[0.0], [2.0]]):
        assert difference(from_roll_pitch(*(angles + torch.tensor(off)).deg2rad())) > 8
