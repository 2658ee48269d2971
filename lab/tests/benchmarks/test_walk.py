"""What one photo passes stays as few modules, functions and jumps as it is today."""

from __future__ import annotations

from pathlib import Path

from scripts import load_script

ROOT = Path(__file__).parents[3]


WALK = load_script(ROOT / "lab" / "benchmarks" / "walk.py")


def test_the_walk_of_a_photo_grows_no_longer() -> None:
    """A tenth above what was reached: 61 modules, 697 functions, 1,640 jumps, 27 calls deep."""
    walked = WALK.walk(ROOT / "examples" / "town.jpg", "pinhole")
    assert 11 < len(walked.modules) <= 67
    assert walked.functions <= 766
    assert walked.jumps <= 1804
    assert walked.depth <= 29


def test_the_choice_of_a_lens_makes_it_no_longer_than_today() -> None:
    """A tenth above what was reached where three kinds of lens are compared: 69 modules, 804
    functions, 3,678 jumps, 32 calls deep."""
    walked = WALK.walk(ROOT / "examples" / "town.jpg")
    assert len(walked.modules) <= 76
    assert walked.functions <= 884
    assert walked.jumps <= 4046
    assert walked.depth <= 35
