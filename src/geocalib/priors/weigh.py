"""What the file knows and what the picture shows, weighed against each other.

Every photo is fitted with its priors. Whether they agree with the picture is asked of the same
fit, by taking off again what they added: exact if a fit were linear, and free. Only where that
comes near a contradiction, the picture is fitted once more by itself, and it is decided which of
the two is believed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from geocalib.geometry.fields import LOG_F
from geocalib.priors.belief import believed
from geocalib.priors.check import check, focal_check
from geocalib.priors.clues import File, pulled
from geocalib.priors.exif import FocalHint
from geocalib.priors.readings import Readings
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.lines import Verdict
from geocalib.result.prior_check import PriorCheck
from geocalib.solver.given import Given

NEAR = 2.0
"""Tension, not quite that of a fit without the prior, from which on it is made sure of."""
MOVED = 1.0
"""Sigmas of a prior by which lines may pull an answer off it before somebody has a look."""


class Answer(NamedTuple):
    """Of one photo."""

    network: Outcome
    """Before lines were looked at."""
    outcome: Outcome


class Weighed(NamedTuple):
    """The outcome of a photo, and how its priors did."""

    outcome: Outcome
    checks: tuple[PriorCheck, ...]


Solve = Callable[[Given, Sequence[int]], Sequence[Answer]]
"""Answers for some of the photos, by all that is given of all of them."""


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
    informed = pulled(given, readings, files, cameras)
    answers = list(solve(informed, every))
    if informed is given:
        return [Weighed(answer.outcome, ()) for answer in answers]
    checks = [_cheap(*each) for each in zip(readings, answers, strict=True)]
    doubtful = [row for row in every if checks[row] is None]
    if doubtful and together:
        doubtful = list(every)
    if not doubtful:
        return [Weighed(a.outcome, c or ()) for a, c in zip(answers, checks, strict=True)]
    alone = dict(zip(doubtful, solve(given, doubtful), strict=True))
    for row, answer in alone.items():
        seen = answer.outcome
        checks[row] = check(readings[row], seen) if isinstance(seen, Calibration) else ()
    wrong = {cameras[row] for row in doubtful if not all(map(_right, checks[row] or ()))}
    dropped = [row for row in doubtful if cameras[row] in wrong]
    if dropped:
        left = [
            replace(reading, focal=None) if camera in wrong else reading
            for reading, camera in zip(readings, cameras, strict=True)
        ]
        again = pulled(given, left, files, cameras)
        solved = [alone[row] for row in dropped] if again is given else solve(again, dropped)
        for row, answer in zip(dropped, solved, strict=True):
            answers[row] = answer
            checks[row] = tuple(_marked(each) for each in checks[row] or ())
    return [Weighed(a.outcome, c or ()) for a, c in zip(answers, checks, strict=True)]


def _right(check: PriorCheck) -> bool:
    """Whether a prior stays: sensors of gravity do, and are only warned of."""
    return check.quantity == "gravity" or believed(check)


def _marked(check: PriorCheck) -> PriorCheck:
    return replace(check, used=check.quantity == "gravity")


def _cheap(reading: Readings, answer: Answer) -> tuple[PriorCheck, ...] | None:
    """How well a photo agrees with what was read of it, from its answer with that; None if only the
    picture alone can tell."""
    network, outcome, hint = *answer, reading.focal
    if hint is None and reading.gravity is None:
        return ()
    if hint is None or reading.gravity is not None:
        return None
    if not isinstance(network, Calibration) or not isinstance(outcome, Calibration):
        return None
    alone = _without(hint, network)
    if alone is None:
        return None
    found = focal_check(hint, *alone)
    lines = outcome.lines
    unheard = lines is not None and lines.verdict is Verdict.UNLIKELY
    moved = abs(math.log(outcome.fy / hint.focal_px)) > MOVED * hint.relative
    return None if found.tension > NEAR or unheard or moved else (found,)


def _without(hint: FocalHint, informed: Calibration) -> tuple[float, float] | None:
    """The focal length and one sigma of it, pixels, of a network's answer without a prior that it
    had, as if all were linear; None if there is nothing left."""
    if LOG_F not in informed.parameters:
        return None
    at = informed.parameters.index(LOG_F)
    information, told = 1 / float(informed.covariance[at, at]), hint.relative**-2
    left = information - told
    if not left > 0:
        return None
    step = math.log(informed.fy / hint.focal_px) * information / left
    focal = hint.focal_px * math.exp(max(-1.0, min(1.0, step)))
    return focal, focal / math.sqrt(left)
