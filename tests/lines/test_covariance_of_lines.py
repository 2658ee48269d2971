"""How sure the answer is."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from problems import street

from geocalib.lines import covariance as module
from geocalib.lines.covariance import CENTRE, covariance, told_by_lines
from geocalib.lines.descent import settled
from geocalib.lines.minimise import Problem, Scene
from geocalib.lines.together import alone
from geocalib.lines.unknowns import Array

WIDTH = math.radians(0.2)


def sure(problem: Problem, scene: Scene) -> Array:
    """(P, P) of one image."""
    told, guess = told_by_lines(problem, scene), scene.view.guess
    return np.asarray(covariance(problem.prior, problem.layout, guess, told)[0, 0])


def test_without_segments_it_is_the_priors() -> None:
    place = street("simple_radial", log_f_off=0.0)
    nothing = replace(place.problem, active=np.zeros((1, 3), np.bool_))
    mean = replace(place.problem.prior.mean, headings=place.truth.headings)
    block = sure(nothing, nothing.scene(nothing.view(mean), WIDTH))
    sigmas = [math.radians(2.0)] * 2 + [0.3, 0.05]
    assert np.sqrt(np.diagonal(block)) == pytest.approx(sigmas, rel=1e-6)


def test_more_segments_are_surer_and_repeats_less_so() -> None:
    few, many = street(each=30), street(each=120)
    sigmas = []
    for place, repeats in ((few, 4.0), (many, 4.0), (many, 16.0)):
        problem = replace(place.problem, repeats=repeats)
        end = alone(settled(problem, place.truth))
        sigmas.append(np.sqrt(np.diagonal(sure(problem, end))))
    # The focal length is as unsure as the principal point, however many there are.
    assert sigmas[1][0] < 0.7 * sigmas[0][0]
    assert (sigmas[1] < sigmas[2]).all()


def test_information_grows_as_repeats_shrink() -> None:
    place = street()
    scene = place.problem.scene(place.problem.view(place.truth), WIDTH)
    one = told_by_lines(place.problem, scene).arrow
    four = told_by_lines(replace(place.problem, repeats=1.0), scene).arrow
    assert np.allclose(four.A, 4 * one.A)
    assert np.allclose(four.C, 4 * one.C)


def test_a_centre_that_is_off_moves_the_answer_by_its_sigma(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What one sigma of the principal point adds is how far the minimum moves with it."""
    place = street("simple_radial", each=150, clutter=0, noise=0.1)
    problem = place.problem
    end = alone(settled(problem, alone(settled(problem, place.truth)).view.guess))
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
        other = alone(settled(there, alone(settled(there, start)).view.guess)).view.guess
        moved.append(float(other.log_f[0, 0] - end.view.guess.log_f[0, 0]))
    assert math.sqrt(added[2, 2]) == pytest.approx(math.hypot(*moved), rel=0.3)
