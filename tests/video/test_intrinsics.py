"""The lens of many frames."""

from __future__ import annotations

import numpy as np
import pytest

from geocalib.arrays import Array
from geocalib.video.change_detector import ChangeDetector
from geocalib.video.intrinsics import EXPECTED_SHARE, LensFilter, LensState

R = np.array([[0.04, 0.006], [0.006, 0.01]], np.float64)


def frames(count: int, share: float, correlation: float = 0.0, seed: int = 0) -> list[LensState]:
    """Measurements of (0, 0) whose errors have a share of R to themselves, the rest in common."""
    generator = np.random.default_rng(seed)
    noise = generator.standard_normal((count + 1, 2))
    own = [noise[1]]
    for new in noise[2:]:
        own.append(correlation * own[-1] + (1 - correlation**2) ** 0.5 * new)
    root = np.linalg.cholesky(R)
    common = (1 - share) ** 0.5 * noise[0]
    return [LensState(root @ (common + share**0.5 * error), R) for error in own]


def filtered(lenses: list[LensState]) -> LensFilter:
    filter = LensFilter.start(lenses[0])
    for lens in lenses[1:]:
        filter = filter.updated(lens)
    return filter


def test_mean_is_that_of_least_squares() -> None:
    generator = np.random.default_rng(1)
    lenses = []
    for _ in range(12):
        root = generator.standard_normal((2, 2))
        lenses.append(
            LensState(
                generator.standard_normal(2),
                root @ root.T + 0.1 * np.eye(2),
            )
        )
    whiteners = [np.linalg.inv(np.linalg.cholesky(lens.covariance)) for lens in lenses]
    targets = [w @ lens.mean for w, lens in zip(whiteners, lenses, strict=True)]
    solution = np.linalg.lstsq(np.concatenate(whiteners), np.concatenate(targets)[:, None])[0]
    assert np.allclose(filtered(lenses).mean, solution[:, 0])


def test_one_frame_is_all_there_is() -> None:
    lens = filtered(frames(1, 1.0)).lens
    assert np.allclose(lens.covariance, R)


@pytest.mark.parametrize("share", [1.0, 0.3, 0.05])
def test_the_share_is_found(share: float) -> None:
    assert filtered(frames(400, share)).share == pytest.approx(share, rel=0.25)


def _coverage(share: float, correlation: float) -> Array:
    """Mean squared error of 40 videos in units of the variance that was claimed."""
    ratios = []
    for seed in range(40):
        lens = filtered(frames(30, share, correlation, seed)).lens
        ratios.append(lens.mean @ np.linalg.solve(lens.covariance, lens.mean) / 2)
    return np.stack(ratios).mean()


@pytest.mark.parametrize(("share", "correlation"), [(1.0, 0.0), (1.0, 0.7), (0.1, 0.0), (0.1, 0.7)])
def test_sigmas_are_no_smaller_than_errors(share: float, correlation: float) -> None:
    # A share that is not quite 1 leaves some doubt, and the sigmas err on that side.
    assert 0.1 < _coverage(share, correlation) < 2.0


def test_an_error_in_common_does_not_average_out() -> None:
    few, many = (filtered(frames(count, 0.1)).lens.covariance for count in (100, 400))
    assert np.allclose(many, few, rtol=0.2)
    assert (np.diagonal(many) > 0.8 * np.diagonal(R)).all()


def follow(lenses: list[LensState]) -> ChangeDetector[LensFilter, LensState]:
    detector: ChangeDetector[LensFilter, LensState] = ChangeDetector(LensFilter.start)
    for lens in lenses:
        detector.add(lens)
    return detector


def test_no_zoom_where_there_is_none() -> None:
    for seed in range(10):
        assert follow(frames(100, EXPECTED_SHARE, 0.5, seed)).segment == 0


def test_a_zoom_starts_anew() -> None:
    shift = np.array([0.6, 0.0], np.float64)
    near = frames(30, 0.1)
    far = [LensState(lens.mean + shift, R) for lens in frames(60, 0.1)[30:]]
    detector = follow(near + far)
    assert detector.segments == [0] * 30 + [1] * 30
    assert detector.current is not None
    assert detector.current.mean[0] > near[0].mean[0] + 0.4


def test_an_outlier_changes_nothing() -> None:
    lenses = frames(30, 0.1)
    strange = LensState(lenses[0].mean + 3.0, R)
    detector = follow([*lenses[:20], strange, *lenses[20:]])
    assert detector.segments == [0] * 20 + [None] + [0] * 10
    assert detector.current is not None
    assert np.allclose(detector.current.mean, filtered(lenses).mean)
