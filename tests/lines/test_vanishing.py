"""Cameras from lines alone."""

from __future__ import annotations

import numpy as np
import pytest
from streets import SIZE, camera_of, errors_of, gravity_of, headings_of, segments_along

from geocalib.cameras import get_model
from geocalib.lines.vanishing import calibrate_by_lines


@pytest.mark.parametrize(("roll", "pitch"), [(0.0, 5.0), (-20.0, 15.0), (8.0, -25.0)])
def test_recovery_without_a_network(roll: float, pitch: float) -> None:
    camera, gravity = camera_of("pinhole"), gravity_of(roll, pitch)
    directions = np.concatenate([gravity[None], headings_of(gravity, [30.0, 120.0])])
    segments = segments_along(camera, directions, each=100, clutter=100, noise=0.3)
    answer = calibrate_by_lines(segments, SIZE, get_model("pinhole"))
    assert answer is not None
    angle, focal = errors_of(answer, camera, gravity)
    assert angle < 0.3
    assert focal < 0.02


@pytest.mark.parametrize("count", [0, 3, 10])
def test_too_few_segments_have_no_answer(count: int) -> None:
    camera = camera_of("pinhole")
    segments = segments_along(camera, headings_of(gravity_of(0, 0), [30.0]))[:count]
    assert calibrate_by_lines(segments, SIZE, get_model("pinhole")) is None


def test_clutter_has_no_answer() -> None:
    camera = camera_of("pinhole")
    segments = segments_along(camera, np.zeros((0, 3)), clutter=400)
    assert calibrate_by_lines(segments, SIZE, get_model("pinhole")) is None
