"""From starts to a minimum, and the directions that it keeps."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from problems import heading, street

from geocalib.lines.descent import (
    LEAST_SUPPORT,
    afresh,
    modes_from,
    settled,
    starts_of,
    support_of,
    supported_minimum,
)
from geocalib.lines.search import survey
from geocalib.lines.together import alone


def test_the_best_of_several_starts_ends_at_the_truth() -> None:
    place = street(log_f_off=0.3)
    problem = place.problem
    scape = alone(survey(problem))
    modes = alone(modes_from(problem, starts_of(problem, [scape])))
    assert modes.weights.sum() == pytest.approx(1)
    assert modes.weights[0] == modes.weights.max()
    problem, end, _ = alone(supported_minimum(problem, modes))
    assert problem.active.all()
    angle, focal = place.off(end.view.guess)
    assert angle < 0.2
    assert focal < 0.02


def test_a_heading_that_no_segment_follows_is_dropped() -> None:
    place = street(degrees=(30.0,), each=100)
    modes = alone(modes_from(place.problem, place.truth))
    problem, end, _ = alone(supported_minimum(place.problem, modes))
    assert problem.active.tolist() == [[True, True, False]]
    support = support_of(end)[0]
    assert (support[problem.active] >= LEAST_SUPPORT).all()


def test_clutter_keeps_no_direction() -> None:
    place = street(each=0, clutter=300)
    modes = alone(modes_from(place.problem, place.truth))
    problem, _, _ = alone(supported_minimum(place.problem, modes))
    assert not problem.active.any()


def test_what_nothing_tells_any_more_goes_back_to_the_prior() -> None:
    """Verticals of a level camera tell no focal length: a far one was the headings' word."""
    place = street(log_f_off=0.1)
    upright = replace(place.problem, active=np.array([[True, False, False]]))
    far = replace(place.truth, log_f=place.truth.log_f - 1.5)
    end, modes = alone(afresh(upright, far))
    mean = upright.prior.mean
    assert len(modes.guesses) == 2
    assert abs(end.view.guess.log_f - mean.log_f)[0, 0] < 0.3
    assert end.cost <= alone(settled(upright, far)).cost


def test_a_world_without_headings_is_one_whose_headings_nothing_follows() -> None:
    place = street()
    masked = replace(place.problem, active=np.array([[True, False, False]]))
    some = alone(settled(masked, place.truth)).view.guess
    none = alone(settled(masked.upright(), place.truth.upright())).view.guess
    assert np.allclose(none.gravity, some.gravity, atol=1e-12)
    assert np.allclose(none.log_f, some.log_f, atol=1e-10)


def test_spread_is_that_of_the_other_modes() -> None:
    place = street()
    modes = alone(modes_from(place.problem, place.truth))
    assert np.abs(modes.spread(place.problem.layout)).max() < 1e-20
    both = replace(place.truth, log_f=place.truth.log_f + 0.2)
    two = type(modes.guesses).concatenate([place.truth, both])
    spread = replace(modes, guesses=two, weights=np.array([0.75, 0.25]))
    assert spread.spread(place.problem.layout)[0, 2, 2] == pytest.approx(0.25 * 0.2**2)


def test_the_turned_heading_settles() -> None:
    place = street()
    off = replace(place.truth, headings=heading(30.4)[None, None, None])
    end = alone(settled(place.problem, off)).view.guess
    cosine = abs(float(end.headings[0, 0, 0] @ heading(30.0)))
    assert cosine > math.cos(math.radians(0.2))
