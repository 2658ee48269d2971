"""Which direction a segment belongs to, and whether it does for a reason."""

from __future__ import annotations

import numpy as np

from geocalib.lines.evidence import support
from geocalib.lines.mixture import Noise, noise_model, weigh
from geocalib.lines.unknowns import Array

WIDTH = np.radians(0.2)


def noise_of(length: float, count: int, nearness: float = 0.0) -> Noise:
    shape = (1, 2, count)
    usable = np.ones(shape, np.bool_)
    lengths, near = np.full((1, count), length), np.full(shape, nearness)
    return noise_model(lengths, near, np.array([0.3]), usable, WIDTH)


def residuals(first: Array, second: Array) -> Array:
    return np.stack([first, second])[None]


def test_a_segment_goes_to_the_direction_that_it_points_along() -> None:
    noise = noise_of(80.0, 3)
    share = weigh(residuals(np.array([0.0, 0.5, 0.5]), np.array([0.5, 0.0, 0.5])), noise).share[0]
    assert share[0, 0] > 0.9
    assert share[1, 1] > 0.9
    assert share[:, 2].sum() < 0.01


def test_long_segments_are_surer_and_those_near_a_vanishing_point_less() -> None:
    short, long, near = (
        noise_of(length, 1, nearness).information[0, 0, 0]
        for length, nearness in ((20.0, 0.0), (200.0, 0.0), (200.0, 0.1))
    )
    assert short < long
    assert near < long


def test_chance_supports_little_and_parallels_much() -> None:
    random = np.random.default_rng(0)
    anywhere = np.sin(random.uniform(-np.pi / 2, np.pi / 2, (2, 200)))
    along = 0.005 * random.normal(size=200)
    noise = noise_of(60.0, 200)
    assert support(residuals(*anywhere), noise, 4.0).max() < 3
    first, second = support(residuals(along, anywhere[1]), noise, 4.0)[0]
    assert first > 50
    assert second < 3
