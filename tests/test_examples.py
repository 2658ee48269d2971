"""The programs of examples/ do what they say, on the rendered photo whose camera is known."""

from __future__ import annotations

import json
import math
import re
import shutil
import sqlite3
import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from geocalib import Calibrator, Camera
from geocalib.geometry.gravity import from_roll_pitch, world_from_camera
from scripts import load_script

EXAMPLES = Path(__file__).parents[1] / "examples"
TOWN = EXAMPLES / "town.jpg"
TRUTH = json.loads((EXAMPLES / "town.json").read_text(encoding="utf-8"))
EYE_HEIGHT = 1.6

Main = Callable[[Sequence[str]], int]


@pytest.fixture
def example(packaged: Calibrator, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Main]:
    """The main function of an example by its name."""

    def load(name: str) -> Main:
        module = load_script(EXAMPLES / f"{name}.py")
        # The weights are read once.
        monkeypatch.setattr(module, "Calibrator", lambda: packaged)
        main: Main = module.main
        return main

    return load


def test_straightened_photos_are_straight(
    example: Callable[[str], Main], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def angles(*arguments: str) -> list[float]:
        assert example("straighten")([*arguments, "-o", str(tmp_path)]) == 0
        found = re.findall(r"(?:roll|pitch) ([-+.\d]+)", capsys.readouterr().out)
        return [float(angle) for angle in found]

    photo = tmp_path / "town.jpg"
    Image.open(TOWN).resize((480, 320)).save(photo)
    truth = [TRUTH["roll_deg"], TRUTH["pitch_deg"]]
    np.testing.assert_allclose(angles(str(photo)), truth, atol=1)
    upright = angles(str(tmp_path / "town-upright.jpg"))
    assert abs(upright[0]) < 0.5
    assert upright[1] > 5
    # Its principal point is no longer in the middle, which costs a degree of pitch.
    np.testing.assert_allclose(angles(str(tmp_path / "town-rectified.jpg")), 0, atol=2)


def test_what_is_unsure_is_left_as_it_is(
    example: Callable[[str], Main], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grey = tmp_path / "grey.jpg"
    Image.new("RGB", (96, 64), "grey").save(grey)
    assert example("straighten")([str(grey), "-o", str(tmp_path / "out")]) == 1
    assert "left as it is" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_ball_stands_where_it_was_asked_to(
    example: Callable[[str], Main], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = (0.45, 0.85)
    words = ["--at", *map(str, place), "-o", str(tmp_path)]
    assert example("insert_object")(words) == 0
    (distance,) = re.findall(r"stands ([.\d]+) m", capsys.readouterr().out)
    photo = Image.open(TOWN)
    f = 0.5 * photo.height / math.tan(math.radians(0.5 * TRUTH["vfov_deg"]))
    camera = Camera.create("pinhole", f=f, size=photo.size)
    gravity = from_roll_pitch(*np.deg2rad([TRUTH["roll_deg"], TRUTH["pitch_deg"]]))
    pixel = np.multiply(place, photo.size)
    ray = world_from_camera(gravity) @ camera.unproject(pixel[None, None])[0][0, 0]
    expected = EYE_HEIGHT * math.hypot(ray[0], ray[2]) / ray[1]
    assert float(distance) == pytest.approx(expected, rel=0.05)

    made = np.asarray(Image.open(tmp_path / "town-ball.jpg"), dtype=float)
    changed = np.abs(made - np.asarray(photo, dtype=float)).max(-1) > 60
    rows, columns = np.nonzero(changed)
    # The ball touches the ground at that pixel, and is 0.8 m high.
    assert abs(rows.max() - pixel[1]) < 10
    assert np.ptp(rows) == pytest.approx(0.8 * f / expected, rel=0.15)
    assert columns.min() < pixel[0] < columns.max()


def test_no_ball_in_the_sky(
    example: Callable[[str], Main], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert example("insert_object")(["--at", "0.5", "0.1", "-o", str(tmp_path)]) == 2
    assert "horizon" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def test_colmap_takes_the_lenses(
    example: Callable[[str], Main], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos = tmp_path / "my photos"
    photos.mkdir()
    photo = Image.open(TOWN)
    for name, width in (("1.jpg", 240), ("2.jpg", 240), ("other.jpg", 192)):
        photo.resize((width, width * 2 // 3)).save(photos / name)
    (photos / "broken.jpg").write_bytes(TOWN.read_bytes()[:5000])
    out = tmp_path / "out"
    words = [*map(str, sorted(photos.iterdir())), "-o", str(out)]
    assert example("colmap_priors")(words) == 1
    assert "broken.jpg" in capsys.readouterr().err
    assert (out / "camera_1.txt").read_text().split() == ["1.jpg", "2.jpg"]
    assert (out / "camera_2.txt").read_text().split() == ["other.jpg"]
    gravity = np.loadtxt(out / "gravity.txt", usecols=(1, 2, 3))
    truth = from_roll_pitch(*np.deg2rad([TRUTH["roll_deg"], TRUTH["pitch_deg"]]))
    assert (gravity @ truth > math.cos(math.radians(3))).all()

    if shutil.which("colmap") is None:
        pytest.skip("there is no colmap; apt-get install colmap")
    script = ["sh", str(out / "features.sh"), "--SiftExtraction.use_gpu", "0"]
    subprocess.run(script, check=True, capture_output=True)
    with sqlite3.connect(out / "database.db") as database:
        cameras = database.execute("SELECT width, params, prior_focal_length FROM cameras")
        found = {width: (struct.unpack("4d", params)[0], known) for width, params, known in cameras}
        images = database.execute("SELECT count(*) FROM images").fetchone()
    database.close()
    assert images == (3,)
    focals = map(float, re.findall(r"camera_params ([.\d]+)", (out / "features.sh").read_text()))
    assert found == {240: (next(focals), 1), 192: (next(focals), 1)}
