"""Warnings come where an answer is doubtful, and only there."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from scipy.special import ndtri

from calibrations import one
from geocalib.result.trust import (
    DOUBTFUL_GRAVITY_DEG,
    DOUBTFUL_VFOV_DEG,
    DOUBTFUL_VFOV_SHARE,
    doubts,
)
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


@pytest.mark.parametrize("narrow", [False, True])
def test_an_uncertain_field_of_view(narrow: bool) -> None:
    answer = one(f=2000.0) if narrow else one()
    limit = DOUBTFUL_VFOV_SHARE * answer.vfov_deg if narrow else DOUBTFUL_VFOV_DEG
    assert (limit < DOUBTFUL_VFOV_DEG) == narrow
    certain, uncertain = (
        replace(answer, sigma=replace(answer.sigma, vfov_deg=sigma, gravity_deg=gravity))
        for sigma, gravity in ((limit, DOUBTFUL_GRAVITY_DEG), (1.01 * limit, 0.0))
    )
    assert doubts(certain) == ()
    assert doubts(uncertain) == (f"the field of view is uncertain (± {1.01 * limit:.0f}°)",)


def test_the_limit_is_a_probability() -> None:
    """More than 10 degrees off with a probability of a third, half of it on either side."""
    assert -ndtri(1 / 6) * DOUBTFUL_VFOV_DEG == pytest.approx(10, rel=0.01)


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
