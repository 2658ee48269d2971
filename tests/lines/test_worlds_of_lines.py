"""Level directions that turn freely."""

from __future__ import annotations

import math

import numpy as np
import pytest
from problems import heading, street

from geocalib.lines.descent import settled, support_of
from geocalib.lines.together import alone
from geocalib.lines.worlds import THIRD, unlocked, with_extra

WIDTH = math.radians(0.2)


def test_unlocked_headings_begin_where_the_crossed_ones_are() -> None:
    place = street()
    problem, guess = unlocked(place.problem, place.problem.view(place.truth))
    assert problem.active.tolist() == [[True, True, False, True, False]]
    directions = problem.view(guess).sight.directions[0, 0]
    before = place.problem.view(place.truth).sight.directions[0, 0]
    assert np.allclose(directions[[0, 1, 3]], before)


def test_unlocked_headings_find_an_angle_that_is_not_right() -> None:
    place = street(degrees=(30.0, 113.0), log_f_off=0.0)
    problem, guess = unlocked(place.problem, place.problem.view(place.truth))
    end = alone(settled(problem, guess)).view.guess
    first, second = end.headings[0, 0]
    angle = math.degrees(math.acos(abs(float(first @ second))))
    assert angle == pytest.approx(83.0, abs=1.5)


def test_a_third_heading_is_found() -> None:
    place = street(degrees=(30.0, 120.0, 75.0), each=100)
    scene = place.problem.scene(place.problem.view(place.truth), WIDTH)
    found = with_extra(place.problem, scene, support_of(scene)[0])
    assert found is not None
    problem, guess = found
    assert problem.active[0, THIRD]
    third = guess.headings[0, 0, THIRD // 2]
    assert abs(float(third @ heading(75.0))) > math.cos(math.radians(3.0))


def test_right_angles_alone_have_no_third_heading() -> None:
    place = street(each=100)
    scene = place.problem.scene(place.problem.view(place.truth), WIDTH)
    assert with_extra(place.problem, scene, support_of(scene)[0]) is None
