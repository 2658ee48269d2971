"""Straight lines in portrait and landscape pictures of one camera, searched for together.

Turned by a quarter, a portrait picture becomes a landscape one of the same camera. What gravity
is uncertain about turns along: its tangent basis follows it, so that covariances stay.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from geocalib.arrays import Array
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import LOG_ASPECT
from geocalib.geometry.segments import Segments
from geocalib.lines.refine import refine
from geocalib.records import replace
from geocalib.result.calibration import Calibration, Outcome
from geocalib.solver.coupling import Rig


def refine_turned(
    calibrations: Sequence[Calibration],
    segments: Sequence[Segments],
    groups: Sequence[int] | Array | None = None,
    rig: Rig | None = None,
    told: Sequence[float] | None = None,
) -> list[Calibration]:
    """As ``geocalib.lines.refine``, for images of one camera whose sizes may be turned.

    Their principal points must be in the middle, or all of them of one size.
    """
    cameras = range(len(calibrations)) if groups is None else np.asarray(groups).tolist()
    first: dict[int, tuple[int, int]] = {}
    turns = []
    for calibration, camera in zip(calibrations, cameras, strict=True):
        size = calibration.width, calibration.height
        turns.append(int(first.setdefault(camera, size) != size))
    refined = refine(
        [_turned(c, turn) for c, turn in zip(calibrations, turns, strict=True)],
        [_turned_segments(s, c, t) for s, c, t in zip(segments, calibrations, turns, strict=True)],
        groups,
        rig,
        told,
    )
    return [
        _turned_back(*each) if each[-1] else each[0]
        for each in zip(refined, calibrations, segments, turns, strict=True)
    ]


def _turned(calibration: Calibration, turns: int) -> Calibration:
    if turns == 0:
        return calibration
    camera = calibration.camera.rotate90(turns)
    return replace(calibration, camera=camera, gravity=sphere.rotate90(calibration.gravity, turns))


def _turned_segments(segments: Segments, calibration: Calibration, turns: int) -> Segments:
    if turns == 0:
        return segments
    return segments.turned(calibration.width)


def _turned_back(
    answer: Calibration, before: Calibration, segments: Segments, turns: int
) -> Calibration:
    """The answer for a turned image as one for the image itself."""
    lines = answer.lines
    if lines is not None and lines.traces is not None:
        directions = sphere.rotate90(lines.traces.directions, -turns)
        lines = lines.turned_back(segments, directions)
    camera, gravity = answer.camera.rotate90(-turns), sphere.rotate90(answer.gravity, -turns)
    return before.moved(camera, gravity, answer.covariance, lines)


def sharpened(
    outcomes: Sequence[Outcome],
    segments: Sequence[Segments | None],
    cameras: Sequence[int],
    rig: Rig | None = None,
    told: Sequence[float] | None = None,
) -> list[Outcome]:
    """The outcomes with what straight lines say, where segments were asked for.

    cameras: equal integers for images of one camera. told: as in ``geocalib.lines.refine``. Lines
    know of no free aspect.
    """
    answers = list(outcomes)
    found = {
        row: (outcome, known)
        for row, (outcome, known) in enumerate(zip(outcomes, segments, strict=True))
        if known is not None
        and isinstance(outcome, Calibration)
        and LOG_ASPECT not in outcome.parameters
    }
    if found:
        rows = list(found)
        calibrations, every = zip(*found.values(), strict=True)
        groups = [cameras[row] for row in rows]
        known = None if told is None else [told[row] for row in rows]
        moving = None if rig is None else rig[rows]
        refined = refine_turned(calibrations, every, groups, moving, known)
        for row, answer in zip(rows, refined, strict=True):
            answers[row] = answer
    return answers
