"""Photos side by side: nothing that is found depends on who is searched for beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from problems import Street, street
from streets import camera_of, gravity_of, headings_of, prior_of, segments_along

from geocalib.lines import straightness
from geocalib.lines.descent import FIRST, FIRST_BENT, LAST, modes_from, settled
from geocalib.lines.judgement import Judgement, Telling
from geocalib.lines.minimise import Scene
from geocalib.lines.refine import refine
from geocalib.lines.rows import joined
from geocalib.lines.together import ABREAST, Descent, alone, side_by_side, together
from geocalib.lines.unknowns import Guess


def places() -> list[Street]:
    every = [street(log_f_off=0.3), street(degrees=(30.0,), each=100), street(each=40, noise=1.0)]
    return [
        replace(p, problem=replace(p.problem, bundle=p.problem.bundle.rounded())) for p in every
    ]


def ends() -> list[Scene]:
    return [alone(settled(place.problem, place.truth)) for place in places()]


def equal(one: Guess, other: Guess) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("gravity", "log_f", "distortion", "c", "headings")
    )


def test_searches_end_where_each_ends_alone() -> None:
    every = places()
    found = together([modes_from(place.problem, place.truth) for place in every])
    for place, modes in zip(every, found, strict=True):
        assert equal(modes.guesses, alone(modes_from(place.problem, place.truth)).guesses)


def test_rows_of_one_problem_see_what_each_problem_sees() -> None:
    every = places()
    rows = [1, 2, 3]
    guesses = [
        Guess.concatenate([place.truth] * count) for place, count in zip(every, rows, strict=True)
    ]
    problem = side_by_side([place.problem for place in every], rows)
    scene = problem.scene(problem.view(Guess.concatenate(guesses)), 0.01)
    apart = [
        place.problem.scene(place.problem.view(guess), 0.01).cost
        for place, guess in zip(every, guesses, strict=True)
    ]
    assert np.array_equal(scene.cost, np.concatenate(apart))


def test_segments_of_several_tell_what_those_of_each_tell_alone() -> None:
    """Those of scenes that were seen apart as well."""
    asked = [Telling(place.problem, end) for place, end in zip(places(), ends(), strict=True)]
    assert len({each.kind for each in asked}) == 1
    for each, found in zip(asked, Telling.answered(asked), strict=True):
        (single,) = Telling.answered([each])
        assert np.array_equal(found.gains, single.gains)
        assert np.array_equal(found.told.arrow.A, single.told.arrow.A)
        assert np.array_equal(found.caution, single.caution)


def test_guesses_are_judged_together_as_each_alone() -> None:
    """Whatever told them: by the vertical alone or with two headings, one guess or two."""
    asked = []
    for number, (place, end) in enumerate(zip(places(), ends(), strict=True)):
        problem, guess = place.problem, end.view.guess
        if number == 1:
            problem, guess = problem.upright(), guess.upright()
            end = problem.scene(problem.view(guess), 0.01)
        (found,) = Telling.answered([Telling(problem, end)])
        rows = [0] * (1 + number)
        told, caution = joined(*[found.told] * len(rows)), found.caution[rows]
        asked.append(Judgement(problem, guess.upright()[rows], problem.prior, told, caution))
    assert len({each.kind for each in asked}) == 1
    for each, (agreement, blocks) in zip(asked, Judgement.answered(asked), strict=True):
        ((single, own),) = Judgement.answered([each])
        assert agreement == single
        assert np.array_equal(blocks, own)


def test_lenses_that_bend_much_take_more_steps_than_pinholes_that_bend_a_little() -> None:
    taken = {}
    for model in (straightness.MODEL.name, "simple_radial"):
        place = street(model)
        request = next(modes_from(place.problem, place.truth))
        assert isinstance(request, Descent)
        taken[model] = request.rounds
    assert taken == {straightness.MODEL.name: FIRST, "simple_radial": FIRST_BENT}


def test_descents_of_one_kind_have_as_many_segments_and_directions() -> None:
    place = places()[0]
    first = Descent(place.problem, place.truth, LAST)
    upright = Descent(place.problem.upright(), place.truth.upright(), LAST)
    few = replace(first, problem=replace(place.problem, bundle=place.problem.bundle.longest(140)))
    assert first.kind == replace(first, guess=place.truth[[0, 0]]).kind
    assert len({each.kind for each in (first, upright, few)}) == 3
    assert sorted([upright, first, few], key=lambda each: each.turn) == [few, first, upright]


def test_more_photos_than_go_abreast_get_the_answers_that_each_gets_alone() -> None:
    """To the last bit, whatever their lenses and however many segments they have."""
    priors, segments = [], []
    for number in range(ABREAST + 2):
        gravity = gravity_of(2.0 * number - 8, 3.0 * number - 12)
        camera = camera_of("simple_radial" if number % 3 == 2 else "pinhole")
        directions = np.concatenate([gravity[None], headings_of(gravity, [20.0, 110.0])])
        each, clutter = 10 + 14 * number, 150 * (number % 2)
        segments.append(segments_along(camera, directions[: 1 + number % 3], each, clutter, 0.5))
        priors.append(prior_of(camera, gravity, log_f_off=0.05 * number))
    for i, answer in enumerate(refine(priors, segments)):
        (single,) = refine([priors[i]], [segments[i]])
        assert np.array_equal(answer.gravity, single.gravity)
        assert np.array_equal(answer.camera.f, single.camera.f)
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
        assert np.array_equal(answer.camera.f, single.camera.f)
        assert np.array_equal(answer.covariance, single.covariance)
