"""Where to start."""

from __future__ import annotations

import math

import numpy as np
import pytest
from problems import GRAVITY, REPEATS, heading, street

from geocalib.lines.residuals import directions_of, look
from geocalib.lines.search import COARSE, likelihood_ratios, peaks, survey
from geocalib.lines.together import alone


def test_the_peak_of_the_landscape_is_near_the_truth() -> None:
    place = street(log_f_off=0.25)
    problem = place.problem
    scape = alone(survey(problem))
    best = int((scape.crossed.max(1) / REPEATS - scape.penalty).argmax())
    spacing = np.diff(scape.guess.log_f[:, 0])[0]
    assert abs(scape.guess.log_f[best, 0] - place.truth.log_f[0, 0]) < 1.5 * spacing
    cosines = np.abs(scape.heading(best) @ np.stack([heading(30.0), heading(120.0)]).T)
    assert cosines.max() > math.cos(math.radians(3.0))
    assert scape.guess.gravity[best, 0] @ GRAVITY > math.cos(math.radians(1.0))


def test_verticals_mend_gravity_before_headings_are_tried() -> None:
    """The prior is nearly 2 degrees off."""
    place = street(clutter=0, log_f_off=0.0)
    problem = place.problem
    scape = alone(survey(problem))
    middle = len(scape.guess) // 2
    before, _ = place.off(problem.prior.mean)
    after, _ = place.off(scape.guess[[middle]])
    assert after < 0.3 * before


def test_ratios_are_those_of_the_residuals() -> None:
    """In single precision, against the density of the sines, over that of clutter."""
    place = street(each=8, clutter=8)
    problem, truth = place.problem, place.truth
    images = problem.layout.images(truth)
    directions = directions_of(images.gravity, truth.headings)
    sight = look(images, problem.bundle, directions)
    ratio = likelihood_ratios(sight.optics.vectors, problem.bundle, directions[0])
    pixels, length = problem.bundle.noise[0], problem.bundle.length[0]
    nearness = np.abs(directions[0, ..., 2:] * sight.inverse[0, 0])
    variance = pixels**2 * (2 / length**2 + 0.5 * nearness**2) + COARSE**2
    density = np.sqrt(0.5 * math.pi / variance)
    density = density * np.exp(-0.5 * sight.residual[0, 0] ** 2 / variance)
    assert ratio[0] == pytest.approx(density[0], rel=1e-3, abs=1e-4)


def test_peaks_keep_apart() -> None:
    profile = np.array([0.0, 5.0, 4.9, 1.0, 3.0, 2.9, 0.5])
    assert peaks(profile, 2) == [1, 4]
    assert peaks(profile, 9) == [1, 4, 6]
