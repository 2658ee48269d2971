"""The answer that needs no photograph: level, 28 mm. What is no better is worth nothing."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from geocalib.cameras import Camera
from geocalib.geometry.conventions import FULL_FRAME_DIAGONAL
from geocalib.result.calibration import Calibration
from geocalib_lab.evaluation.answers import without_sigmas
from geocalib_lab.evaluation.datasets import Sample, picture_size
from geocalib_lab.evaluation.report import K1_ERRORS, OF_NONE, Report

CONSTANT = "level, 28 mm"

FOCAL_MM = 28.0
"""The commonest focal length of photographs, by the diagonal."""


def constant_report(report: Report) -> Report:
    """How wrong the constant answer is for the photographs of a report.

    Of its kinds of errors; those of a distortion that is always 0 it has already.
    """
    answers = [_answer(sample) for sample in report.samples]
    made = Report.create(report.name, report.card, "pinhole", report.samples, answers)
    errors = dict(made.errors)
    for kind in K1_ERRORS:
        if kind in report.errors:
            errors[kind] = errors[kind + OF_NONE] = report.errors[kind + OF_NONE]
    kept = {kind: values for kind, values in errors.items() if kind in report.errors}
    return replace(made, camera_model=report.camera_model, errors=kept)


def _answer(sample: Sample) -> Calibration:
    size = picture_size(sample.image) or (sample.width, sample.height)
    focal = FOCAL_MM / FULL_FRAME_DIAGONAL * math.hypot(*size)
    camera = Camera.create("pinhole", f=focal, size=size)
    return without_sigmas(str(sample.image), camera, np.array([0.0, 1.0, 0.0]))
