"""The same photographs asked about in several ways: what knowing more is worth.

The tables of the paper: partial calibration, several images of one camera, and where a fit starts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from geocalib.errors import ConfigError
from geocalib.evaluation.datasets import Sample, picture_size
from geocalib.evaluation.report import Report
from geocalib.evaluation.run import Setting, Told
from geocalib.result.calibration import Calibration, Outcome

TELLS: dict[Told, tuple[str, ...]] = {
    "nothing": (),
    "gravity": ("roll", "pitch", "gravity"),
    "focal": ("vfov",),
}
"""The errors that are none if this is known."""

Ask = Callable[[Sequence[Sample], Setting], Report]
"""Evaluates photographs in a setting."""


@dataclass(frozen=True)
class Study:
    """Several ways to the answers for the same photographs."""

    title: str
    column: str
    """What tells the rows apart."""
    rows: tuple[tuple[str, Report | None], ...]
    """Label and report; None where there is none."""
    curves: Mapping[str, Mapping[int, Report]] = field(default_factory=dict)
    """Rows to draw against a number of images, by the name of the curve."""
    kinds: tuple[str, ...] = ("gravity", "vfov")
    """Errors to show."""
    quoted: Sequence[tuple[str, Mapping[str, float]]] = ()
    """Label and summary of rows that others have measured."""
    notes: Sequence[str] = ()
    """What is to be said below."""


def partial_study(
    name: str, samples: Sequence[Sample], told: Sequence[Told], ask: Ask
) -> Study | None:
    """Nothing known, and each of the things to tell; of the photographs with a whole truth.

    None where there is no such photograph.
    """
    whole = [s for s in samples if s.gravity is not None and s.vfov_deg is not None]
    if not whole:
        return None
    rows = [("nothing", ask(whole, Setting()))]
    for what in told:
        report = ask(whole, Setting(what))
        # What was told is no error to count.
        errors = {k: v for k, v in report.errors.items() if k not in TELLS[what]}
        rows.append((what, replace(report, errors=errors)))
    return Study(f"{name}: partial calibration", "known", tuple(rows))


def joint_study(name: str, samples: Sequence[Sample], counts: Sequence[int], ask: Ask) -> Study:
    """Fits of several images of one camera, beside averages of as many separate answers.

    All rows are about the same photographs: of each camera as many as the largest fits hold.
    """
    if min(counts) < 1:
        raise ConfigError(f"there is no fit of {min(counts)} images; give 1 or more")
    chosen = same_camera(samples, max(counts))
    alone = ask(chosen, Setting())
    rows = [("1 alone", alone)] if 1 in counts else []
    curves: dict[str, dict[int, Report]] = {
        curve: {1: alone} if 1 in counts else {} for curve in ("joint", "averaged")
    }
    for count in sorted(set(counts) - {1}):
        curves["joint"][count] = ask(chosen, Setting(images_per_fit=count))
        curves["averaged"][count] = averaged(alone, count)
        rows += [(f"{count} {curve}", reports[count]) for curve, reports in curves.items()]
    return Study(f"{name}: images of one camera", "images per fit", tuple(rows), curves)


def same_camera(samples: Sequence[Sample], together: int) -> list[Sample]:
    """Photographs arranged such that each run of so many is of one camera; leaves out the rest.

    Those are of one camera whose table names the same, or, where it names none, that have the same
    size, field of view and distortion.
    """
    cameras: dict[object, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.vfov_deg is not None:
            size = picture_size(sample.image) or (sample.width, sample.height)
            lens = (sample.vfov_deg, sample.k1, sample.k2)
            cameras[size, lens if sample.camera_name is None else sample.camera_name].append(sample)
    chosen = [s for own in cameras.values() for s in own[: len(own) // together * together]]
    if not chosen:
        most = max(map(len, cameras.values()), default=0)
        raise ConfigError(f"no camera took {together} of the photographs; one took {most}, no more")
    return chosen


def averaged(alone: Report, count: int) -> Report:
    """The report where each run of so many answers has the mean of their log f and distortion."""
    outcomes: list[Outcome] = []
    for start in range(0, len(alone), count):
        part = alone.outcomes[start : start + count]
        answers = [outcome for outcome in part if isinstance(outcome, Calibration)]
        if answers:
            f = math.exp(sum(math.log(answer.fy) for answer in answers) / len(answers))
            distortion = np.stack([answer.camera.distortion for answer in answers]).mean(0)
        for outcome in part:
            if isinstance(outcome, Calibration):
                camera = replace(
                    outcome.camera, f=np.full_like(outcome.camera.f, f), distortion=distortion
                )
                outcome = replace(outcome, camera=camera)
            outcomes.append(outcome)
    return Report.create(alone.name, alone.card, alone.camera_model, alone.samples, outcomes)
