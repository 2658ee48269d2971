"""Whether sigmas tell good answers from bad ones: the uncertainty plots of the paper's appendix.

``uncertainty`` asks whether sigmas are true on the whole; this asks what they are worth one by one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from geocalib.result.calibration import Calibration
from geocalib_lab.evaluation.report import Report

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Stated:
    """Errors (M,) and the sigmas (M,) stated for them, degrees."""

    errors: Array
    sigmas: Array

    def __len__(self) -> int:
        return len(self.errors)


def stated(report: Report, kind: str) -> Stated:
    """The errors of gravity or vfov where there are a truth, an answer and a sigma that is not 0.

    An error of gravity is the angle between two directions; its sigma is that of roll and pitch
    taken together, so that the mean square error is its square.
    """
    sigma_deg = _gravity_sigma_deg if kind == "gravity" else _vfov_sigma_deg
    pairs = [
        (error, sigma_deg(outcome))
        for error, outcome in zip(report.errors[kind], report.outcomes, strict=True)
        if isinstance(outcome, Calibration)
    ]
    errors, sigmas = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    known = np.isfinite(errors) & np.isfinite(sigmas) & (sigmas > 0)
    return Stated(errors[known], sigmas[known])


def _gravity_sigma_deg(answer: Calibration) -> float:
    # A degree of roll moves gravity by less the steeper the view.
    across = math.cos(math.radians(answer.pitch_deg)) * answer.sigma.roll_deg
    return math.hypot(across, answer.sigma.pitch_deg)


def _vfov_sigma_deg(answer: Calibration) -> float:
    return answer.sigma.vfov_deg


def precision_recall(found: Stated, thresholds: Array) -> tuple[Array, Array]:
    """How well "sigma <= threshold" predicts "error <= threshold", at each threshold (T,).

    Precision: the share of the answers said to be that good that are. Recall: the share of the
    answers that are that good that were said to be. NaN where there is none to count.
    """
    said = found.sigmas <= thresholds[:, None]
    good = found.errors <= thresholds[:, None]
    both = (said & good).sum(1)
    with np.errstate(invalid="ignore"):
        return both / said.sum(1), both / good.sum(1)


def calibration_bins(found: Stated, count: int = 10) -> tuple[Array, Array]:
    """Mean sigma and root mean square error of so many classes of equal size, by growing sigma.

    Of true sigmas both are alike. Where there are fewer answers there are fewer classes.
    """
    order = np.argsort(found.sigmas, kind="stable")
    parts = np.array_split(order, min(count, len(order))) if len(order) else []
    sigmas = [found.sigmas[part].mean() for part in parts]
    errors = [np.sqrt(np.mean(found.errors[part] ** 2)) for part in parts]
    return np.array(sigmas), np.array(errors)


def sparsification(found: Stated, shares: Array) -> tuple[Array, Array]:
    """Median error of the surest answers, for each share (S,) of them in (0, 1]; and at best,
    which is to know the errors themselves."""
    by_sigma = found.errors[np.argsort(found.sigmas, kind="stable")]
    by_error = np.sort(found.errors)
    counts = np.maximum(1, np.ceil(shares * len(found)).astype(int))
    curves = [np.array([np.median(values[:n]) for n in counts]) for values in (by_sigma, by_error)]
    return curves[0], curves[1]
