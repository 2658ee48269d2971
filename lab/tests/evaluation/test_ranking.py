"""Sigmas that are true, useless or missing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibrations import FAILURE
from geocalib_lab.evaluation.ranking import (
    Stated,
    calibration_bins,
    precision_recall,
    sparsification,
    stated,
)
from geocalib_lab.evaluation.run import evaluate
from known_photos import FakeCalibrator, answer, by_name, sample


@pytest.fixture(scope="module")
def true() -> Stated:
    """Normal errors whose sigmas are right, and differ a lot."""
    generator = np.random.default_rng(0)
    sigmas = generator.uniform(0.5, 5, 20_000)
    return Stated(np.abs(sigmas * generator.standard_normal(20_000)), sigmas)


def test_bins_of_true_sigmas_lie_on_the_diagonal(true: Stated) -> None:
    sigmas, errors = calibration_bins(true)
    assert len(sigmas) == 10
    np.testing.assert_allclose(errors, sigmas, rtol=0.06)
    assert (np.diff(sigmas) > 0).all()
    assert len(calibration_bins(Stated(true.errors[:3], true.sigmas[:3]))[0]) == 3
    assert len(calibration_bins(Stated(np.empty(0), np.empty(0)))[0]) == 0


def test_precision_and_recall_by_counting() -> None:
    found = Stated(np.array([1.0, 1.0, 3.0, 3.0]), np.array([1.0, 3.0, 1.0, 3.0]))
    precision, recall = precision_recall(found, np.array([0.5, 2.0, 4.0]))
    np.testing.assert_array_equal(precision, [math.nan, 0.5, 1.0])
    np.testing.assert_array_equal(recall, [math.nan, 0.5, 1.0])


def test_leaving_out_what_is_unsure(true: Stated) -> None:
    shares = np.array([0.1, 0.5, 1.0])
    by_sigma, best = sparsification(true, shares)
    assert (np.diff(by_sigma) > 0.2).all()
    assert (best <= by_sigma).all()
    assert by_sigma[-1] == best[-1] == np.median(true.errors)
    # Sigmas that know nothing help nothing.
    shuffled = Stated(true.errors, np.random.default_rng(1).permutation(true.sigmas))
    useless, _ = sparsification(shuffled, shares)
    np.testing.assert_allclose(useless, np.median(true.errors), rtol=0.1)


def test_what_is_stated() -> None:
    answers = {
        "a.png": answer(61.0, pitch_deg=60.0, sigmas_deg=(4.0, 3.0, 2.0)),
        "b.png": FAILURE,
        "c.png": answer(sigmas_deg=(1.0, 1.0, 0.0)),
        "d.png": answer(sigmas_deg=(1.0, 1.0, 1.0)),
    }
    samples = [sample(name, pitch_deg=60.0) for name in answers]
    samples[-1] = sample("d.png", vfov_deg=None)
    report = evaluate(FakeCalibrator(by_name(answers)), samples)
    vfov = stated(report, "vfov")
    np.testing.assert_allclose([vfov.errors, vfov.sigmas], [[1.0], [2.0]])
    # At a pitch of 60 degrees a roll of 4 degrees moves gravity by 2.
    assert stated(report, "gravity").sigmas[0] == pytest.approx(math.hypot(2, 3))
    assert len(stated(report, "gravity")) == 3
