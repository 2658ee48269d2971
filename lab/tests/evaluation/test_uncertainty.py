"""Sigmas that are too small by a known factor are found out, and mended."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from calibrations import FAILURE, one
from geocalib.errors import ConfigError, WeightsError
from geocalib.nets.weights.files import read_weights
from geocalib_lab.evaluation.uncertainty import (
    FEWEST,
    ONE_SIGMA,
    Deviations,
    deviations,
    fit_sigma_scale,
    pooled,
    recalibrate,
    sigma_factors,
)
from known_photos import CARD, answer, sample, save_little_weights


def test_one_sigma_is_that_of_a_normal_variable() -> None:
    assert pytest.approx(ndtr(1) - ndtr(-1)) == ONE_SIGMA


@pytest.mark.parametrize("factor", [0.3, 1.0, 42.0])
def test_factor_of_normal_errors(factor: float) -> None:
    rng = np.random.default_rng(0)
    sigmas = rng.uniform(0.1, 3, 20_000)
    errors = factor * sigmas * rng.standard_normal(20_000)
    assert fit_sigma_scale({"focal": errors}, {"focal": sigmas})["focal"] == pytest.approx(
        factor, rel=0.02
    )
    # A few answers that are wildly wrong change next to nothing.
    errors[:200] = 1e6
    assert fit_sigma_scale({"focal": errors}, {"focal": sigmas})["focal"] == pytest.approx(
        factor, rel=0.04
    )


@given(st.lists(st.floats(-1e3, 1e3), min_size=FEWEST, max_size=60), st.floats(0.01, 100))
def test_after_scaling_the_share_is_right(errors: list[float], sigma: float) -> None:
    sigmas = np.full(len(errors), sigma)
    factor = fit_sigma_scale({"gravity": errors}, {"gravity": sigmas})["gravity"]
    scaled = factor * sigmas * (1 + 1e-12)
    inside = np.mean(np.abs(errors) <= scaled)
    strictly = np.mean(np.abs(errors) < scaled * (1 - 1e-9))
    # Between the neighbours of the quantile, errors that are equal aside.
    assert inside >= ONE_SIGMA - 1 / len(errors)
    assert strictly <= ONE_SIGMA + 1 / len(errors)


def test_too_few_errors_have_no_factor() -> None:
    few = np.ones(FEWEST - 1)
    assert fit_sigma_scale({"focal": few}, {"focal": few}) == {}


def test_deviations_of_known_answers() -> None:
    samples = [
        sample(roll_deg=179.0, pitch_deg=10.0, vfov_deg=90.0, k1=-0.1),
        sample(roll_deg=None, pitch_deg=None, vfov_deg=None),
        sample(),
    ]
    answers = [
        answer(vfov_deg=60.0, roll_deg=-179.0, pitch_deg=7.0, k1=0.2, sigmas_deg=(0.5, 1.5, 9)),
        answer(),
        FAILURE,
    ]
    found = deviations(samples, answers)
    # The shorter way round for roll; then pitch.
    np.testing.assert_allclose(found["gravity"].errors, [2, -3], atol=1e-9)
    np.testing.assert_allclose(found["gravity"].sigmas, [0.5, 1.5])
    np.testing.assert_allclose(found["gravity"].normalised, [4, -2], atol=1e-9)
    # f / H is 1/2 at 90 degrees, and sqrt(3)/2 at 60; its sigma is a tenth of it.
    np.testing.assert_allclose(found["focal"].errors, [math.log(math.sqrt(3))])
    np.testing.assert_allclose(found["focal"].sigmas, [0.1])
    np.testing.assert_allclose(found["distortion"].errors, [0.3])
    np.testing.assert_allclose(found["distortion"].sigmas, [0.1])


def test_what_was_fixed_or_has_no_sigma_says_nothing() -> None:
    found = deviations([sample()] * 2, [answer(sigmas_deg=(0.0, math.nan, 1.0))] * 2)
    assert len(found["gravity"].errors) == 0
    assert len(found["focal"].errors) == 2
    assert math.isnan(found["gravity"].within(1))


def test_distortion_of_another_kind_is_not_compared() -> None:
    found = deviations([sample(k1=0.1)], [one("kannala_brandt")])
    assert len(found["distortion"].errors) == len(found["focal"].errors) == 0
    assert len(found["gravity"].errors) == 2


def test_shares_within_sigmas() -> None:
    part = Deviations(np.array([0.5, -1.0, 2.5, -40.0]), np.ones(4))
    assert [part.within(s) for s in (1, 2, 3)] == [0.5, 0.5, 0.75]


def test_pooled_sets_count_as_one() -> None:
    rng = np.random.default_rng(1)
    sets = [
        deviations([sample()] * 8, [answer(pitch_deg=p) for p in rng.normal(size=8)])
        for _ in range(2)
    ]
    # Too few of each alone.
    assert "focal" not in sigma_factors(sets[0])
    both = pooled(sets)
    assert len(both["focal"].errors) == 16
    assert len(both["gravity"].errors) == 32
    assert "focal" in sigma_factors(both)


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return save_little_weights(tmp_path / "mine.safetensors", monkeypatch)


def test_recalibrated_weights_differ_in_their_card_alone(weights: Path, tmp_path: Path) -> None:
    out = tmp_path / "again.safetensors"
    recalibrate(weights, {"gravity": 30.0, "focal": 20.0}, out, "with true sigmas")
    card = recalibrate(out, {"gravity": 0.5, "distortion": 7.0}, out, "truer still")
    assert card.sigma_scale == {"gravity": 15.0, "focal": 20.0, "distortion": 7.0}
    network, again = read_weights(out)
    assert again == card
    assert (again.description, again.name) == ("truer still", CARD.name)
    before = read_weights(weights)[0].state_dict()
    after = network.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_recalibration_of_nonsense(weights: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="too few errors"):
        recalibrate(weights, {}, tmp_path / "out", "")
    with pytest.raises(WeightsError, match=r"No such file.*; give a file that save_weights wrote"):
        recalibrate(tmp_path / "gone", {"focal": 2.0}, tmp_path / "out", "")
    assert not (tmp_path / "out").exists()
