"""Starts that segments suggest by themselves."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from problems import street
from streets import camera_of, errors_of, gravity_of, headings_of, prior_of, segments_along

from geocalib.lines import refine as module
from geocalib.lines.refine import refine
from geocalib.lines.sampling import STARTS, sampled


def test_starts_are_near_the_truth_however_far_the_prior_is() -> None:
    place = street(each=120, log_f_off=0.8, noise=0.1)
    starts = sampled(place.problem)
    assert starts is not None
    assert len(starts) == STARTS
    angle, log_f = place.off(starts[:1])
    assert angle < 3.0
    assert log_f < 0.1


def test_padding_changes_no_start() -> None:
    """Nor does who is looked at beside it: the same photo gives the same answer."""
    problem = street().problem
    one, other = sampled(problem), sampled(replace(problem, bundle=problem.bundle.rounded()))
    assert one is not None
    assert other is not None
    assert np.array_equal(one.log_f, other.log_f)
    assert np.array_equal(one.gravity, other.gravity)


def test_segments_that_agree_on_nothing_suggest_nothing() -> None:
    problem = street(each=20, clutter=150).problem
    assert sampled(problem) is not None
    assert sampled(problem, least=30.0) is None
    assert sampled(replace(problem, bundle=problem.bundle.longest(3))) is None


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
    monkeypatch.setattr(module, "sampled", lambda *_: None)
    (answer,) = refine([prior], [segments])
    assert abs(math.log(answer.fy / camera.f.item())) > 0.2
