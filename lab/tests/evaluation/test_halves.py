"""The split of photographs into those that constants are chosen on and the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from geocalib_lab.evaluation.halves import Half, half_of


@pytest.mark.parametrize(
    ("image", "half"),
    [
        ("photos/train/a.jpg", Half.CHOSEN_ON),
        ("photos/val/a.jpg", Half.HELD_OUT),
        ("photos/test/a.jpg", Half.HELD_OUT),
        ("set/images/img_1284.jpg", Half.HELD_OUT),
        ("elsewhere/images/img_1284.jpg", Half.HELD_OUT),
        ("set/images/img_1285.jpg", Half.CHOSEN_ON),
    ],
)
def test_a_photograph_is_always_in_the_same_half(image: str, half: Half) -> None:
    assert half_of(Path(image)) is half


def test_halves_are_about_equal() -> None:
    halves = [half_of(Path(f"images/{number}.jpg")) for number in range(400)]
    assert 160 < halves.count(Half.CHOSEN_ON) < 240
