"""What the file knows and what the picture shows, weighed against each other.

Every photo is fitted with its priors, and once more without them, but without lines, which take
most of the time: that tells whether the priors agree with the network. Lines, which have seen the
priors, tell by how far they pull the answer off them. Only where one of the two comes near a
contradiction, all is done again without priors, and it is decided which of the two is believed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from geocalib.priors.belief import believed
from geocalib.priors.check import check
from geocalib.priors.enabled import File, pulled
from geocalib.priors.readings import Readings
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.lines import Verdict
from geocalib.result.prior_check import PriorCheck
from geocalib.solver.known import Given

MOVED = 2.0
"""Sigmas of a prior by which lines may pull an answer off it before somebody has a look."""


class Weighed(NamedTuple):
    """The outcome of a photo, and how its priors did."""

    outcome: Outcome
    checks: tuple[PriorCheck, ...]


class Solve(Protocol):
    """Outcomes of some of the photos (rows), by what is known of all of them."""

    def __call__(self, known: Given, rows: Sequence[int], lines: bool, /) -> Sequence[Outcome]: ...


def weigh(
    given: Given,
    readings: Sequence[Readings],
    files: Sequence[File],
    cameras: Sequence[int],
    solve: Solve,
    together: bool,
) -> list[Weighed]:
    """The outcomes of B photos, given what was read of each.

    cameras: equal integers for photos of one camera. together: whether the photos share unknowns,
    so that they are solved all or none.
    """
    every = range(len(files))

    def solved(known: Given, rows: Sequence[int], lines: bool) -> dict[int, Outcome]:
        return dict(zip(rows, solve(known, rows, lines), strict=True)) if rows else {}

    informed = pulled(given, readings, files, cameras)
    told = [row for row in every if informed is not given and (together or _says(readings[row]))]
    # What is told of one photo must not change the answer for another.
    outcomes = solved(given, [row for row in every if row not in told], True)
    outcomes |= solved(informed, told, True)
    checks = _checks(readings, solved(given, told, False))
    doubtful = [row for row in told if _is_doubtful(readings[row], checks[row], outcomes[row])]
    rows = told if together and doubtful else doubtful
    checks |= _checks(readings, solved(given, rows, True))
    wrong = {cameras[row] for row in rows if not all(map(_stays, checks[row]))}
    if wrong:
        left = [
            replace(reading, focal=None) if camera in wrong else reading
            for reading, camera in zip(readings, cameras, strict=True)
        ]
        changed = [row for row in rows if together or cameras[row] in wrong]
        outcomes |= solved(pulled(given, left, files, cameras), changed, True)
        checks |= {
            row: tuple(map(_left_out, checks[row])) for row in changed if cameras[row] in wrong
        }
    return [Weighed(outcomes[row], checks.get(row, ())) for row in every]


def _says(reading: Readings) -> bool:
    return reading.focal is not None or reading.gravity is not None


def _checks(
    readings: Sequence[Readings], alone: Mapping[int, Outcome]
) -> dict[int, tuple[PriorCheck, ...]]:
    """How well some photos agree with what was read of them, by what they show alone."""
    return {
        row: check(readings[row], seen) if isinstance(seen, Calibration) else ()
        for row, seen in alone.items()
    }


def _is_doubtful(reading: Readings, checks: Sequence[PriorCheck], outcome: Outcome) -> bool:
    """Whether network or lines may contradict a prior: lines that were not believed beside it, or
    that pulled the answer off it."""
    if any(each.contradicts for each in checks):
        return True
    if reading.focal is None or not isinstance(outcome, Calibration) or outcome.lines is None:
        return False
    moved = abs(math.log(outcome.fy / reading.focal.focal_px))
    unheard = outcome.lines.verdict is Verdict.UNLIKELY
    return unheard or moved > MOVED * reading.focal.relative


def _stays(check: PriorCheck) -> bool:
    """Sensors of gravity are only warned of."""
    return check.quantity == "gravity" or believed(check)


def _left_out(check: PriorCheck) -> PriorCheck:
    return replace(check, used=check.quantity == "gravity")
