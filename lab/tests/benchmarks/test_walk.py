"""What one photo passes stays as few modules, functions and jumps as it is today."""

from __future__ import annotations

from pathlib import Path

from scripts import load_script

ROOT = Path(__file__).parents[3]


def test_the_walk_of_a_photo_grows_no_longer() -> None:
    """A tenth above what was reached: 71 modules, 708 functions, 2,060 jumps, 27 calls deep."""
    walked = load_script(ROOT / "lab" / "benchmarks" / "walk.py").walk(
        ROOT / "examples" / "town.jpg"
    )
    assert 11 < len(walked.modules) <= 78
    assert walked.functions <= 780
    assert walked.jumps <= 2260
    assert walked.depth <= 30
