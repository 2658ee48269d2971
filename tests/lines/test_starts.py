"""Where searches start."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from problems import GRAVITY, REPEATS, heading, street
from streets import camera_of, errors_of, gravity_of, headings_of, prior_of, segments_along

from geocalib.lines import refine as module
from geocalib.lines.batched_search import single_search
from geocalib.lines.refine import refine
from geocalib.lines.residuals import align, directions_of
from geocalib.lines.starts import COARSE, likelihood_ratios, peaks, sample_starts, search_grid
from geocalib.lines.starts import SAMPLED_STARTS as STARTS


def test_the_peak_of_the_landscape_is_near_the_truth() -> None:
    place = street(log_f_off=0.25)
    problem = place.problem
    grid = single_search(search_grid(problem))
    best = int((grid.crossed.max(1) / REPEATS - grid.penalty).argmax())
    spacing = np.diff(grid.guess.log_f[:, 0])[0]
    assert abs(grid.guess.log_f[best, 0] - place.truth.log_f[0, 0]) < 1.5 * spacing
    cosines = np.abs(grid.heading(best) @ np.stack([heading(30.0), heading(120.0)]).T)
    assert cosines.max() > math.cos(math.radians(3.0))
    assert grid.guess.gravity[best, 0] @ GRAVITY > math.cos(math.radians(1.0))


def test_verticals_mend_gravity_before_headings_are_tried() -> None:
    """The prior is nearly 2 degrees off."""
    place = street(clutter=0, log_f_off=0.0)
    problem = place.problem
    grid = single_search(search_grid(problem))
    middle = len(grid.guess) // 2
    before, _ = place.off(problem.prior.mean)
    after, _ = place.off(grid.guess[[middle]])
    assert after < 0.3 * before


def test_ratios_are_those_of_the_residuals() -> None:
    """In single precision, against the density of the sines, over that of clutter."""
    place = street(each=8, clutter=8)
    problem, truth = place.problem, place.truth
    images = problem.layout.images(truth)
    directions = directions_of(images.gravity, truth.headings)
    alignment = align(images, problem.batch, directions)
    ratio = likelihood_ratios(alignment.optics.vectors, problem.batch, directions[0])
    pixels, length = problem.batch.noise[0], problem.batch.length[0]
    nearness = np.abs(directions[0, ..., 2:] * alignment.inverse[0, 0])
    variance = pixels**2 * (2 / length**2 + 0.5 * nearness**2) + COARSE**2
    density = np.sqrt(0.5 * math.pi / variance)
    density = density * np.exp(-0.5 * alignment.residual[0, 0] ** 2 / variance)
    assert ratio[0] == pytest.approx(density[0], rel=1e-3, abs=1e-4)


def test_peaks_keep_apart() -> None:
    profile = np.array([0.0, 5.0, 4.9, 1.0, 3.0, 2.9, 0.5])
    assert peaks(profile, 2) == [1, 4]
    assert peaks(profile, 9) == [1, 4, 6]


def test_starts_are_near_the_truth_however_far_the_prior_is() -> None:
    place = street(each=120, log_f_off=0.8, noise=0.1)
    starts = sample_starts(place.problem)
    assert starts is not None
    assert len(starts) == STARTS
    angle, log_f = place.off(starts[:1])
    assert angle < 3.0
    assert log_f < 0.1


def test_padding_changes_no_start() -> None:
    """Nor does who is looked at beside it: the same photo gives the same answer."""
    problem = street().problem
    one, other = (
        sample_starts(problem),
        sample_starts(replace(problem, batch=problem.batch.padded())),
    )
    assert one is not None
    assert other is not None
    assert np.array_equal(one.log_f, other.log_f)
    assert np.array_equal(one.gravity, other.gravity)


def test_segments_that_agree_on_nothing_suggest_nothing() -> None:
    problem = street(each=20, clutter=150).problem
    assert sample_starts(problem) is not None
    assert sample_starts(problem, least=30.0) is None
    assert sample_starts(replace(problem, batch=problem.batch.longest(3))) is None


def test_lines_far_from_what_a_network_says_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sure network that is far off: the search around its answer misses them."""
    camera, gravity = camera_of("pinhole"), gravity_of(3.0, 8.0)
    directions = np.concatenate([gravity[None], headings_of(gravity, [30.0, 120.0])])
    segments = segments_along(camera, directions, 120, clutter=60, noise=0.2, length=60.0)
    prior = prior_of(camera, gravity, (40.0, 0.0), 0.3, sigma_deg=1.0, sigma_log_f=0.02)
    (answer,) = refine([prior], [segments])
    angle, focal = errors_of(answer, camera, gravity)
    assert angle < 0.5
    assert focal < 0.03
    monkeypatch.setattr(module, "sample_starts", lambda *_: None)
    (answer,) = refine([prior], [segments])
    assert abs(math.log(answer.fy / camera.f.item())) > 0.2
