"""What the benchmark of sensors says of differences whose size is known."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geocalib.geometry import gravity as sphere
from geocalib.geometry.gravity import from_roll_pitch
from scripts import load_script

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "sensors.py"
PICTURE_DEG = 3.0


def answered(count: int, wrong: float) -> list[tuple[dict[str, str], dict[str, Any]]]:
    """Photographs of two phones by which sensors say (3, -20), and pictures that are off by
    ``wrong`` times both sigmas."""
    random = np.random.default_rng(0)
    down = from_roll_pitch(math.radians(3), math.radians(-20))
    sigma = math.hypot(PICTURE_DEG, load_script(BENCHMARK).PHONE_SIGMA_DEG)
    rows = []
    for number in range(count):
        off = np.radians(wrong * sigma * random.normal(size=2))
        name = f"train/ann__{number}.webp" if number % 3 else f"val/eve__{number}.webp"
        row = {"image": name, "model": "iPhone 6s" if number % 2 else "iPhone 8"}
        row |= {"roll_deg": "3", "pitch_deg": "-20", "norm_g": "1.0"}
        seen = {
            "gravity": sphere.move(down, off).tolist(),
            "covariance": (math.radians(PICTURE_DEG) ** 2 * np.eye(2)).tolist(),
            "lines": number % 5 == 0,
        }
        rows.append((row, seen))
    return rows


@pytest.mark.parametrize("wrong", [1.0, 1.5])
def test_differences_are_stated_in_sigmas_of_both(
    wrong: float, capsys: pytest.CaptureFixture[str]
) -> None:
    script = load_script(BENCHMARK)
    script.report(script.paired(answered(900, wrong)))
    lines = capsys.readouterr().out.splitlines()
    cells = {line.split("|")[1].strip(): line.split("|")[2:-1] for line in lines if "| " in line}
    assert int(cells["Apple iPhone 6s"][0]) == 450
    for name in ("Apple iPhone 8", "all of Apple", "val", "no lines used"):
        assert float(cells[name][3]) == pytest.approx(wrong, abs=0.12 * wrong)
    assert "steeper" not in cells


def test_edited_files_are_left_out(tmp_path: Path) -> None:
    table = tmp_path / "gravity.csv"
    rows = ["image,trust,why_not", "a.webp,1,", "b.webp,0,edited", "c.webp,0,moving"]
    table.write_text("\n".join(rows) + "\n")
    names = [Path(row["path"]).name for row in load_script(BENCHMARK).unedited(table)]
    assert names == ["a.webp", "c.webp"]
