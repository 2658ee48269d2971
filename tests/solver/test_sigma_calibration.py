"""Factors on sigmas that follow from the fit itself."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from geocalib.cameras import Camera
from geocalib.solver import FitResult, Status
from geocalib.solver.sigma_calibration import (
    FREE,
    LEAST_FACTOR,
    TRAITS,
    FieldErrors,
    LearntSigmas,
    traits,
)

COVARIANCE = np.array([[1e-4, 2e-5, 1e-5], [2e-5, 4e-4, -3e-5], [1e-5, -3e-5, 1e-2]])


def learnt(**lines: Any) -> LearntSigmas:
    """That of slopes by the names of traits; without any, nothing changes."""
    found = {}
    for name in ("roll", "pitch", "focal"):
        slopes = lines.get(name, {})
        found[name] = np.array([slopes.get(trait, 0.0) for trait in ("constant", *TRAITS)])
    edge = np.full(len(TRAITS), 10.0)
    return LearntSigmas(-edge, edge, **found)


def a_fit(count: int = 2) -> FitResult:
    gravity = np.array([[0.0, 1.0, 0.0], [0.6, 0.0, -0.8]])[:count]
    return FitResult(
        camera=Camera.create("pinhole", np.array([500.0, 250.0])[:count], (300, 400)),
        gravity=gravity,
        covariance=np.stack([COVARIANCE] * count),
        parameters=FREE,
        status=[Status.CONVERGED] * count,
        cost=np.zeros(count),
        confidence_scale=np.ones(count),
        iterations=np.ones(count),
    )


def test_traits_are_what_they_are_called() -> None:
    fit = a_fit()
    found = traits(fit.camera, fit.gravity, fit.covariance)
    expected = np.log([0.01, 0.02, 0.1])
    np.testing.assert_allclose(found[:, :3], np.stack([expected, expected]))
    np.testing.assert_allclose(found[:, 3], [0.0, math.log(0.5)], atol=1e-12)
    np.testing.assert_allclose(found[:, 4:], [[0.0, 0.0], [0.8, 0.6]])


def test_each_photo_has_factors_of_its_own_and_keeps_its_correlations() -> None:
    fit = a_fit()
    found = learnt(
        roll={"leaning": 5 * math.log(2)},
        pitch={"looking up": 5 * math.log(2)},
        focal={"constant": math.log(3)},
    )
    changed = found.applied(fit, [True, True])
    factors = np.sqrt(np.diagonal(changed.covariance / fit.covariance, axis1=1, axis2=2))
    np.testing.assert_allclose(factors, [[1, 1, 3], [8, 16, 3]])
    for before, after in zip(fit.covariance, changed.covariance, strict=True):
        np.testing.assert_allclose(_correlation(after), _correlation(before))
    np.testing.assert_array_equal(changed.camera.f, fit.camera.f)
    np.testing.assert_array_equal(changed.gravity, fit.gravity)


def test_factors_do_not_depend_on_other_photos() -> None:
    random = np.random.default_rng(4)
    one = LearntSigmas(np.full(6, -9.0), np.full(6, 9.0), *random.normal(size=(3, 7)))
    values = random.normal(size=(32, 6))
    alone = np.concatenate([one.factors(row[None]) for row in values])
    np.testing.assert_array_equal(one.factors(values), alone)


def _correlation(covariance: np.ndarray) -> np.ndarray:
    sigma = np.sqrt(np.diag(covariance))
    return np.asarray(covariance / sigma / sigma[:, None])


def test_beyond_what_was_seen_factors_stay() -> None:
    line = learnt(focal={"focal sigma": 1.0})
    found = replace(line, low=np.full(6, -3.0), high=np.full(6, 3.0))
    values = np.zeros((4, 6))
    values[:, 2] = -1000, -3, 3, 1000
    least = math.log(LEAST_FACTOR)
    np.testing.assert_allclose(np.log(found.factors(values)[:, 2]), [least, least, 3, 3])


def test_where_nothing_was_seen_no_fit_is_sure() -> None:
    fit = a_fit()
    changed = learnt(roll={"constant": -1.0}, pitch={"constant": -1.0}).applied(fit, [True, False])
    assert changed.sigma.gravity_deg[0] < fit.sigma.gravity_deg[0]
    assert changed.sigma.gravity_deg[1] > 10
    assert changed.sigma.focal[1] > 0.9 * fit.camera.f[1]


def test_a_fit_that_found_nothing_stays_unknown() -> None:
    fit = a_fit(1)
    lost = replace(fit, covariance=fit.covariance * np.nan, gravity=fit.gravity * np.nan)
    assert np.isnan(learnt(focal={"focal": 1.0}).applied(lost, [True]).covariance).all()


def test_fits_of_something_else_and_of_images_together_are_left_alone() -> None:
    fit, found = a_fit(), learnt(focal={"constant": 1.0})
    other = replace(fit, parameters=(*FREE[:2], "k1"))
    assert found.applied(other, [True, True]) is other
    errors = FieldErrors(sigma_scale={"focal": 2.0}, learnt=found)
    together = errors.corrected(fit)
    alone = errors.with_learnt_sigmas(together, [True, True])
    np.testing.assert_allclose(together.sigma.focal, fit.sigma.focal * 2)
    np.testing.assert_allclose(alone.sigma.focal, fit.sigma.focal * 2 * math.e)


def test_it_is_kept_as_plain_lists() -> None:
    found = learnt(roll={"focal": 0.1}, pitch={"focal": 0.2}, focal={"leaning": 2.0})
    again = LearntSigmas.from_dict(found.to_dict())
    values = np.linspace(-1, 1, 12).reshape(2, 6)
    np.testing.assert_array_equal(again.factors(values), found.factors(values))


@pytest.mark.parametrize("wrong", [[1.0], [math.nan] * 7, ["a"] * 7])
def test_wrong_numbers_are_refused(wrong: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"focal|could not"):
        LearntSigmas.from_dict({**learnt().to_dict(), "focal": wrong})
