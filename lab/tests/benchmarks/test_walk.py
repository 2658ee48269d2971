"""What one photo passes stays as few modules, functions and jumps as it is today."""

from __future__ import annotations

from pathlib import Path

from scripts import load_script

ROOT = Path(__file__).parents[3]


WALK = load_script(ROOT / "lab" / "benchmarks" / "walk.py")


def test_the_walk_of_a_photo_grows_no_longer() -> None:
    """A tenth above what was reached: 55 modules, 708 functions, 1,529 jumps, 27 calls deep."""
    walked = WALK.walk(ROOT / "examples" / "town.jpg", "pinhole")
    assert 11 < len(walked.modules) <= 60
    assert walked.functions <= 778
    assert walked.jumps <= 1681
    assert walked.depth <= 29


def test_the_choice_of_a_lens_makes_it_no_longer_than_today() -> None:
    """A tenth above what was reached where three kinds of lens are compared: 63 modules, 822
    functions, 2,821 jumps, 32 calls deep."""
    walked = WALK.walk(ROOT / "examples" / "town.jpg")
    assert len(walked.modules) <= 69
    assert walked.functions <= 904
    assert walked.jumps <= 3103
    assert walked.depth <= 35
