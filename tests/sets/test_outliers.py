"""The robust test against SciPy's chi-square, and against what was planted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import chdtri, ndtri

from geocalib.arrays import Array
from geocalib.sets.outliers import (
    FALSE_ALARM,
    GUESSED_ALARM,
    SAME_CAMERA,
    OutlierVerdict,
    judge,
    silent,
)


def opinions(
    count: int, sigma: float, scatter: float = 1.0, unknowns: int = 2, seed: int = 0
) -> tuple[Array, Array]:
    """Opinions around (1, 1, ...) that scatter by so many of their sigmas."""
    generator = np.random.default_rng(seed)
    noise = generator.standard_normal((count, unknowns))
    own = sigma * (0.5 + generator.random((count, 1)))
    return 1 + scatter * own * noise, own[..., None] ** 2 * np.eye(unknowns)


def test_planted_outliers_are_found_and_no_others() -> None:
    x, covariance = opinions(200, 0.1)
    planted = np.zeros(200, np.bool_)
    planted[::10] = True
    x[planted, 0] += 1.2
    verdict = judge(x, covariance)
    assert verdict.outlier.tolist() == planted.tolist()
    assert verdict.consensus.tolist() == pytest.approx([1, 1], abs=0.03)
    assert verdict.spread == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("scatter", [0.3, 3.0])
def test_sigmas_are_judged_by_the_scatter(scatter: float) -> None:
    x, covariance = opinions(400, 0.1, scatter)
    x[7] += 15 * scatter * 0.1
    verdict = judge(x, covariance)
    assert verdict.spread == pytest.approx(scatter, rel=0.15)
    assert np.flatnonzero(verdict.outlier).tolist() == [7]


def test_few_images_believe_their_sigmas() -> None:
    x, covariance = opinions(4, 0.1, scatter=0.0)
    assert judge(x, covariance).spread > 0.7


def test_the_threshold_is_that_of_chi_square() -> None:
    x = np.ones((2001, 1))
    x[1:] += 0.1 * ndtri((np.arange(2000) + 0.5) / 2000)[:, None]
    covariance = np.full((2001, 1, 1), 0.01, np.float64)
    limit = chdtri(1, FALSE_ALARM) ** 0.5 * (0.01 + SAME_CAMERA**2) ** 0.5
    for share in (0.9, 1.1):
        x[0] = 1 + share * limit
        assert bool(judge(x, covariance).outlier[0]) is (share > 1)


def test_good_images_are_hardly_ever_accused() -> None:
    x, covariance = opinions(20_000, 0.2, unknowns=3)
    assert judge(x, covariance).outlier.sum() <= 6


def test_differences_of_one_camera_are_no_outliers() -> None:
    x, covariance = opinions(1000, 1e-4)
    x[3, 0] += SAME_CAMERA
    assert not judge(x, covariance).outlier.any()


def test_of_two_that_disagree_nobody_knows() -> None:
    x = np.array([[0.0], [3.0]], np.float64)
    assert not judge(x, np.full((2, 1, 1), 0.01, np.float64)).outlier.any()


def test_the_majority_is_right_even_if_less_sure() -> None:
    x = np.array([[1.0], [1.02], [0.97], [1.01], [2.0]], np.float64)
    sigma = np.array([0.05, 0.05, 0.05, 0.05, 0.02], np.float64)
    verdict = judge(x, (sigma**2)[:, None, None])
    assert verdict.outlier.tolist() == [False] * 4 + [True]


def of_views(vfov_deg: list[float], sigma_deg: list[float]) -> tuple[Array, Array]:
    """Opinions of log f from fields of view with their sigmas, degrees."""
    vfov = np.deg2rad(vfov_deg)
    sigma = np.deg2rad(sigma_deg) / np.sin(vfov)
    return -np.log(np.tan(vfov / 2))[:, None], (sigma**2)[:, None, None]


def test_an_odd_one_among_few_does_not_hide_behind_its_own_weight() -> None:
    x, covariance = of_views([56.6, 50.9, 51.4], [0.3, 0.7, 1.2])
    assert judge(x, covariance, GUESSED_ALARM).outlier.tolist() == [True, False, False]
    # Files that name one camera are believed longer.
    x, covariance = of_views([60.0, 50.9, 51.4], [0.3, 0.7, 1.2])
    assert judge(x, covariance).outlier.tolist() == [True, False, False]


@pytest.mark.parametrize("alarm", [FALSE_ALARM, GUESSED_ALARM])
@pytest.mark.parametrize("count", [3, 5, 12])
def test_few_good_images_are_seldom_accused(count: int, alarm: float) -> None:
    accused = [judge(*opinions(count, 0.05, 1.0, 1, seed), alarm).outlier for seed in range(400)]
    assert np.mean(accused) < 3 * alarm + 0.002


def test_images_without_an_opinion_are_not_judged() -> None:
    x, covariance = opinions(10, 0.1)
    x[4] = np.nan
    verdict = judge(x, covariance)
    assert np.flatnonzero(np.isnan(verdict.distance)).tolist() == [4]
    assert not verdict.outlier.any()
    assert np.isfinite(verdict.consensus).all()


@pytest.mark.parametrize(("images", "unknowns"), [(3, 0), (0, 2)])
def test_nothing_to_judge(images: int, unknowns: int) -> None:
    nothing = np.zeros((images, unknowns))
    verdict = judge(nothing, np.zeros((images, unknowns, unknowns)))
    assert isinstance(verdict, OutlierVerdict)
    assert not verdict.outlier.any()


class TestSilence:
    def test_one_that_shows_nothing(self) -> None:
        usual = [115.0, 151, 132, 70, 85, 141, 119, 82]
        assert silent(np.array([*usual, 3.0])).tolist() == [False] * 8 + [True]
        assert silent(np.array([*usual, 0.0])).tolist() == [False] * 8 + [True]

    def test_vague_ones_are_heard(self) -> None:
        assert not silent(np.array([115.0, 151, 132, 70, 20])).any()
        assert not silent(np.array([1000.0, 300, 100, 30, 10, 3])).any()
        assert not silent(np.array([100.0, 0.1])).any()
