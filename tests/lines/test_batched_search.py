"""Searches side by side, and the minima that they end at."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from problems import Street, heading, street
from streets import camera_of, gravity_of, headings_of, prior_of, segments_along

from geocalib.lines import distortion
from geocalib.lines.batched_search import (
    BATCH_SIZE,
    FIRST,
    FIRST_BENT,
    LAST,
    LEAST_SUPPORT,
    Descent,
    batched_search,
    descend_nearby,
    modes_from,
    restart,
    single_search,
    stack_problems,
    support_of,
    supported_minimum,
)
from geocalib.lines.descent import CostState
from geocalib.lines.hypotheses import CovarianceRequest, EvidenceRequest
from geocalib.lines.refine import refine
from geocalib.lines.starts import grid_starts, search_grid
from geocalib.lines.unknowns import Guess, concatenate_rows


def places() -> list[Street]:
    every = [street(log_f_off=0.3), street(degrees=(30.0,), each=100), street(each=40, noise=1.0)]
    return [replace(p, problem=replace(p.problem, batch=p.problem.batch.padded())) for p in every]


def ends() -> list[CostState]:
    return [single_search(descend_nearby(place.problem, place.truth)) for place in places()]


def equal(one: Guess, other: Guess) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("gravity", "log_f", "distortion", "c", "headings")
    )


def test_searches_end_where_each_ends_alone() -> None:
    every = places()
    found = batched_search([modes_from(place.problem, place.truth) for place in every])
    for place, modes in zip(every, found, strict=True):
        assert equal(modes.guesses, single_search(modes_from(place.problem, place.truth)).guesses)


def test_rows_of_one_problem_see_what_each_problem_sees() -> None:
    every = places()
    rows = [1, 2, 3]
    guesses = [
        Guess.concatenate([place.truth] * count) for place, count in zip(every, rows, strict=True)
    ]
    problem = stack_problems([place.problem for place in every], rows)
    state = problem.cost_at(problem.view(Guess.concatenate(guesses)), 0.01)
    apart = [
        place.problem.cost_at(place.problem.view(guess), 0.01).cost
        for place, guess in zip(every, guesses, strict=True)
    ]
    assert np.array_equal(state.cost, np.concatenate(apart))


def test_segments_of_several_tell_what_those_of_each_tell_alone() -> None:
    """Those of scenes that were seen apart as well."""
    asked = [
        EvidenceRequest(place.problem, end) for place, end in zip(places(), ends(), strict=True)
    ]
    assert len({each.kind for each in asked}) == 1
    for each, found in zip(asked, EvidenceRequest.answered(asked), strict=True):
        (single,) = EvidenceRequest.answered([each])
        assert np.array_equal(found.gains, single.gains)
        assert np.array_equal(found.information.arrow.A, single.information.arrow.A)
        assert np.array_equal(found.caution, single.caution)


def test_guesses_are_judged_together_as_each_alone() -> None:
    """Whatever told them: by the vertical alone or with two headings, one guess or two."""
    asked = []
    for number, (place, end) in enumerate(zip(places(), ends(), strict=True)):
        problem, guess = place.problem, end.view.guess
        if number == 1:
            problem, guess = problem.upright(), guess.upright()
            end = problem.cost_at(problem.view(guess), 0.01)
        (found,) = EvidenceRequest.answered([EvidenceRequest(problem, end)])
        rows = [0] * (1 + number)
        told, caution = concatenate_rows(*[found.information] * len(rows)), found.caution[rows]
        asked.append(
            CovarianceRequest(problem, guess.upright()[rows], problem.prior, told, caution)
        )
    assert len({each.kind for each in asked}) == 1
    for each, found in zip(asked, CovarianceRequest.answered(asked), strict=True):
        *judged, blocks = found
        ((*single, own),) = CovarianceRequest.answered([each])
        assert judged == single
        assert np.array_equal(blocks, own)


def test_lenses_that_bend_much_take_more_steps_than_pinholes_that_bend_a_little() -> None:
    taken = {}
    for model in (distortion.MODEL.name, "simple_radial"):
        place = street(model)
        request = next(modes_from(place.problem, place.truth))
        assert isinstance(request, Descent)
        taken[model] = request.rounds
    assert taken == {distortion.MODEL.name: FIRST, "simple_radial": FIRST_BENT}


def test_descents_of_one_kind_have_as_many_segments_and_directions() -> None:
    place = places()[0]
    first = Descent(place.problem, place.truth, LAST)
    upright = Descent(place.problem.upright(), place.truth.upright(), LAST)
    few = replace(first, problem=replace(place.problem, batch=place.problem.batch.longest(140)))
    assert first.kind == replace(first, guess=place.truth[[0, 0]]).kind
    assert len({each.kind for each in (first, upright, few)}) == 3
    assert sorted([upright, first, few], key=lambda each: each.priority) == [few, first, upright]


def test_more_photos_than_go_abreast_get_the_answers_that_each_gets_alone() -> None:
    """To the last bit, whatever their lenses and however many segments they have."""
    priors, segments = [], []
    for number in range(BATCH_SIZE + 2):
        gravity = gravity_of(2.0 * number - 8, 3.0 * number - 12)
        camera = camera_of("simple_radial" if number % 3 == 2 else "pinhole")
        directions = np.concatenate([gravity[None], headings_of(gravity, [20.0, 110.0])])
        each, clutter = 10 + 14 * number, 150 * (number % 2)
        segments.append(segments_along(camera, directions[: 1 + number % 3], each, clutter, 0.5))
        priors.append(prior_of(camera, gravity, log_f_off=0.05 * number))
    for i, answer in enumerate(refine(priors, segments)):
        (single,) = refine([priors[i]], [segments[i]])
        assert np.array_equal(answer.gravity, single.gravity)
        assert np.array_equal(answer.cameras.f, single.cameras.f)
        assert np.array_equal(answer.covariance, single.covariance)


def test_photos_whose_lines_are_looked_at_once_more_get_the_answers_that_each_gets_alone() -> None:
    """Level edges alone, and a network that is far off."""
    camera, gravity = camera_of("pinhole"), gravity_of(3.0, 8.0)
    priors, segments = [], []
    for number, degrees in enumerate(([20.0, 70.0], [30.0, 120.0], [10.0, 50.0])):
        along = headings_of(gravity, degrees)
        segments.append(segments_along(camera, along, 60, clutter=30, noise=0.3, length=60.0))
        off = (1.5, -1.5) if number < 2 else (40.0, 0.0)
        priors.append(prior_of(camera, gravity, off, log_f_off=0.3))
    for i, answer in enumerate(refine(priors, segments)):
        (single,) = refine([priors[i]], [segments[i]])
        assert np.array_equal(answer.gravity, single.gravity)
        assert np.array_equal(answer.cameras.f, single.cameras.f)
        assert np.array_equal(answer.covariance, single.covariance)


def test_the_best_of_several_starts_ends_at_the_truth() -> None:
    place = street(log_f_off=0.3)
    problem = place.problem
    grid = single_search(search_grid(problem))
    modes = single_search(modes_from(problem, grid_starts(problem, [grid])))
    assert modes.weights.sum() == pytest.approx(1)
    assert modes.weights[0] == modes.weights.max()
    problem, end, _ = single_search(supported_minimum(problem, modes))
    assert problem.active.all()
    angle, focal = place.off(end.view.guess)
    assert angle < 0.2
    assert focal < 0.02


def test_a_heading_that_no_segment_follows_is_dropped() -> None:
    place = street(degrees=(30.0,), each=100)
    modes = single_search(modes_from(place.problem, place.truth))
    problem, end, _ = single_search(supported_minimum(place.problem, modes))
    assert problem.active.tolist() == [[True, True, False]]
    support = support_of(end)[0]
    assert (support[problem.active] >= LEAST_SUPPORT).all()


def test_clutter_keeps_no_direction() -> None:
    place = street(each=0, clutter=300)
    modes = single_search(modes_from(place.problem, place.truth))
    problem, _, _ = single_search(supported_minimum(place.problem, modes))
    assert not problem.active.any()


def test_what_nothing_tells_any_more_goes_back_to_the_prior() -> None:
    """Verticals of a level camera tell no focal length: a far one was the headings' word."""
    place = street(log_f_off=0.1)
    upright = replace(place.problem, active=np.array([[True, False, False]]))
    far = replace(place.truth, log_f=place.truth.log_f - 1.5)
    end, modes = single_search(restart(upright, far))
    mean = upright.prior.mean
    assert len(modes.guesses) == 2
    assert abs(end.view.guess.log_f - mean.log_f)[0, 0] < 0.3
    assert end.cost <= single_search(descend_nearby(upright, far)).cost


def test_a_world_without_headings_is_one_whose_headings_nothing_follows() -> None:
    place = street()
    masked = replace(place.problem, active=np.array([[True, False, False]]))
    some = single_search(descend_nearby(masked, place.truth)).view.guess
    none = single_search(descend_nearby(masked.upright(), place.truth.upright())).view.guess
    assert np.allclose(none.gravity, some.gravity, atol=1e-12)
    assert np.allclose(none.log_f, some.log_f, atol=1e-10)


def test_spread_is_that_of_the_other_modes() -> None:
    place = street()
    modes = single_search(modes_from(place.problem, place.truth))
    assert np.abs(modes.spread(place.problem.layout)).max() < 1e-20
    both = replace(place.truth, log_f=place.truth.log_f + 0.2)
    two = type(modes.guesses).concatenate([place.truth, both])
    spread = replace(modes, guesses=two, weights=np.array([0.75, 0.25]))
    assert spread.spread(place.problem.layout)[0, 2, 2] == pytest.approx(0.25 * 0.2**2)


def test_the_turned_heading_settles() -> None:
    place = street()
    off = replace(place.truth, headings=heading(30.4)[None, None, None])
    end = single_search(descend_nearby(place.problem, off)).view.guess
    cosine = abs(float(end.headings[0, 0, 0] @ heading(30.0)))
    assert cosine > math.cos(math.radians(0.2))
