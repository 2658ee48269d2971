"""Rival hypotheses about lines, their covariances and odds."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from problems import heading, street
from streets import camera_of, gravity_of, headings_of, prior_of, segments_along

from geocalib.lines import hypotheses as module
from geocalib.lines.batched_search import descend_nearby, single_search, support_of
from geocalib.lines.descent import CostState, LineProblem
from geocalib.lines.hypotheses import (
    CENTRE,
    THIRD,
    chance_not_upright,
    covariance,
    line_information,
    with_free_angles,
    with_third_heading,
)
from geocalib.lines.refine import refine
from geocalib.lines.unknowns import Array
from geocalib.result.evidence import Verdict

WIDTH = math.radians(0.2)


def sure(problem: LineProblem, state: CostState) -> Array:
    """(P, P) of one image."""
    told, guess = line_information(problem, state), state.view.guess
    return np.asarray(covariance(problem.prior, problem.layout, guess, told)[0, 0])


def test_without_segments_it_is_the_priors() -> None:
    place = street("simple_radial", log_f_off=0.0)
    nothing = replace(place.problem, active=np.zeros((1, 3), np.bool_))
    mean = replace(place.problem.prior.mean, headings=place.truth.headings)
    block = sure(nothing, nothing.cost_at(nothing.view(mean), WIDTH))
    sigmas = [math.radians(2.0)] * 2 + [0.3, 0.05]
    assert np.sqrt(np.diagonal(block)) == pytest.approx(sigmas, rel=1e-6)


def test_more_segments_are_surer_and_repeats_less_so() -> None:
    few, many = street(each=30), street(each=120)
    sigmas = []
    for place, repeats in ((few, 4.0), (many, 4.0), (many, 16.0)):
        problem = replace(place.problem, repeats=repeats)
        end = single_search(descend_nearby(problem, place.truth))
        sigmas.append(np.sqrt(np.diagonal(sure(problem, end))))
    # The focal length is as unsure as the principal point, however many there are.
    assert sigmas[1][0] < 0.7 * sigmas[0][0]
    assert (sigmas[1] < sigmas[2]).all()


def test_information_grows_as_repeats_shrink() -> None:
    place = street()
    state = place.problem.cost_at(place.problem.view(place.truth), WIDTH)
    one = line_information(place.problem, state).arrow
    four = line_information(replace(place.problem, repeats=1.0), state).arrow
    assert np.allclose(four.A, 4 * one.A)
    assert np.allclose(four.C, 4 * one.C)


def test_a_centre_that_is_off_moves_the_answer_by_its_sigma(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What one sigma of the principal point adds is how far the minimum moves with it."""
    place = street("simple_radial", each=150, clutter=0, noise=0.1)
    problem = place.problem
    end = single_search(
        descend_nearby(problem, single_search(descend_nearby(problem, place.truth)).view.guess)
    )
    with_centre = sure(problem, end)
    monkeypatch.setattr(module, "CENTRE", 0.0)
    added = with_centre - sure(problem, end)
    shift = CENTRE * problem.layout.size.max()
    moved = []
    for axis in (0, 1):
        c = end.view.guess.c.copy()
        c[..., axis] += shift
        there = replace(
            problem, prior=replace(problem.prior, mean=replace(problem.prior.mean, c=c))
        )
        start = replace(end.view.guess, c=c)
        other = single_search(
            descend_nearby(there, single_search(descend_nearby(there, start)).view.guess)
        ).view.guess
        moved.append(float(other.log_f[0, 0] - end.view.guess.log_f[0, 0]))
    assert math.sqrt(added[2, 2]) == pytest.approx(math.hypot(*moved), rel=0.3)


def test_unlocked_headings_begin_where_the_crossed_ones_are() -> None:
    place = street()
    problem, guess = with_free_angles(place.problem, place.problem.view(place.truth))
    assert problem.active.tolist() == [[True, True, False, True, False]]
    directions = problem.view(guess).alignment.directions[0, 0]
    before = place.problem.view(place.truth).alignment.directions[0, 0]
    assert np.allclose(directions[[0, 1, 3]], before)


def test_unlocked_headings_find_an_angle_that_is_not_right() -> None:
    place = street(degrees=(30.0, 113.0), log_f_off=0.0)
    problem, guess = with_free_angles(place.problem, place.problem.view(place.truth))
    end = single_search(descend_nearby(problem, guess)).view.guess
    first, second = end.headings[0, 0]
    angle = math.degrees(math.acos(abs(float(first @ second))))
    assert angle == pytest.approx(83.0, abs=1.5)


def test_a_third_heading_is_found() -> None:
    place = street(degrees=(30.0, 120.0, 75.0), each=100)
    state = place.problem.cost_at(place.problem.view(place.truth), WIDTH)
    found = with_third_heading(place.problem, state, support_of(state)[0])
    assert found is not None
    problem, guess = found
    assert problem.active[0, THIRD]
    third = guess.headings[0, 0, THIRD // 2]
    assert abs(float(third @ heading(75.0))) > math.cos(math.radians(3.0))


def test_right_angles_alone_have_no_third_heading() -> None:
    place = street(each=100)
    state = place.problem.cost_at(place.problem.view(place.truth), WIDTH)
    assert with_third_heading(place.problem, state, support_of(state)[0]) is None


GRAVITY = gravity_of(3.0, 8.0)
DIRECTIONS = np.concatenate([GRAVITY[None], headings_of(GRAVITY, [30.0, 120.0])])


def probability(
    each: int, off_deg: float, log_f_off: float = 0.05, directions: Array = DIRECTIONS
) -> float:
    """That lines are used, of so many segments per direction, where the network is off."""
    camera = camera_of("pinhole")
    segments = segments_along(camera, directions, each=each, clutter=60, noise=0.3, length=60.0)
    prior = prior_of(camera, GRAVITY, (off_deg, 0.0), log_f_off, sigma_log_f=0.1)
    (answer,) = refine([prior], [segments])
    lines = answer.lines
    assert lines is not None
    return lines.probability if lines.verdict.used else 1 - lines.probability


def test_more_segments_are_believed_more() -> None:
    few, some, many = (probability(each, off_deg=4.0) for each in (12, 40, 120))
    assert few <= some < many


def test_lines_that_agree_with_the_network_are_believed_more() -> None:
    found = [probability(40, off_deg) for off_deg in (1.0, 5.0, 10.0, 20.0)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 0.7
    assert found[-1] < found[0] - 0.05


def test_level_edges_without_a_vertical_one_are_believed_less() -> None:
    """As many segments: waves run in two directions, too."""
    with_vertical, level_alone = DIRECTIONS[:2], DIRECTIONS[1:]
    usual = probability(40, 1.0, directions=with_vertical)
    assert probability(40, 1.0, directions=level_alone) < usual - 0.1


def test_an_unbelieved_contradiction_leaves_the_answer_and_is_told() -> None:
    """Level edges alone, far from what a sure network says of gravity and focal length."""
    camera = camera_of("pinhole")
    segments = segments_along(camera, DIRECTIONS[1:], 40, clutter=60, noise=0.3, length=60.0)
    prior = prior_of(camera, GRAVITY, (12.0, 0.0), 0.6, sigma_deg=0.7, sigma_log_f=0.1)
    (answer,) = refine([prior], [segments])
    assert answer.lines is not None
    assert answer.lines.verdict is Verdict.UNLIKELY
    assert answer.roll_deg == pytest.approx(prior.roll_deg)
    assert answer.lines.unused == len(segments)


def test_level_edges_alone_tell_gravity_and_leave_the_focal_length_to_the_network() -> None:
    """The focal length that makes them cross squarely is mostly wrong where nothing is vertical."""
    camera = camera_of("pinhole")
    streets = headings_of(GRAVITY, [20.0, 70.0])
    segments = segments_along(camera, streets, 60, clutter=30, noise=0.3, length=60.0)
    prior = prior_of(camera, GRAVITY, (1.5, -1.5), log_f_off=0.3)
    (answer,) = refine([prior], [segments])
    assert answer.lines is not None
    assert answer.lines.verdict.used
    before, after = (
        np.degrees(np.arccos(each.gravity @ GRAVITY)).item() for each in (prior, answer)
    )
    assert after < 0.7 * before
    assert abs(math.log(answer.fy / prior.fy)) < 0.02


def test_a_lens_that_hardly_anyone_has_is_believed_less() -> None:
    """As many segments, and a network that is as far off: once towards a usual lens."""
    odds = []
    for factor in (1.0, 6.0):
        camera = camera_of("pinhole")
        camera = replace(camera, f=factor * camera.f)
        segments = segments_along(camera, DIRECTIONS, 80, clutter=60, noise=0.3, length=60.0)
        prior = prior_of(camera, GRAVITY, log_f_off=-0.8, sigma_log_f=0.4)
        (answer,) = refine([prior], [segments])
        assert answer.lines is not None
        share = answer.lines.probability
        odds.append(share if answer.lines.verdict.used else 1 - share)
    assert odds[1] < odds[0] - 0.1


def test_sigmas_are_those_of_how_well_segments_keep_to_their_directions() -> None:
    """Some are turned by more than their noise says."""
    camera = camera_of("pinhole")
    exact = segments_along(camera, DIRECTIONS, 80, noise=0.1, length=60.0)
    turn = np.random.default_rng(1).normal(0, math.radians(0.6), len(exact))
    along = exact.ends[:, 1] - exact.ends[:, 0]
    aside = 0.5 * turn[:, None] * np.stack([-along[:, 1], along[:, 0]], -1)
    turned = replace(exact, ends=exact.ends + np.stack([-aside, aside], 1))
    sigmas = []
    for segments in (exact, turned):
        (answer,) = refine([prior_of(camera, GRAVITY, sigma_deg=1.0)], [segments])
        sigmas.append(answer.sigma.roll_deg)
    assert sigmas[1] > 1.35 * sigmas[0]


def test_verticals_alone_count_where_what_else_is_parallel_is_not_level() -> None:
    """Rafters: gravity follows the verticals, and the focal length stays the network's."""
    camera = camera_of("pinhole")
    level = headings_of(GRAVITY, [30.0])[0]
    rafters = np.stack([level + 0.4 * GRAVITY, level - 0.4 * GRAVITY])
    rafters = rafters / np.linalg.norm(rafters, axis=-1, keepdims=True)
    directions = np.concatenate([GRAVITY[None], rafters])
    segments = segments_along(camera, directions, each=80, clutter=30, noise=0.3)
    prior = prior_of(camera, GRAVITY, (0.5, -0.5), sigma_log_f=0.1, sigma_deg=0.7)
    (answer,) = refine([prior], [segments])
    angle = math.degrees(np.arccos((answer.gravity * GRAVITY).sum().clip(-1, 1)).item())
    assert angle < 1.0
    assert abs(math.log(answer.fy / camera.f.item())) < 0.1


def test_probabilities_sum_to_one() -> None:
    from geocalib.lines.hypotheses import probabilities

    assert np.array_equal(probabilities([]), [1.0])


@pytest.mark.parametrize(
    ("change", "likelier"),
    [
        ({"pitch_sigma": math.radians(6)}, True),
        ({"gravity": gravity_of(0.0, 30.0)}, True),
        ({"gravity": gravity_of(8.0, 0.0)}, True),
        ({"directions": headings_of(gravity_of(0.0, 0.0), (5.0,)), "vertical": [False]}, True),
        ({"pitch_sigma": math.radians(0.8)}, False),
        ({"gravity": gravity_of(0.0, -30.0)}, False),
    ],
)
def test_what_speaks_against_an_upright_world(change: dict[str, Any], likelier: bool) -> None:
    level = gravity_of(0.0, 0.0)
    street: dict[str, Any] = {
        "gravity": level,
        "pitch_sigma": math.radians(2.5),
        "directions": np.concatenate([level[None], headings_of(level, (40.0, 130.0))]),
        "vertical": [True, False, False],
    }
    usual, other = (
        chance_not_upright(**{**each, "vertical": np.array(each["vertical"])})
        for each in (street, street | change)
    )
    assert 0.02 < usual < 0.06
    assert (other > 1.5 * usual) if likelier else (other < usual + 1e-9)


def test_a_sheet_of_paper_seen_from_above_is_not_taken_for_a_wall_without_doubt() -> None:
    """Its edges are those of a wall seen face to face, and the network is not sure."""
    camera = camera_of("pinhole")
    down, level = gravity_of(0.0, -85.0), gravity_of(0.0, 5.0)
    sheet = segments_along(camera, headings_of(down, (0.0, 90.0)), 100, noise=0.3, length=60.0)
    network = prior_of(camera, level, sigma_deg=5.0)
    (answer,) = refine([network], [sheet])
    (street,) = refine(
        [prior_of(camera, GRAVITY)], [segments_along(camera, DIRECTIONS, 80, noise=0.3)]
    )
    assert answer.lines is not None
    assert answer.lines.verdict.used
    assert answer.sigma.gravity_deg > 8
    assert answer.lines.probability < 0.9
    assert street.sigma.gravity_deg < 1
