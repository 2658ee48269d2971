"""Which direction a segment belongs to, and whether that is chance."""

from __future__ import annotations

import math

import numpy as np

from geocalib.lines.mixture import FITTED, Noise, assign, misfit, noise_model, support
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
    share = assign(residuals(np.array([0.0, 0.5, 0.5]), np.array([0.5, 0.0, 0.5])), noise).share[0]
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


REPEATS = 4.0


def noise_for(count: int, directions: int = 1) -> Noise:
    shape = (1, directions, count)
    length, nearness = np.full((1, count), 60.0), np.zeros(shape)
    there = np.ones(shape, np.bool_)
    return noise_model(length, nearness, np.array([0.35]), there, math.radians(0.2))


def supported(residual: list[list[float]]) -> list[float]:
    array = np.radians(np.array(residual))[None]
    found: list[float] = support(array, noise_for(array.shape[2], len(residual)), REPEATS)[
        0
    ].tolist()
    return found


def test_support_grows_with_the_segments_that_follow() -> None:
    few, many = supported([[0.1] * 10])[0], supported([[0.1] * 40])[0]
    assert 0 < few < many
    assert many > 3 * few


def test_segments_that_point_anywhere_support_nothing() -> None:
    anywhere = np.random.default_rng(0).uniform(-90, 90, 200)
    assert supported([np.degrees(np.sin(np.radians(anywhere))).tolist()])[0] < 3


def test_a_direction_is_worth_what_the_others_do_not_explain() -> None:
    """Two that the same segments follow are worth less than each would be alone."""
    alone = supported([[0.1] * 30])[0]
    twice = supported([[0.1] * 30, [0.1] * 30])
    assert max(twice) < 0.3 * alone
    apart = supported([[0.1] * 30 + [40.0] * 30, [40.0] * 30 + [0.1] * 30])
    assert min(apart) > 0.5 * alone


def test_the_misfit_is_1_where_residuals_are_as_large_as_expected() -> None:
    """And counts what follows a direction alone, less what was fitted."""
    count = 4000
    noise = noise_for(count)
    sigma = 1 / np.sqrt(noise.information[0, 0, 0])
    residual = np.random.default_rng(0).normal(0, sigma, (1, 1, 1, count))
    share = np.ones_like(residual)
    assert abs(misfit(residual, noise, share)[0] - 1) < 0.1
    assert abs(misfit(2 * residual, noise, share)[0] - 4) < 0.4
    far = np.where(np.arange(count) < 100, residual, 1.0)
    own = np.broadcast_to(np.arange(count) < 100, share.shape).astype(np.float64)
    squared = np.square(residual[..., :100] / sigma).sum()
    assert abs(misfit(far, noise, own)[0] - squared / (100 - FITTED)) < 1e-9
