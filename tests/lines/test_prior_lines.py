"""What is believed before lines are seen."""

from __future__ import annotations

import math

import pytest
import torch
from streets import camera_of, gravity_of, prior_of

from geocalib.geometry.conventions import TRIVIAL_FOCAL
from geocalib.lines.prior import SHARED_ERROR, USUAL_LOG_F, log_f_sigma, network_prior, usual
from geocalib.solver.coupling import couple

ALONE = couple(1, None, None, torch.device("cpu"))
GRAVITY = gravity_of(2.0, 5.0)


def test_the_prior_is_the_networks_answer() -> None:
    answer = prior_of(camera_of("pinhole"), GRAVITY, sigma_log_f=0.2)
    prior, layout = network_prior([answer], ALONE)
    assert prior.mean.log_f[0, 0] == pytest.approx(math.log(answer.fy))
    assert log_f_sigma(prior) == pytest.approx(0.2)
    assert prior.distance(prior.mean, layout)[0] == pytest.approx(0, abs=1e-6)


def test_a_network_that_cannot_tell_the_focal_length_leaves_the_usual_one() -> None:
    answer = prior_of(camera_of("pinhole"), GRAVITY, log_f_off=2.0, sigma_log_f=5.0)
    found = usual(answer)
    trivial = TRIVIAL_FOCAL * max(answer.width, answer.height)
    assert abs(math.log(found.fy / trivial)) < 0.1
    assert found.covariance[2, 2].sqrt().item() == pytest.approx(USUAL_LOG_F, rel=0.02)


def test_a_sure_network_hardly_moves() -> None:
    answer = prior_of(camera_of("pinhole"), GRAVITY, log_f_off=0.5, sigma_log_f=0.05)
    assert abs(math.log(usual(answer).fy / answer.fy)) < 0.02


def test_only_what_the_network_says_is_taken_for_shared_error() -> None:
    """By EXIF, the same sigma stays as it is; of both, the information of each has its own."""
    answer = prior_of(camera_of("pinhole"), GRAVITY, sigma_log_f=0.03)

    def sigma(told: float) -> float:
        return usual(answer, told).covariance[2, 2].sqrt().item()

    assert sigma(0.03**-2) == pytest.approx(0.03, rel=1e-2)
    assert sigma(0.0) == pytest.approx(SHARED_ERROR * 0.03, rel=1e-2)
    half = 0.5 * 0.03**-2
    assert sigma(half) == pytest.approx((half + half / SHARED_ERROR**2) ** -0.5, rel=1e-2)


@pytest.mark.parametrize("model", ["kannala_brandt", "eucm"])
def test_wide_lenses_are_not_usual(model: str) -> None:
    answer = prior_of(camera_of(model), GRAVITY)
    assert usual(answer) is answer
