"""cameras.txt: by hand, by our reader, and by COLMAP itself where it is installed."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calibrations import FAILURE, one, several
from geocalib.cameras import to_colmap
from geocalib.cameras.exchange import COLMAP_NAMES
from geocalib.errors import FormatError
from geocalib.formats import colmap
from peers import Note, note

ANY_VERSION = ("pinhole", "simple_radial", "radial", "kannala_brandt")
"""Models that every version of COLMAP has."""


def test_by_hand() -> None:
    pinhole = one("pinhole", image="in/p.jpg", c=(320, 240), aspect=2)
    assert colmap.dumps([FAILURE, *several(), pinhole]) == (
        "# CAMERA_ID MODEL WIDTH HEIGHT PARAMS[], one line per camera\n"
        "# of the pixels as they are stored: EXIF orientation is not applied\n"
        "1 SIMPLE_RADIAL 640 480 500.0 310.3 251.7 -0.12\n"
        "2 SIMPLE_RADIAL 480 640 500.0 240.0 320.0 -0.12\n"
        "3 PINHOLE 640 480 1000.0 500.0 320.0 240.0\n"
        "# CAMERA_ID IMAGE, one comment per image\n"
        "# 1 left/a.jpg\n"
        "# 1 left/b.jpg\n"
        "# 2 right/a.jpg\n"
        "# 3 in/p.jpg\n"
    )


@pytest.mark.parametrize("model", COLMAP_NAMES)
@pytest.mark.parametrize("aspect", [1.0, 1.1])
def test_round_trip(tmp_path: Path, model: str, aspect: float) -> None:
    written = one(model, f=1 / 3 + 300, aspect=aspect)
    assert colmap.write([written], tmp_path) == [tmp_path / "cameras.txt"]
    for path in (tmp_path, tmp_path / "cameras.txt"):
        ((number, camera),) = colmap.read(path).items()
        assert number == 1
        ((name, parameters),) = to_colmap(camera)
        ((expected_name, expected),) = to_colmap(written.cameras)
        assert name == expected_name
        assert parameters == pytest.approx(expected, rel=1e-15)
        assert camera.size.tolist() == [[640, 480]]
        assert camera.f.dtype == np.float64


@pytest.mark.skipif(shutil.which("colmap") is None, reason="COLMAP is not installed")
def test_colmap_itself_reads_it(tmp_path: Path, record_property: Note) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    theirs.mkdir()
    written = [
        one(model, f=1 / 3 + 300 + i, aspect=aspect, image=f"line\nbreak {i} {aspect}.jpg")
        for i, model in enumerate(ANY_VERSION)
        for aspect in (1.0, 1.1)
    ]
    colmap.write(written, ours)
    # A model of COLMAP's is a folder of three files.
    for name in ("images.txt", "points3D.txt"):
        (ours / name).touch()
    command = f"colmap model_converter --input_path {ours} --output_path {theirs} --output_type TXT"
    subprocess.run(command.split(), check=True, capture_output=True)
    lines = (theirs / "cameras.txt").read_text().splitlines()
    cameras = sorted(line.split() for line in lines if not line.startswith("#"))
    assert len(cameras) == len(written)
    for number, (camera, calibration) in enumerate(zip(cameras, written, strict=True), 1):
        ((name, parameters),) = to_colmap(calibration.cameras)
        assert camera[:4] == [str(number), name, "640", "480"]
        assert tuple(map(float, camera[4:])) == parameters
    note(record_property, "colmap", "COLMAP", 0)


def test_a_line_break_in_a_name_stays_in_its_comment() -> None:
    text = colmap.dumps([replace(one(), image="a\n1 PINHOLE.jpg")])
    assert text.endswith("# 1 a 1 PINHOLE.jpg\n")


def test_a_model_that_colmap_lacks() -> None:
    message = (
        r"photo\.jpg: COLMAP has no counterpart of double_sphere.*; "
        r"calibrate with camera_model='kannala_brandt'"
    )
    with pytest.raises(FormatError, match=message):
        colmap.dumps([one("double_sphere")])


def test_no_camera_at_all() -> None:
    with pytest.raises(FormatError, match=r"no camera to write; broken\.jpg: broken\.jpg: the"):
        colmap.dumps([FAILURE])
    with pytest.raises(FormatError, match="no camera to write; no image"):
        colmap.dumps([])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 PINHOLE 640", "line 2: must be CAMERA_ID MODEL WIDTH HEIGHT PARAMS.*'1 PINHOLE 640'"),
        ("1 PINHOLE 640 480 f 1 2 3", "line 2: must be CAMERA_ID"),
        ("1 FOV 640 480 1 1 1 1 1", "line 2: COLMAP's FOV has no counterpart here"),
        ("1 RADIAL 640 480 500", "line 2: COLMAP's RADIAL has 5 parameters"),
        ("7 SIMPLE_PINHOLE 640 480 500 1 1", "line 2: camera 7 is given twice"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "cameras.txt"
    path.write_text(f"7 SIMPLE_PINHOLE 640 480 500 1 1\n{line}\n")
    with pytest.raises(FormatError, match=rf"cameras\.txt, {message}"):
        colmap.read(path)
