"""What is known beside a picture against what the picture shows: how well the two agree, which of
them is believed, and what is to be said of it.

Every photo is fitted with its priors, and once more without them, but without lines, which take
most of the time: that tells whether the priors agree with the network (``agreement``). Lines, which
have seen the priors, tell by how far they pull the answer off them. Only where one of the two comes
near a contradiction (``doubtful_rows``), the photo is fitted with lines and without priors, and it
is decided which of the two is believed (``wrong_cameras``).

EXIF and picture may both be wrong: a program cropped the photo and kept its EXIF data, or network
and lines were misled. Errors of pictures have the heavy tails of Student's distribution; the focal
length of a cropped photo is anywhere beyond that of its tag. The likelier explanation is taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from geocalib.geometry import gravity as sphere
from geocalib.priors.exif import FocalReading
from geocalib.priors.gravity_reading import GravityReading
from geocalib.priors.readings import Readings
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.lines import Verdict
from geocalib.result.prior_check import PriorCheck
from geocalib.result.trust import doubts

WRONG = 0.03
"""Share of photos whose EXIF focal length is not theirs."""
CROPPED, LARGEST_CROP = 0.9, 1.2
"""Share of crops among them; the largest enlargement by a crop, in log f."""
ANYWHERE = 2.0
"""Range of log f of all others, of wrong tags."""
FREEDOM = 4.0
"""Of Student's distribution, as of ``geocalib.lines.prior``."""
MOVED = 2.0
"""Sigmas of a prior by which lines may pull an answer off it before both are compared again."""
LEAST_CHANCE = 1e-300
"""Probabilities below it are taken for it: their sigmas would be infinite."""

Checks = tuple[PriorCheck, ...]


def told_rows(readings: Sequence[Readings], together: bool) -> list[int]:
    """The photos of which files or sensors tell something. together: whether the photos share
    unknowns, so that what is told of one concerns all."""
    told = [row for row, reading in enumerate(readings) if reading.focal or reading.gravity]
    return list(range(len(readings))) if together and told else told


def agreement(readings: Sequence[Readings], alone: Mapping[int, Outcome]) -> dict[int, Checks]:
    """How well some photos agree with what was read of them. alone: by their rows, the outcomes
    that the pictures give without it."""
    return {
        row: check(readings[row], seen) if isinstance(seen, Calibration) else ()
        for row, seen in alone.items()
    }


def doubtful_rows(
    readings: Sequence[Readings],
    checks: Mapping[int, Checks],
    outcomes: Mapping[int, Outcome],
    together: bool,
) -> list[int]:
    """The photos, of those that were checked, whose network or lines may contradict what was read:
    all of them where they share unknowns and one is doubtful."""
    told = list(checks)
    doubtful = [row for row in told if _is_doubtful(readings[row], checks[row], outcomes[row])]
    return told if together and doubtful else doubtful


def _is_doubtful(reading: Readings, checks: Checks, outcome: Outcome) -> bool:
    """Whether the network contradicts a prior, lines were not believed beside it, or they pulled
    the answer off it."""
    if any(each.contradicts for each in checks):
        return True
    if reading.focal is None or not isinstance(outcome, Calibration) or outcome.lines is None:
        return False
    moved = abs(math.log(outcome.fy / reading.focal.focal_px))
    unlikely = outcome.lines.verdict is Verdict.UNLIKELY
    return unlikely or moved > MOVED * reading.focal.relative


def wrong_cameras(checks: Mapping[int, Checks], cameras: Sequence[int]) -> set[int]:
    """The cameras whose EXIF focal length is not believed. Sensors of gravity are only warned of.

    cameras: equal integers for photos of one camera.
    """
    return {
        cameras[row]
        for row, each in checks.items()
        if not all(believed(one) for one in each if one.quantity == "focal")
    }


def without_focal(
    readings: Sequence[Readings], cameras: Sequence[int], wrong: set[int]
) -> list[Readings]:
    """What was read, without the focal lengths of the wrong cameras."""
    return [
        replace(reading, focal=None) if camera in wrong else reading
        for reading, camera in zip(readings, cameras, strict=True)
    ]


def left_out(checks: Checks) -> Checks:
    """The checks of a photo whose EXIF focal length was left out."""
    return tuple(replace(each, used=each.quantity == "gravity") for each in checks)


def annotated(
    outcome: Outcome, checks: Checks, readings: Readings, notes: Sequence[str], orientation: int
) -> Outcome:
    """An answer with its warnings and with how well sensors and picture agree.

    notes: what else is to be said of it, first. orientation: of the file, by EXIF.
    """
    if not isinstance(outcome, Calibration):
        return outcome
    wrong = (str(prior) for prior in checks if prior.contradicts)
    warnings = (*notes, *readings.notes, *wrong, *doubts(outcome))
    return replace(outcome, warnings=warnings, priors=checks, orientation=orientation)


def check(readings: Readings, alone: Calibration) -> Checks:
    """What was read of a photo, against the calibration that its picture alone gives."""
    checks = []
    if readings.focal is not None:
        checks.append(focal_check(readings.focal, alone.fy, alone.sigma.focal))
    if readings.gravity is not None:
        checks.append(_gravity_check(readings.gravity, alone))
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


def _gravity_check(hint: GravityReading, alone: Calibration) -> PriorCheck:
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


def believed(focal: PriorCheck) -> bool:
    """Whether EXIF is likelier right than wrong, given what the picture alone shows."""
    if not math.isfinite(focal.tension):
        return True
    (told,), (seen,) = focal.prior, focal.estimate
    sigma = math.hypot(focal.prior_sigma / told, focal.estimate_sigma / seen)
    wrong = (1 - CROPPED) / ANYWHERE + (CROPPED / LARGEST_CROP if seen > told else 0.0)
    return (1 - WRONG) * _student(focal.tension) / sigma > WRONG * wrong


def _student(value: float) -> float:
    """Density of Student's distribution."""
    n = FREEDOM
    norm = math.gamma(0.5 * (n + 1)) / (math.sqrt(n * math.pi) * math.gamma(0.5 * n))
    return float(norm * (1 + value**2 / n) ** (-0.5 * (n + 1)))
