"""The same photographs calibrated in several ways: what knowing more is worth.

The tables of the paper: partial calibration, several images of one camera, and where a fit starts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from geocalib.pipeline.options import LinesMode
from geocalib.result.calibration import Calibration, Outcome
from geocalib_lab.evaluation.datasets import Sample, picture_size
from geocalib_lab.evaluation.report import Report
from geocalib_lab.evaluation.run import Known, Setting

TELLS: dict[Known, tuple[str, ...]] = {
    "nothing": (),
    "gravity": ("roll", "pitch", "gravity"),
    "focal": ("vfov",),
    "both": ("roll", "pitch", "gravity", "vfov"),
    "exif": (),
}
"""The errors that are none if this is known."""

LABELS: dict[Known, str] = {"exif": "EXIF: focal length in whole mm"}

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
    beside: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """More columns, by title: what to say in the rows of these labels."""
    notes: Sequence[str] = ()
    """What is to be said below."""


def partial_study(
    name: str, samples: Sequence[Sample], known: Sequence[Known], ask: Ask
) -> Study | None:
    """Nothing known, and each of the things to tell; of the photographs with a whole truth.

    None where there is no such photograph.
    """
    whole = [s for s in samples if s.gravity is not None and s.vfov_deg is not None]
    if not whole:
        return None
    nothing = ask(whole, Setting())
    kinds = with_pixels(("gravity", "vfov"), nothing)
    rows = [("nothing", nothing)]
    for what in known:
        # A known quantity has no error.
        if set(kinds).issubset(TELLS[what]):
            continue
        report = ask(whole, Setting(what))
        errors = {k: v for k, v in report.errors.items() if k not in TELLS[what]}
        rows.append((LABELS.get(what, what), replace(report, errors=errors)))
    return Study(f"{name}: partial calibration", "known", tuple(rows), kinds=kinds)


def with_pixels(kinds: tuple[str, ...], report: Report) -> tuple[str, ...]:
    """These kinds of errors, and that of distortion where there is one."""
    return (*kinds, "pixels") if len(report.known("pixels")) else kinds


def joint_study(
    name: str,
    samples: Sequence[Sample],
    counts: Sequence[int],
    ask: Ask,
    others: Mapping[str, Report] | None = None,
) -> Study:
    """Fits of several images of one camera, beside averages of as many separate answers.

    All rows are about the same photographs: of each camera as many as the largest fits hold.
    others: answers of other methods to all of the samples, to be averaged as well.
    """
    chosen, counts = same_camera(samples, max(counts)), sorted(set(counts))
    curves: dict[str, dict[int, Report]] = {}
    ways: Mapping[str, LinesMode] = {"fields": "off", "fields and lines": "auto"}
    for label, lines in ways.items():
        fits = {n: ask(chosen, Setting(images_per_fit=n, lines=lines)) for n in {1, *counts}}
        curves[f"{label}, jointly"] = {n: fits[n] for n in counts}
        curves[f"{label}, averaged"] = {n: averaged(fits[1], n) for n in counts}
    for label, report in (others or {}).items():
        own = report.about(chosen)
        curves[f"{label}, averaged"] = {n: averaged(own, n) for n in counts}
    rows = [(f"{n}: {curve}", reports[n]) for curve, reports in curves.items() for n in counts]
    return Study(f"{name}: images of one camera", "images", tuple(rows), curves)


def same_camera(samples: Sequence[Sample], together: int) -> list[Sample]:
    """Photographs arranged such that each run of so many is of one camera; leaves out the rest,
    and all where no camera took as many."""
    return [s for own in _by_camera(samples) for s in own[: len(own) // together * together]]


def most_of_one_camera(samples: Sequence[Sample]) -> int:
    """How many photographs one camera took, at most."""
    return max(map(len, _by_camera(samples)), default=0)


def _by_camera(samples: Sequence[Sample]) -> list[list[Sample]]:
    """Those are of one camera whose table names the same, or, where it names none, that have the
    same size, field of view and distortion."""
    cameras: dict[object, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.vfov_deg is not None:
            size = picture_size(sample.image) or (sample.width, sample.height)
            lens = (sample.vfov_deg, sample.k1, sample.k2)
            cameras[size, lens if sample.camera_name is None else sample.camera_name].append(sample)
    return list(cameras.values())


def averaged(alone: Report, count: int) -> Report:
    """The report where each run of so many answers has the mean of their log f and distortion."""
    outcomes: list[Outcome] = []
    for start in range(0, len(alone), count):
        part = alone.outcomes[start : start + count]
        answers = [outcome for outcome in part if isinstance(outcome, Calibration)]
        if answers:
            f = math.exp(sum(math.log(answer.fy) for answer in answers) / len(answers))
            distortion = np.stack([answer.cameras.distortion for answer in answers]).mean(0)
        for outcome in part:
            if isinstance(outcome, Calibration):
                camera = replace(
                    outcome.cameras, f=np.full_like(outcome.cameras.f, f), distortion=distortion
                )
                outcome = replace(outcome, cameras=camera)
            outcomes.append(outcome)
    return Report.create(alone.name, alone.card, alone.camera_model, alone.samples, outcomes)
