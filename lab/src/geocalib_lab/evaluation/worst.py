"""The photographs that went worst, with what was found and what is true drawn on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image

from geocalib.errors import GeoCalibError
from geocalib.result.calibration import Calibration
from geocalib_lab.evaluation.answers import truth_of
from geocalib_lab.evaluation.report import Report

PAIR_WIDTH = 1100
"""Pixels across both drawings of a photograph."""

GAP = 8

SCALES = {"gravity": 1.0, "vfov": 2.0}
"""Degrees of each error that are equally bad."""


@dataclass(frozen=True)
class Case:
    """One photograph with what was found and what is true."""

    number: int
    """Among those of the report."""
    title: str
    facts: tuple[str, ...]
    """Found beside true, in words."""
    picture: Image.Image | None
    """What was found drawn on it, and beside it the truth; None: nothing could be drawn."""


def worst_cases(report: Report, count: int = 10) -> list[Case]:
    """The photographs with the largest errors of gravity and field of view, worst first."""
    errors = np.array([report.errors[kind] / scale for kind, scale in SCALES.items()])
    # What has no truth cannot be bad.
    badness = np.where(np.isnan(errors), 0.0, errors).max(0)
    order = np.argsort(-badness, kind="stable")[:count]
    return [_case(report, int(i)) for i in order if badness[i] > 0]


def _case(report: Report, number: int) -> Case:
    sample, outcome = report.samples[number], report.outcomes[number]
    if not isinstance(outcome, Calibration):
        return Case(number, sample.image.name, (f"failed: {outcome.error}",), None)
    facts = []
    for name, title in (("roll_deg", "roll"), ("pitch_deg", "pitch"), ("vfov_deg", "vFoV")):
        found, sigma = getattr(outcome, name), getattr(outcome.sigma, name)
        true = getattr(sample, name)
        known = "" if true is None else f", true {true:.1f}°"
        facts.append(f"{title} {found:.1f} ± {sigma:.1f}°{known}")
    if outcome.distortion and sample.k1 is not None:
        facts.append(f"k1 {outcome.distortion[0]:.3f}, true {sample.k1:.3f}")
    return Case(number, sample.image.name, tuple(facts), _picture(report, number))


def _picture(report: Report, number: int) -> Image.Image | None:
    from geocalib.overlay import overlay

    sample, outcome = report.samples[number], report.outcomes[number]
    assert isinstance(outcome, Calibration)
    truth = truth_of(sample, (outcome.width, outcome.height))
    try:
        drawn = [overlay(sample.image, c) for c in (outcome, truth) if c is not None]
    except GeoCalibError:
        # Answers of an earlier run outlive their photographs.
        return None
    width = (PAIR_WIDTH - GAP) // 2
    parts = [picture.resize((width, _height(picture, width))) for picture in drawn]
    pair = Image.new("RGB", (PAIR_WIDTH, max(part.height for part in parts)), "white")
    for i, part in enumerate(parts):
        pair.paste(part, (i * (width + GAP), 0))
    return pair


def _height(picture: Image.Image, width: int) -> int:
    return max(1, round(picture.height * width / picture.width))
