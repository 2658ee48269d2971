"""Straight segments of a picture."""

from __future__ import annotations

import numpy as np

from geocalib.geometry.segments import Segments

ENDS = np.array([[[0, 0], [3, 4]], [[1, 1], [1, 11]], [[5, 5], [6, 5]]], np.float64)


def test_the_longest_first() -> None:
    found = Segments(ENDS, 0.5).longest(2)
    assert found.length.tolist() == [10, 5]
    assert found.noise == 0.5


def test_four_quarter_turns_lead_back() -> None:
    """A picture of 8 x 20 pixels, and one of 20 x 8 after every other turn."""
    turned = Segments(ENDS, 0.5)
    for width in (8.0, 20.0, 8.0, 20.0):
        turned = turned.turned(width)
        assert (turned.ends >= 0).all()
    assert np.array_equal(turned.ends, ENDS)


def test_a_quarter_turn_counter_clockwise() -> None:
    """The right end of the upper border becomes the upper left corner."""
    corner = Segments(np.array([[[8.0, 0.0], [8.0, 20.0]]]), 0.5).turned(8.0)
    assert corner.ends[0].tolist() == [[0, 0], [20, 0]]
