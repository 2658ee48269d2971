"""Sensors against pictures: how far what one said is from what the other shows, in sigmas."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from geocalib.geometry import gravity as sphere
from geocalib.priors.exif import FocalReading
from geocalib.priors.gravity_reading import GravityReading
from geocalib.priors.readings import Readings
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.prior_check import PriorCheck
from geocalib.result.trust import doubts

LEAST_CHANCE = 1e-300
"""Below it, a chance is told apart from none no more."""


def annotated(
    outcome: Outcome,
    checks: tuple[PriorCheck, ...],
    readings: Readings,
    notes: Sequence[str],
    orientation: int,
) -> Outcome:
    """An answer with its warnings and with how well sensors and picture agree.

    notes: what else is to be said of it, first. orientation: of the file, by EXIF.
    """
    if not isinstance(outcome, Calibration):
        return outcome
    wrong = (str(prior) for prior in checks if prior.contradicts)
    warnings = (*notes, *readings.notes, *wrong, *doubts(outcome))
    return replace(outcome, warnings=warnings, priors=checks, orientation=orientation)


def check(readings: Readings, alone: Calibration) -> tuple[PriorCheck, ...]:
    """What was read of a photo, against the calibration that its picture alone gives."""
    checks = []
    if readings.focal is not None:
        checks.append(focal_check(readings.focal, alone.fy, alone.sigma.focal))
    if readings.gravity is not None:
        checks.append(_gravity(readings.gravity, alone))
    return tuple(checks)


def focal_check(hint: FocalReading, focal_px: float, sigma_px: float) -> PriorCheck:
    """Of a picture's own focal length. In log f, in which both are close to normal."""
    apart = math.log(focal_px / hint.focal_px)
    sigma = math.hypot(sigma_px / focal_px, hint.relative)
    return PriorCheck(
        "focal",
        f"EXIF {hint.source}",
        (hint.focal_px,),
        hint.sigma_px,
        (focal_px,),
        sigma_px,
        abs(apart) / sigma,
    )


def _gravity(hint: GravityReading, alone: Calibration) -> PriorCheck:
    """On the tangent plane at the estimate. Of two dimensions, the chance to be that far apart is
    told as the sigmas that have the same chance in one."""
    said = np.array(hint.gravity)
    apart = sphere.difference(alone.gravity, said, sphere.tangent_basis(alone.gravity))
    covariance = alone.covariance[:2, :2] + math.radians(hint.sigma_deg) ** 2 * np.eye(2)
    squared = float(apart @ np.linalg.solve(covariance, apart))
    tension = math.nan
    if math.isfinite(squared):
        chance = max(math.exp(-0.5 * squared), LEAST_CHANCE)
        from statistics import NormalDist  # Takes long to import, and is seldom needed.

        tension = -NormalDist().inv_cdf(0.5 * chance)
    return PriorCheck(
        "gravity",
        hint.source,
        hint.gravity,
        hint.sigma_deg,
        tuple(alone.gravity.tolist()),
        alone.sigma.gravity_deg,
        abs(tension),
    )
