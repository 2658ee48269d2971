"""Files beside photos: as phones and scanning programs write them, and bad ones."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from calibrations import one
from geocalib.errors import FormatError
from geocalib.priors.gravity_reading import GravityReading
from geocalib.priors.readings import read_sidecar, sidecar_path

LEVEL = [[1, 0, 0, 0.3], [0, 1, 0, 1.2], [0, 0, 1, -2], [0, 0, 0, 1]]
"""ARKit's pose of a phone on its side, that looks at the horizon."""
SCANNER = {
    "cameraPoseARFrame": [
        *(0, 1, 0, 0.5),
        *(-0.7660444, 0, 0.6427876, -0.25),
        *(0.6427876, 0, 0.7660444, 2),
        *(0, 0, 0, 0.9999999),
    ],
    "intrinsics": [1450, 0, 960, 0, 1450, 720, 0, 0, 1],
    "frame_index": 12,
    "time": 31210.4,
}
"""As the 3D Scanner App writes frame_00012.json, shortened."""


def polycam(transform: list[list[float]]) -> dict[str, Any]:
    entries = {f"t_{r}{c}": transform[r][c] for r in range(3) for c in range(4)}
    return {"fx": 800, "fy": 800, "width": 1024, "height": 768, "blur_score": 90, **entries}


def write(folder: Path, values: Any) -> str:
    path = folder / "IMG.json"
    path.write_text(values if isinstance(values, str) else json.dumps(values))
    return str(path)


def read(folder: Path, values: Any, orientation: int = 1) -> GravityReading:
    hint = read_sidecar(write(folder, values), orientation)
    assert hint is not None
    assert math.hypot(*hint.gravity) == pytest.approx(1)
    return hint


def test_where_it_lies() -> None:
    assert sidecar_path("a.b/IMG.jpg") == "a.b/IMG.json"


class TestAccelerometer:
    def test_in_the_frame_of_the_picture(self, tmp_path: Path) -> None:
        hint = read(tmp_path, {"gravity": [0, 9.81, 0], "frame": "camera"}, orientation=6)
        assert hint.gravity == (0, 1, 0)
        assert hint.sigma_deg == 1.0
        assert hint.source == "accelerometer in IMG.json"

    @pytest.mark.parametrize(
        ("device", "orientation"),
        [
            ((0, -1, 0), 6),  # Upright phone.
            ((-1, 0, 0), 1),  # Its top to the left.
            ((1, 0, 0), 3),  # Its top to the right.
            ((0, 1, 0), 8),  # Upside down.
        ],
    )
    def test_a_phone_held_level_any_way(
        self, tmp_path: Path, device: tuple[float, ...], orientation: int
    ) -> None:
        values = {"gravity": device, "frame": "device"}
        assert read(tmp_path, values, orientation).gravity == pytest.approx((0, 1, 0))
        stated = values | {"orientation": orientation}
        assert read(tmp_path, stated).gravity == pytest.approx((0, 1, 0))

    def test_a_phone_that_lies_on_a_table_looks_down(self, tmp_path: Path) -> None:
        values = {"gravity": [0, 0, -1], "frame": "device", "sigma_deg": 2}
        hint = read(tmp_path, values, orientation=6)
        assert hint.gravity == pytest.approx((0, 0, 1))
        assert hint.sigma_deg == 2

    def test_an_upright_phone_rolled_clockwise(self, tmp_path: Path) -> None:
        # Its right side sinks: gravity turns to x of the phone and of the picture alike.
        sine, cosine = math.sin(0.2), math.cos(0.2)
        hint = read(tmp_path, {"gravity": [sine, -cosine, 0], "frame": "device"}, orientation=6)
        assert hint.gravity == pytest.approx((sine, cosine, 0))


class TestPose:
    def test_level(self, tmp_path: Path) -> None:
        hint = read(tmp_path, {"transform": LEVEL})
        assert hint.gravity == pytest.approx((0, 1, 0))
        assert hint.sigma_deg == 0.5
        assert hint.source == "AR pose in IMG.json"

    def test_looking_up(self, tmp_path: Path) -> None:
        # Turned about the camera's x by 0.3: its -z, where it looks, rises.
        sine, cosine = math.sin(0.3), math.cos(0.3)
        pose = [[1, 0, 0, 0], [0, cosine, -sine, 0], [0, sine, cosine, 0], [0, 0, 0, 1]]
        assert read(tmp_path, {"transform": pose}).gravity == pytest.approx((0, cosine, -sine))

    def test_by_columns_and_as_sixteen_numbers(self, tmp_path: Path) -> None:
        rows = SCANNER["cameraPoseARFrame"]
        assert isinstance(rows, list)
        columns = [rows[r * 4 + c] for c in range(4) for r in range(4)]
        by_rows = read(tmp_path, {"transform": rows})
        by_columns = read(tmp_path, {"transform": columns, "order": "columns"})
        assert by_rows.gravity == pytest.approx(by_columns.gravity)

    def test_3d_scanner_app(self, tmp_path: Path) -> None:
        # An upright phone that looks 40 degrees down; its pictures lie on their side.
        sine, cosine = math.sin(math.radians(40)), math.cos(math.radians(40))
        assert read(tmp_path, SCANNER).gravity == pytest.approx((cosine, 0, sine))
        upright = read(tmp_path, SCANNER, orientation=6).gravity
        assert upright == pytest.approx((0, cosine, sine))

    def test_polycam(self, tmp_path: Path) -> None:
        assert read(tmp_path, polycam(LEVEL)).gravity == pytest.approx((0, 1, 0))


class TestNotASidecar:
    def test_no_file(self, tmp_path: Path) -> None:
        assert read_sidecar(str(tmp_path / "IMG.json"), 1) is None

    @pytest.mark.parametrize(
        "values",
        [{"labels": ["cat"]}, [1, 2], "3", "[" + 600_000 * "1," + "1]"],
        ids=["annotation", "list", "number", "large"],
    )
    def test_about_something_else(self, tmp_path: Path, values: Any) -> None:
        assert read_sidecar(write(tmp_path, values), 1) is None

    def test_our_own_answers(self, tmp_path: Path) -> None:
        line = one().to_json()
        assert read_sidecar(write(tmp_path, f"{line}\n{line}\n"), 1) is None


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ("{", "is not JSON"),
        ({"gravity": [0, 1, 0]}, 'frame must be "camera" or "device", got None'),
        ({"gravity": [0, 1], "frame": "camera"}, r"gravity must be 3 numbers, got \[0, 1\]"),
        ({"gravity": [0, "1", 0], "frame": "camera"}, "gravity must be 3 numbers"),
        ('{"gravity": [0, NaN, 0], "frame": "camera"}', "gravity must be 3 numbers"),
        ({"gravity": [0, 10**400, 0], "frame": "camera"}, "gravity must be 3 numbers"),
        ({"gravity": [0, 0, 0], "frame": "camera"}, "length 0"),
        ({"gravity": [0, 1, 0], "frame": "camera", "sigma_deg": 0}, "sigma_deg must lie between"),
        ({"gravity": [0, 1, 0], "frame": "device", "orientation": 9}, "orientation must be 1 to 8"),
        ({"transform": [[1, 2], [3, 4]]}, "transform must be 16 numbers"),
        ({"transform": LEVEL, "order": "mixed"}, "order must be"),
        ({"transform": list(map(list, zip(*LEVEL, strict=True)))}, '"order": "columns"'),
        ({"transform": [[2, 0, 0, 0], *LEVEL[1:]]}, "must hold a rotation"),
        ({"transform": [[-1, 0, 0, 0], *LEVEL[1:]]}, "must hold a rotation"),
        ({"cameraPoseARFrame": [0] * 15}, "cameraPoseARFrame must be 16 numbers"),
        ({"t_00": 1}, "t_00 to t_23 must be 12 numbers"),
    ],
)
def test_bad_files_are_named_in_one_line(tmp_path: Path, values: Any, says: str) -> None:
    path = write(tmp_path, values)
    with pytest.raises(FormatError, match=says) as error:
        read_sidecar(path, 1)
    assert str(error.value).startswith(path)
    assert "\n" not in str(error.value)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "IMG.json"
    path.write_bytes(b'{"gravity": "\xff"}')
    with pytest.raises(FormatError, match=r"IMG\.json cannot be read"):
        read_sidecar(str(path), 1)


def test_a_pipe_beside_a_photo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "photo.json")
    with pytest.raises(FormatError, match="it is no file"):
        read_sidecar(str(tmp_path / "photo.json"), 1)
