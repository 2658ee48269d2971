"""The robust test against SciPy's chi-square, and against what was planted."""

from __future__ import annotations

import pytest
import torch
from scipy import stats

from geocalib.sets.outliers import FALSE_ALARM, SAME_CAMERA, Verdict, judge, silent


def opinions(
    count: int, sigma: float, scatter: float = 1.0, unknowns: int = 2, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Opinions around (1, 1, ...) that scatter by so many of their sigmas."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(count, unknowns, generator=generator, dtype=torch.float64)
    own = sigma * (0.5 + torch.rand(count, 1, generator=generator, dtype=torch.float64))
    return 1 + scatter * own * noise, torch.diag_embed((own**2).expand(-1, unknowns))


def test_planted_outliers_are_found_and_no_others() -> None:
    x, covariance = opinions(200, 0.1)
    planted = torch.zeros(200, dtype=torch.bool)
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
    assert verdict.outlier.nonzero()[:, 0].tolist() == [7]


def test_few_images_believe_their_sigmas() -> None:
    x, covariance = opinions(4, 0.1, scatter=0.0)
    assert judge(x, covariance).spread > 0.7


def test_the_threshold_is_that_of_chi_square() -> None:
    x = torch.ones(2001, 1, dtype=torch.float64)
    x[1:] += 0.1 * torch.tensor(stats.norm.ppf((torch.arange(2000) + 0.5) / 2000))[:, None]
    covariance = torch.full((2001, 1, 1), 0.01, dtype=torch.float64)
    limit = stats.chi2.isf(FALSE_ALARM, 1) ** 0.5 * (0.01 + SAME_CAMERA**2) ** 0.5
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
    x = torch.tensor([[0.0], [3.0]], dtype=torch.float64)
    assert not judge(x, torch.full((2, 1, 1), 0.01, dtype=torch.float64)).outlier.any()


def test_the_majority_is_right_even_if_less_sure() -> None:
    x = torch.tensor([[1.0], [1.02], [0.97], [1.01], [2.0]], dtype=torch.float64)
    sigma = torch.tensor([0.05, 0.05, 0.05, 0.05, 0.02], dtype=torch.float64)
    verdict = judge(x, (sigma**2)[:, None, None])
    assert verdict.outlier.tolist() == [False] * 4 + [True]


def test_images_without_an_opinion_are_not_judged() -> None:
    x, covariance = opinions(10, 0.1)
    x[4] = torch.nan
    verdict = judge(x, covariance)
    assert verdict.distance.isnan().nonzero()[:, 0].tolist() == [4]
    assert not verdict.outlier.any()
    assert verdict.consensus.isfinite().all()


@pytest.mark.parametrize(("images", "unknowns"), [(3, 0), (0, 2)])
def test_nothing_to_judge(images: int, unknowns: int) -> None:
    nothing = torch.zeros(images, unknowns, dtype=torch.float64)
    verdict = judge(nothing, nothing.new_zeros(images, unknowns, unknowns))
    assert isinstance(verdict, Verdict)
    assert not verdict.outlier.any()


class TestSilence:
    def test_one_that_shows_nothing(self) -> None:
        usual = [115.0, 151, 132, 70, 85, 141, 119, 82]
        assert silent(torch.tensor([*usual, 3.0])).tolist() == [False] * 8 + [True]
        assert silent(torch.tensor([*usual, 0.0])).tolist() == [False] * 8 + [True]

    def test_vague_ones_are_heard(self) -> None:
        assert not silent(torch.tensor([115.0, 151, 132, 70, 20])).any()
        assert not silent(torch.tensor([1000.0, 300, 100, 30, 10, 3])).any()
        assert not silent(torch.tensor([100.0, 0.1])).any()
