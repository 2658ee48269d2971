"""Whether segments follow directions for a reason."""

from __future__ import annotations

import math

import numpy as np

from geocalib.lines.evidence import FITTED, misfit, support
from geocalib.lines.mixture import Noise, noise_model

REPEATS = 4.0


def noise_of(count: int, directions: int = 1) -> Noise:
    shape = (1, directions, count)
    length, nearness = np.full((1, count), 60.0), np.zeros(shape)
    there = np.ones(shape, np.bool_)
    return noise_model(length, nearness, np.array([0.35]), there, math.radians(0.2))


def supported(residual: list[list[float]]) -> list[float]:
    array = np.radians(np.array(residual))[None]
    found: list[float] = support(array, noise_of(array.shape[2], len(residual)), REPEATS)[
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
    noise = noise_of(count)
    sigma = 1 / np.sqrt(noise.information[0, 0, 0])
    residual = np.random.default_rng(0).normal(0, sigma, (1, 1, 1, count))
    share = np.ones_like(residual)
    assert abs(misfit(residual, noise, share)[0] - 1) < 0.1
    assert abs(misfit(2 * residual, noise, share)[0] - 4) < 0.4
    far = np.where(np.arange(count) < 100, residual, 1.0)
    own = np.broadcast_to(np.arange(count) < 100, share.shape).astype(np.float64)
    squared = np.square(residual[..., :100] / sigma).sum()
    assert abs(misfit(far, noise, own)[0] - squared / (100 - FITTED)) < 1e-9
