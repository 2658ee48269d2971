"""Warnings come where an answer is doubtful, and only there."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from calibrations import one
from geocalib.result.trust import DOUBTFUL_GRAVITY_DEG, chance_far_off, doubts
from geocalib.solver import Status


def test_an_ordinary_answer_is_not_doubted() -> None:
    assert doubts(one()) == ()


def test_a_fit_that_did_not_settle() -> None:
    (doubt,) = doubts(replace(one(), status=str(Status.STALLED)))
    assert doubt == f"the fit did not settle: {Status.STALLED}"


@pytest.mark.parametrize(
    ("sigma_deg", "words"),
    [(7.4, "± 7°"), (1e5, "± 180°"), (math.inf, "± 180°"), (math.nan, "± 180°")],
)
def test_uncertain_gravity(sigma_deg: float, words: str) -> None:
    answer = one()
    uncertain = replace(answer, sigma=replace(answer.sigma, gravity_deg=sigma_deg))
    assert doubts(uncertain) == (f"the direction of gravity is uncertain ({words})",)


@pytest.mark.parametrize(("f", "limit"), [(300.0, 10.4), (2000.0, 7.4)])
def test_an_uncertain_field_of_view(f: float, limit: float) -> None:
    """A view of 77 degrees, and one of 14."""
    answer = one(f=f)
    certain, uncertain = (
        replace(answer, sigma=replace(answer.sigma, vfov_deg=sigma, gravity_deg=gravity))
        for sigma, gravity in ((0.95 * limit, DOUBTFUL_GRAVITY_DEG), (1.05 * limit, 0.0))
    )
    assert doubts(certain) == ()
    assert doubts(uncertain) == (f"the field of view is uncertain (± {1.05 * limit:.0f}°)",)


@pytest.mark.parametrize("vfov_deg", [14.0, 40.0, 77.0])
@pytest.mark.parametrize("sigma_deg", [4.0, 12.0])
def test_the_chance_is_that_of_focal_lengths(vfov_deg: float, sigma_deg: float) -> None:
    """Off by ten degrees, or by half of it, with focal lengths whose logarithms are normal."""
    half = math.radians(0.5 * vfov_deg)
    log_f = np.random.default_rng(0).normal(0, math.radians(sigma_deg), 200_000)
    log_f = log_f / math.sin(2 * half)
    drawn = np.rad2deg(2 * np.arctan(math.tan(half) * np.exp(-log_f)))
    far = np.abs(drawn - vfov_deg) > min(10.0, 0.5 * vfov_deg)
    assert chance_far_off(vfov_deg, sigma_deg) == pytest.approx(far.mean(), abs=0.005)


def test_views_wider_than_a_plane_shows() -> None:
    assert chance_far_off(200.0, 10.0) == pytest.approx(2 * ndtr(-1.0))
    assert chance_far_off(60.0, math.inf) == 1.0
    assert chance_far_off(60.0, 0.0) == chance_far_off(60.0, math.nan) == 0.0


def test_a_lens_that_does_not_fill_the_image_is_not_doubted() -> None:
    answer = one("eucm", f=20.0, distortion=(0.6, 1.1))
    assert math.isnan(answer.vfov_deg)
    assert doubts(replace(answer, sigma=replace(answer.sigma, vfov_deg=math.nan))) == ()


def test_every_reason_is_told() -> None:
    answer = one()
    bad = replace(
        answer,
        status=str(Status.MAX_ITERATIONS),
        sigma=replace(answer.sigma, gravity_deg=20.0, vfov_deg=60.0),
    )
    assert len(doubts(bad)) == 3
