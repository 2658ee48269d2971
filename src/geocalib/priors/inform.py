"""Answers with all that is known beside the pictures, and whether that agrees with them."""

from __future__ import annotations

from collections.abc import Sequence

from geocalib.priors.check import annotated
from geocalib.priors.enabled import EnabledPriors, File
from geocalib.priors.weigh import Solve, weigh
from geocalib.result.calibration import Outcome
from geocalib.solver.known import Given


def informed(
    solve: Solve,
    placed: Given,
    enabled: EnabledPriors,
    files: Sequence[File],
    cameras: Sequence[int],
    notes: Sequence[Sequence[str]],
    together: bool,
) -> list[Outcome]:
    """The outcome of each image, with its warnings.

    solve: the answers by what is known of the images. placed: what is given, as
    ``EnabledPriors.placed`` makes it. cameras: equal integers for images of one camera. notes: what
    is to be said of each image, before all else. together: whether the images share unknowns.
    """
    readings = enabled.readings(placed, files)
    weighed = weigh(placed, readings, files, cameras, solve, together)
    return [
        annotated(outcome, checks, reading, said, file.metadata.orientation)
        for (outcome, checks), reading, said, file in zip(
            weighed, readings, notes, files, strict=True
        )
    ]
