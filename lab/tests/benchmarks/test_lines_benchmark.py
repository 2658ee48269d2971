"""What the benchmark of lines counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from geocalib.lines.refine import refine
from geocalib_lab.evaluation.datasets import Sample
from geocalib_lab.evaluation.halves import Half
from lines.streets import camera_of, gravity_of, headings_of, prior_of, segments_along
from scripts import load_script

GRAVITY = gravity_of(2.0, 5.0)
BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "lines.py"


@pytest.mark.parametrize(("length", "expected"), [(90.0, True), (20.0, False)])
def test_long_edges_in_two_directions_are_counted(length: float, expected: bool) -> None:
    camera = camera_of("pinhole")
    directions = np.concatenate([GRAVITY[None], headings_of(GRAVITY, (30.0, 120.0))])
    segments = segments_along(camera, directions, each=20, length=length)
    (answer,) = refine([prior_of(camera, GRAVITY)], [segments])
    sample = Sample(Path("street.jpg"), answer.width, answer.height)
    row = load_script(BENCHMARK).Row(sample, Half.HELD_OUT, "pinhole", {"both": answer})
    assert row.has_edges is expected
