"""Outliers are left out; what lasts is a change."""

from __future__ import annotations

from dataclasses import dataclass

from geocalib.video.change_detector import TAKE_OVER, ChangeDetector


@dataclass(frozen=True)
class Near:
    """Accepts what is within 1 of its first measurement."""

    first: float
    count: int = 1

    def accepts(self, measurement: float) -> bool:
        return abs(measurement - self.first) < 1

    def updated(self, measurement: float) -> Near:
        return Near(self.first, self.count + 1)


def followed(*measurements: float | None) -> ChangeDetector[Near, float]:
    detector: ChangeDetector[Near, float] = ChangeDetector(Near)
    for measurement in measurements:
        detector.add(measurement)
    return detector


def test_nothing_yet() -> None:
    assert followed().current is None
    assert followed(None).current is None


def test_single_outliers_and_gaps_are_left_out() -> None:
    detector = followed(0.0, 9.0, 0.1, None, -7.0, 0.2)
    assert detector.segments == [0, None, 0, None, None, 0]
    assert detector.current == Near(0.0, 3)


def test_a_run_that_agrees_takes_over_from_its_start() -> None:
    detector = followed(0.0, 0.1, *[5.0] * TAKE_OVER, 5.1)
    assert detector.segments == [0, 0, *[1] * (TAKE_OVER + 1)]
    assert detector.segment == 1
    assert detector.current == Near(5.0, TAKE_OVER + 1)


def test_a_run_that_disagrees_does_not() -> None:
    ramp = [float(3 * k) for k in range(1, 9)]
    detector = followed(0.0, *ramp)
    assert detector.segments == [0, *[None] * len(ramp)]
    assert detector.current == Near(0.0)


def test_one_that_agrees_with_the_old_ends_the_challenge() -> None:
    detector = followed(0.0, *[5.0] * (TAKE_OVER - 1), 0.0, 5.0)
    assert detector.segment == 0
