"""What the file knows against what the picture shows: who is believed, and at what cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from calibrations import one
from geocalib.imaging.metadata import Metadata
from geocalib.pipeline import fit
from geocalib.priors.enabled import File
from geocalib.priors.exif import FocalReading
from geocalib.priors.judge import Checks, believed, focal_check
from geocalib.priors.readings import Readings
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.evidence import Lines, Verdict
from geocalib.solver.known import Given, Prior

NETWORK_SIGMA = 0.2
"""Of log f."""
NOTHING = Given(None, None, None, None)


class Linear:
    """A network whose fit of log f is linear, in photos without lines."""

    def __init__(self, focals: Sequence[float], sigma: float = NETWORK_SIGMA) -> None:
        self.focals, self.sigma = focals, sigma
        self.calls: list[tuple[list[int], bool, bool]] = []
        """Which photos were solved, whether with a prior, and whether with lines."""

    def __call__(self, given: Given, rows: Sequence[int], lines: bool) -> list[Outcome]:
        self.calls.append((list(rows), given.focal is not None, lines))
        return [self._one(given, row) for row in rows]

    def _one(self, given: Given, row: int) -> Outcome:
        information, mean = self.sigma**-2, math.log(self.focals[row])
        if isinstance(given.focal, Prior):
            value, sigma = given.focal.value[row].item(), given.focal.sigma[row].item()
            told = (value / sigma) ** 2
            mean = (mean * information + math.log(value) * told) / (information + told)
            information += told
        return known(math.exp(mean), information**-0.5)


class Weighed(NamedTuple):
    """The outcome of a photo, and how its priors did."""

    outcome: Outcome
    checks: Checks


def known(focal: float, sigma: float) -> Calibration:
    calibration = one("pinhole")
    camera = replace(calibration.camera, f=np.array([focal], np.float64))
    covariance = np.diag(np.array([0.01, 0.01, sigma]) ** 2)
    moved = calibration.moved(camera, calibration.gravity, covariance)
    return replace(moved, sigma=replace(moved.sigma, focal=sigma * focal))


def hint(focal: float, relative: float = 0.03) -> FocalReading:
    return FocalReading(focal, relative * focal, "26 mm")


def weighed(solve: Linear, hints: Sequence[FocalReading | None], **how: Any) -> list[Weighed]:
    files = [File(None, f"image {i}", (640, 480), Metadata()) for i in range(len(hints))]
    readings = [Readings(focal=hint) for hint in hints]
    outputs: Any = [SimpleNamespace(file=file) for file in files]
    cameras = np.array(how.pop("cameras", range(len(hints))))
    coupled = how.pop("together", False)
    job: Any = SimpleNamespace(coupled=coupled, camera=cameras, usual_distortion=None)
    job.alone = job

    def fitted(lines: bool) -> Any:
        return lambda _, __, given, rows: (
            dict(zip(rows, solve(given, rows, lines), strict=True)) if rows else {}
        )

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fit, "_refined", fitted(lines=True))
        patched.setattr(fit, "_unrefined", fitted(lines=False))
        outcomes, checks = fit._judged(job, outputs, NOTHING, readings)
    return [Weighed(outcome, checks.get(row, ())) for row, outcome in enumerate(outcomes)]


def test_what_agrees_costs_no_second_look_at_lines() -> None:
    solve = Linear([500.0])
    ((outcome, (prior,)),) = weighed(solve, [hint(560.0)])
    assert solve.calls == [([0], False, False), ([0], True, True)]
    assert isinstance(outcome, Calibration)
    assert 550 < outcome.fy < 560
    assert prior.estimate == (pytest.approx(500),)
    assert str(prior) == "focal length: EXIF 26 mm, agrees"


def test_only_what_is_doubtful_is_fitted_again() -> None:
    solve = Linear([500.0, 500.0, 500.0])
    found = weighed(solve, [hint(510.0), hint(1000.0), None])
    assert solve.calls == [
        ([2], False, True),
        ([0, 1], False, False),
        ([0, 1], True, True),
        ([1], False, True),
    ]
    assert [len(each.checks) for each in found] == [1, 1, 0]
    assert found[1].checks[0].contradicts


def test_a_vague_picture_does_not_outvote_exif() -> None:
    """Networks take narrow photos for wide ones: four sigmas happen."""
    ((outcome, (prior,)),) = weighed(Linear([450.0]), [hint(1000.0)])
    assert isinstance(outcome, Calibration)
    assert outcome.fy > 900
    assert prior.contradicts
    assert str(prior).endswith("by 3.9 sigma and was kept")


def test_sharp_lines_outvote_the_exif_of_a_crop() -> None:
    ((outcome, (prior,)),) = weighed(Linear([1000.0], sigma=0.02), [hint(600.0)])
    assert isinstance(outcome, Calibration)
    assert outcome.fy == pytest.approx(1000)
    assert not prior.used
    assert str(prior).endswith("sigma and was left out")


def test_a_picture_needs_more_to_say_that_its_lens_was_shorter() -> None:
    """No crop does that."""

    def needed(sign: int) -> float:
        steps = (0.01 * i for i in range(1, 200))
        return next(
            step
            for step in steps
            if not believed(focal_check(hint(600.0), 600 * math.exp(sign * step), 12.0))
        )

    assert needed(-1) > 1.3 * needed(1)


def test_photos_of_one_camera_are_believed_together() -> None:
    solve = Linear([1000.0, 1000.0, 500.0], sigma=0.02)
    hints = [hint(600.0), None, hint(505.0)]
    found = weighed(solve, hints, cameras=[7, 7, 8], together=True)
    assert [rows for rows, *_ in solve.calls] == [[0, 1, 2]] * 4
    focals = [each.outcome.fy for each in found if isinstance(each.outcome, Calibration)]
    assert focals == [pytest.approx(1000), pytest.approx(1000), pytest.approx(501.5, abs=1)]
    assert [prior.used for each in found for prior in each.checks] == [False, True]


def test_without_readings_nothing_is_asked() -> None:
    solve = Linear([500.0])
    assert weighed(solve, [None])[0].checks == ()
    assert solve.calls == [([0], False, True)]


@pytest.mark.parametrize(
    ("verdict", "focal", "again"),
    [
        (Verdict.CROSSED, 561.0, False),
        (Verdict.UNLIKELY, 561.0, True),
        (Verdict.CROSSED, 620.0, True),
    ],
)
def test_lines_that_pull_or_are_not_heard_are_looked_at_again(
    verdict: Verdict, focal: float, again: bool
) -> None:
    class WithLines(Linear):
        def _one(self, given: Given, row: int) -> Outcome:
            return replace(known(focal, 0.03), lines=Lines(verdict))

    solve = WithLines([560.0])
    weighed(solve, [hint(560.0)])
    assert (len(solve.calls) > 2) is again
