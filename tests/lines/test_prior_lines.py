"""What is believed before lines are seen."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from streets import camera_of, gravity_of, prior_of

from geocalib.lines.prior import (
    FREEDOM,
    HELD,
    LARGEST_ERROR,
    SHARED_ERROR,
    inflate_focal_sigma,
    log_f_sigma,
    network_prior,
)
from geocalib.lines.unknowns import powers
from geocalib.solver.coupling import couple

ALONE = couple(1, None, None)
GRAVITY = gravity_of(2.0, 5.0)


def test_the_prior_is_the_networks_answer() -> None:
    answer = prior_of(camera_of("pinhole"), GRAVITY, sigma_log_f=0.2)
    prior, layout = network_prior([answer], ALONE)
    assert prior.mean.log_f[0, 0] == pytest.approx(math.log(answer.fy))
    assert log_f_sigma(prior) == pytest.approx(0.2)
    assert prior.distance(prior.mean, layout)[0] == pytest.approx(0, abs=1e-6)


def test_a_network_that_cannot_tell_the_focal_length_is_not_off_by_anything() -> None:
    answer = prior_of(camera_of("pinhole"), GRAVITY, log_f_off=2.0, sigma_log_f=5.0)
    found = inflate_focal_sigma(answer)
    assert found.fy == answer.fy
    assert np.sqrt(found.covariance[2, 2]).item() == pytest.approx(LARGEST_ERROR, rel=0.02)


def test_a_sure_network_is_less_sure_beside_lines() -> None:
    answer = prior_of(camera_of("pinhole"), GRAVITY, sigma_log_f=0.05)
    found = math.sqrt(inflate_focal_sigma(answer).covariance[2, 2])
    assert found == pytest.approx(0.05 * SHARED_ERROR, rel=0.02)


@pytest.mark.parametrize("model", ["simple_radial", "radial", "division"])
def test_what_bends_the_picture_as_much_is_as_likely(model: str) -> None:
    """At another focal length, k1 / f^2 and k2 / f^4 are what edges tell."""
    answer = prior_of(camera_of(model), GRAVITY, sigma_log_f=0.3)
    # As edges tell it: sure of the bend in the picture, so that distortion goes with f.
    grown = powers(answer.cameras.model) * answer.cameras.distortion[0]
    slope = np.concatenate([np.array([0.0, 0.0, 1.0], np.float64), grown])
    sigmas = np.array([0.03, 0.03, 0.0, *[1e-3] * len(grown)], np.float64)
    covariance = np.diag(sigmas**2) + 0.3**2 * slope[:, None] * slope
    prior, layout = network_prior([replace(answer, covariance=covariance)], ALONE)
    longer = replace(prior.mean, log_f=prior.mean.log_f + 0.3)
    bent = prior.mean.distortion * np.exp(0.3 * powers(layout.model))
    zoomed = replace(longer, distortion=bent)
    assert prior.distance(zoomed, layout)[0] == pytest.approx(1.0, rel=1e-6)
    assert prior.distance(longer, layout)[0] > 10


@pytest.mark.parametrize("measured", [None, (0.0, 1500.0)])
@pytest.mark.parametrize("model", ["pinhole", "simple_radial", "radial", "kannala_brandt"])
def test_the_pull_is_the_slope_of_its_cost(
    model: str, measured: tuple[float, float] | None
) -> None:
    """Against central differences, away from the mean."""
    answer = prior_of(camera_of(model), GRAVITY, sigma_deg=1.0)
    known = None if measured is None else np.array([measured])
    prior, layout = network_prior([answer], ALONE, known)
    own = layout.intrinsics
    at = layout.moved(prior.mean, np.full((1, 1, 2), 0.02), np.full((1, 1, own), 0.03))
    pull = prior.pull(at, layout, prior.forces(at, layout))
    slope = np.concatenate([pull.time.ravel(), pull.camera.ravel()])
    for i, expected in enumerate(slope):
        step = np.zeros(2 + own)
        step[i] = 1e-5
        costs = [
            prior.cost(
                layout.moved(at, side * step[None, None, :2], side * step[None, None, 2:]), layout
            )[0]
            for side in (1, -1)
        ]
        # The cost is twice what the normal equations are of.
        assert 0.5 * (costs[0] - costs[1]) / 2e-5 == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_what_was_measured_of_gravity_costs_as_a_normal_variable(share: float) -> None:
    """And the network's part of its sigma as one that is far off now and then."""
    answer = prior_of(camera_of("pinhole"), GRAVITY, sigma_deg=1.0)
    whole = math.radians(1.0) ** -2
    prior, layout = network_prior([answer], ALONE, np.full((1, 2), share * whole))
    turn = math.radians(12.0)
    away = layout.moved(prior.mean, np.array([[[0.0, turn]]]), np.zeros((1, 1, layout.intrinsics)))
    squared = (math.sin(turn) / math.radians(1.0)) ** 2
    expected = FREEDOM * math.log1p((1 - share) * squared / FREEDOM) + share * squared
    assert prior.cost(away, layout)[0] == pytest.approx(expected, rel=1e-6)


def test_only_what_the_network_says_is_taken_for_shared_error() -> None:
    """By EXIF, the same sigma stays as it is; of both, the information of each has its own."""
    answer = prior_of(camera_of("pinhole"), GRAVITY, sigma_log_f=0.03)

    def sigma(told: float) -> float:
        return math.sqrt(inflate_focal_sigma(answer, told).covariance[2, 2])

    assert sigma(0.03**-2) == pytest.approx(0.03, rel=1e-2)
    assert sigma(0.0) == pytest.approx(SHARED_ERROR * 0.03, rel=1e-2)
    half = 0.5 * 0.03**-2
    assert sigma(half) == pytest.approx((half + half / SHARED_ERROR**2) ** -0.5, rel=1e-2)


@pytest.mark.parametrize("model", ["kannala_brandt", "eucm"])
def test_wide_lenses_keep_their_sigmas(model: str) -> None:
    answer = prior_of(camera_of(model), GRAVITY)
    assert inflate_focal_sigma(answer) is answer


@pytest.mark.parametrize("model", ["pinhole", "radial"])
def test_a_focal_length_that_is_held_stays_and_gravity_is_as_sure_given_it(model: str) -> None:
    answer = prior_of(camera_of(model), GRAVITY, sigma_log_f=0.3)
    prior, layout = network_prior([answer], ALONE)
    held = prior.focal_held(layout)
    assert log_f_sigma(held) == pytest.approx(HELD, rel=0.01)
    assert np.array_equal(held.stiffness.A, prior.stiffness.A)
    assert np.array_equal(held.mean.log_f, prior.mean.log_f)
