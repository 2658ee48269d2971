"""The table: exact, and legible to others."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from any_calibrations import outcomes
from calibrations import FAILURE, one
from geocalib.errors import FormatError
from geocalib.formats import csv_table
from geocalib.result.uncertainty import Uncertainty


@settings(max_examples=30, deadline=None)
@given(st.lists(outcomes(), max_size=2))
@example([replace(FAILURE, error="a\rb")])
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, written: list) -> None:
    path = tmp_path_factory.mktemp("csv") / "out.csv"
    assert csv_table.write(written, path) == [path]
    assert csv_table.read(path) == written


def test_columns(tmp_path: Path) -> None:
    tricky = replace(one("radial", 'a, "b"\n.jpg'), warnings=("one; two", "three"))
    (path,) = csv_table.write([tricky, FAILURE], tmp_path)
    assert path == tmp_path / "calibrations.csv"
    with path.open(newline="") as stream:
        good, bad = csv.DictReader(stream)
    assert good["image"] == 'a, "b"\n.jpg'
    assert float(good["fx"]) == 500.0
    assert [good[f"distortion_{i}"] for i in (1, 2, 3, 4)] == ["-0.3", "0.1", "", ""]
    assert float(good["gravity_y"]) == tricky.gravity[1].item()
    assert float(good["sigma_vfov_deg"]) == 1.2
    assert good["warnings"] == '["one; two", "three"]'
    assert good["error"] == ""
    empty = {name for name, cell in bad.items() if cell == "[]"}
    assert empty == {"parameters", "covariance", "warnings", "priors", "drawn", "lens"}
    assert {name for name, cell in bad.items() if cell} - empty == {"image", "error"}
    assert bad["error"] == FAILURE.error
    assert csv_table.read(path) == [tricky, FAILURE]


def test_file_names_of_any_bytes(tmp_path: Path) -> None:
    name = b"caf\xe9\xff.jpg".decode("utf-8", "surrogateescape")
    (path,) = csv_table.write([one(image=name)], tmp_path / "out.csv")
    assert b"caf\xe9\xff.jpg" in path.read_bytes()
    assert csv_table.read(path)[0].image == name


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("=cmd|' /C calc'!A0.jpg", "'=cmd|' /C calc'!A0.jpg"),
        ("+1.jpg", "'+1.jpg"),
        ("-1.jpg", "'-1.jpg"),
        ("@SUM(1).jpg", "'@SUM(1).jpg"),
        ("'=1.jpg", "''=1.jpg"),
        ("'quoted'.jpg", "'quoted'.jpg"),
    ],
)
def test_text_is_no_formula(tmp_path: Path, name: str, cell: str) -> None:
    tilted = one("pinhole", name, roll_deg=-5.0)
    (path,) = csv_table.write([tilted, replace(FAILURE, error=f"={name}")], tmp_path)
    with path.open(newline="") as stream:
        good, bad = csv.DictReader(stream)
    assert good["image"] == cell
    assert bad["error"] == f"'={name}"
    # Numbers stay numbers.
    assert float(good["roll_deg"]) == pytest.approx(-5.0)
    assert csv_table.read(path) == [tilted, replace(FAILURE, error=f"={name}")]


def test_rows_are_the_records(tmp_path: Path) -> None:
    """Exactly, with what a journal adds to them."""
    photo = {"bytes": 6, "modified_ns": -1, "sha256": None, "set": None}
    lost = replace(one("radial"), sigma=Uncertainty.unknown(one("radial").cameras))
    records = [
        one("radial").to_dict() | {"request": '{"fov": 60}', "photo": photo},
        lost.to_dict(),
        FAILURE.to_dict() | {"photo": photo | {"set": "0123"}},
    ]
    (path,) = csv_table.write_records(records, tmp_path)
    read = list(csv_table.read_records(path))
    assert read == records
    assert [list(record) for record in read] == [list(record) for record in records]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("image,", "picture,", r"not our columns, see image, picture"),
        ("fx,fy", "fy,fx", r"not our columns, see their order"),
        ("500.0", "wide", r"line 2: fx holds 'wide', not a number or JSON"),
        ("simple_radial", "simple_curved", r"line 2: unknown camera model 'simple_curved'; known"),
        ("simple_radial", "pinhole", r"line 2: distortion must be a list of 0 numbers \(none\) "),
        ("converged", "converged,", r"line 2: has 67 cells of 66"),
        ("500.0", "NaN", r"line 2: fx must be a number, got nan"),
    ],
)
def test_bad_tables_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    (path,) = csv_table.write([one()], tmp_path / "out.csv")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(FormatError, match=message):
        csv_table.read(path)
