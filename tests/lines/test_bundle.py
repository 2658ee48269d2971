"""Segments of several pictures as arrays."""

from __future__ import annotations

import numpy as np

from geocalib.geometry.segments import Segments
from geocalib.lines.bundle import ROUND, Bundle


def segments(*ends: tuple[float, float, float, float], noise: float = 0.5) -> Segments:
    return Segments(np.array(ends, np.float64).reshape(-1, 2, 2), noise)


def test_middle_direction_and_length() -> None:
    bundle = Bundle.create([segments((0, 0, 6, 8), noise=0.25)])
    assert np.allclose(bundle.middle[0, :, 0], [3, 4])
    assert np.allclose(bundle.length, 10)
    across, along = bundle.sides[0, ..., 0]
    assert np.allclose(along, [0.6, 0.8])
    assert np.allclose(across, [-0.8, 0.6])
    assert bundle.noise.tolist() == [0.25]


def test_pictures_are_padded_with_segments_of_no_length() -> None:
    bundle = Bundle.create([segments((0, 0, 6, 8)), segments((0, 0, 1, 0), (0, 0, 0, 2))])
    assert bundle.length.tolist() == [[10, 0], [1, 2]]
    assert np.isfinite(bundle.sides).all()
    assert len(bundle) == 2
    assert bundle[1:].length.tolist() == [[1, 2]]


def test_one_beside_others_is_padded_further() -> None:
    bundle = Bundle.create([segments((0, 0, 6, 8), (0, 0, 0, 2))])
    rounded = bundle.rounded()
    assert rounded.length.shape == (1, ROUND)
    assert rounded.length[0, :3].tolist() == [10, 2, 0]
    assert rounded.longest(2).sides.tolist() == bundle.sides.tolist()
    assert rounded.rounded().length.shape == (1, ROUND)


def test_the_longest_come_first() -> None:
    bundle = Bundle.create([segments((0, 0, 6, 8), (0, 0, 0, 2))]).longest(1)
    assert bundle.length.tolist() == [[10]]
    assert bundle.sides.shape == (1, 2, 2, 1)
