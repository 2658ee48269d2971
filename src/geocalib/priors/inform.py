"""Answers with all that is known beside the pictures, and whether that agrees with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from geocalib.priors.check import annotated
from geocalib.priors.clues import Clues, File, pulled
from geocalib.result.calibration import Outcome
from geocalib.solver.given import Given


def informed(
    answers: Callable[[Given], Sequence[Outcome]],
    placed: Given,
    clues: Clues,
    files: Sequence[File],
    cameras: Sequence[int],
    notes: Sequence[Sequence[str]],
) -> list[Outcome]:
    """The outcome of each image, with its warnings.

    answers: the outcomes by what is known of the images. placed: what is given, as ``Clues.placed``
    makes it. cameras: equal integers for images of one camera. notes: what is to be said of each
    image, before all else.
    """
    readings = clues.readings(placed, files)
    known = pulled(placed, readings, files, cameras)
    outcomes = answers(known)
    # Whether sensors agree with the pictures is seen without them.
    alone = outcomes if known is placed else answers(placed)
    return list(map(annotated, outcomes, alone, readings, notes))
