"""Levenberg-Marquardt on lines and prior."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from problems import street

from geocalib.lines.descent import LineStep, make_level, minimise
from geocalib.lines.unknowns import Array, Guess

WIDTH = math.radians(0.4)


@pytest.mark.parametrize("model", ["pinhole", "simple_radial", "radial", "kannala_brandt"])
def test_the_gradient_is_the_slope_of_the_cost(model: str) -> None:
    """Against central differences, with the noise held as the minimiser holds it."""
    place = street(model)
    problem, layout = place.problem, place.problem.layout
    state = problem.cost_at(problem.view(place.truth), WIDTH)
    at = problem.normal_equations(state)
    own = layout.intrinsics
    gradient = at.gradient[0, 0].copy()
    gradient[:2] += at.pull.time[0, 0]
    gradient[2 : 2 + own] += at.pull.camera[0]

    def cost(step: Array) -> float:
        parts = LineStep(step[None, None, :2], step[None, None, 2:-1], step[None, None, -1:])
        moved = problem.moved(place.truth, at.gravity, parts)
        return float(problem.cost_under(moved, state.noise).cost[0])

    for i, expected in enumerate(gradient):
        step = np.zeros(len(gradient))
        step[i] = 1e-6
        central = 0.5 * (cost(step) - cost(-step)) / 2e-6
        assert central == pytest.approx(expected, rel=1e-3, abs=1e-2), i


def test_it_ends_at_the_truth_from_guesses_side_by_side() -> None:
    place = street(noise=0.05, clutter=10)
    truth = place.truth
    starts = Guess.concatenate(
        [replace(truth, log_f=truth.log_f + off) for off in (-0.15, 0.0, 0.15)]
    )
    found = minimise(place.problem, place.problem.view(starts), WIDTH, 20).guess
    assert np.ptp(found.log_f) < 1e-3
    angle, focal = place.off(found)
    assert angle < 0.1
    assert focal < 0.01


def test_no_iteration_makes_it_worse() -> None:
    place = street()
    start = replace(place.problem.prior.mean, headings=place.truth.headings)
    start = replace(start, headings=make_level(start.headings, start.gravity))
    first = place.problem.view(start)
    noise = place.problem.cost_at(first, WIDTH).noise
    costs = [
        float(place.problem.cost_under(end, noise).cost[0])
        for end in (minimise(place.problem, first, WIDTH, count) for count in range(6))
    ]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < costs[0]


def test_long_steps_are_shortened_together() -> None:
    step = LineStep(np.array([[[0.1, -0.4]]]), np.array([[[0.2]]]), np.array([[[0.6]]]))
    step = step.shortened(step.longest())
    assert step.longest() == pytest.approx(0.2)
    assert step.turn[0, 0, 0] == pytest.approx(0.3)


def test_levelled_headings_are_level() -> None:
    place = street()
    gravity = place.problem.prior.mean.gravity
    heading = make_level(place.truth.headings, gravity)
    assert abs((heading[0, 0, 0] * gravity[0, 0]).sum()) < 1e-12
    assert np.linalg.norm(heading[0, 0, 0]) == pytest.approx(1)
