"""OpenCV, as lines use it."""

from __future__ import annotations

from geocalib.lines.opencv import opencv


def test_it_runs_with_one_thread() -> None:
    assert opencv().getNumThreads() == 1
