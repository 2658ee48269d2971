"""How probable it is that lines are those of an upright world."""

from __future__ import annotations

import math

import numpy as np
import pytest
from streets import camera_of, gravity_of, headings_of, prior_of, segments_along

from geocalib.lines.refine import refine
from geocalib.lines.unknowns import Array
from geocalib.result.lines import Verdict

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
    assert found[-1] < 0.3


def test_level_edges_without_a_vertical_one_are_believed_less() -> None:
    """As many segments: waves run in two directions, too."""
    with_vertical, level_alone = DIRECTIONS[:2], DIRECTIONS[1:]
    usual = probability(40, 1.0, directions=with_vertical)
    assert probability(40, 1.0, directions=level_alone) < usual - 0.1


def test_an_unbelieved_contradiction_leaves_the_answer_and_is_told() -> None:
    camera = camera_of("pinhole")
    segments = segments_along(camera, DIRECTIONS, each=80, clutter=60, noise=0.3)
    prior = prior_of(camera, GRAVITY, (12.0, 0.0), sigma_deg=0.7)
    (answer,) = refine([prior], [segments])
    assert answer.lines is not None
    assert answer.lines.verdict is Verdict.UNLIKELY
    assert answer.roll_deg == pytest.approx(prior.roll_deg)
    assert answer.lines.unused == len(segments)


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
    from geocalib.lines.explanations import probabilities

    assert np.array_equal(probabilities([]), [1.0])
