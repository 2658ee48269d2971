"""What Blender itself sees of cameras of ours, without a display."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from geocalib.formats.scenes import EYE_HEIGHT
from geocalib.geometry.gravity import world_from_camera
from geocalib.result.calibration import Calibration

CHECK = Path(__file__).parent / "formats" / "in_blender.py"

needs_blender = pytest.mark.skipif(shutil.which("blender") is None, reason="no Blender here")


def in_blender(out: Path, *words: object) -> dict[str, Any]:
    """What Blender says after running scripts, without a display."""
    command = ["blender", "-b", "--factory-startup", "--python-exit-code", "3", *words]
    done = subprocess.run([str(w) for w in command], capture_output=True, text=True)
    if "No module named 'numpy'" in done.stderr + done.stdout:
        pytest.skip("this Blender has no NumPy, which it reads glTF with")
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def photo(folder: Path, size: tuple[int, int] = (640, 480)) -> str:
    path = folder / "photo.jpg"
    Image.effect_noise(size, 50).convert("RGB").save(path)
    return str(path)


def seen(calibration: Calibration, points: np.ndarray) -> np.ndarray:
    """(N, 2) pixels of points in the world with z up, by our own camera, the lens included."""
    level = (points - [0, 0, EYE_HEIGHT]) @ np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
    pixels, _ = calibration.cameras.project((level @ world_from_camera(calibration.gravity))[None])
    return pixels[0]


def compare(found: dict[str, Any], calibration: Calibration) -> float:
    """The largest difference in pixels, of points within three pictures around the picture."""
    pixels, corners = np.array(found["pixels"]), np.array(found["corners"])
    size = np.array([calibration.width, calibration.height])
    near = (np.abs(pixels[:, :2] - size / 2) < 1.5 * size).all(1) & (pixels[:, 2] > 0)
    assert near.sum() > 4
    return float(np.abs(pixels[near, :2] - seen(calibration, corners[near])).max())
