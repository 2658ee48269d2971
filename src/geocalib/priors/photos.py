"""How people take photographs: a prior of focal lengths, for photos of which nobody tells one.

A second network that has looked at the photo knows better than all photographs together
(``nets.opinion``); beside one these count half, without one in full:

35 mm equivalents of 1,519 photographs of 108 people, each of whom counts alike; a wide third part
makes none improbable. ``benchmarks/photo_prior.py`` fits the numbers, and measures what they give.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from geocalib.geometry import gravity as sphere
from geocalib.geometry.conventions import FULL_FRAME_DIAGONAL
from geocalib.geometry.fields import ALONG_PITCH, ALONG_ROLL, LOG_F
from geocalib.result.calibration import Calibration, Outcome

FACTOR = 3.6
POWER = 1.42
"""Beside an opinion, a fit whose sigma of log f is s counts with FACTOR s^POWER where that is more:
both networks saw the same photo and learnt from the same panoramas, so they err together, and the
less sure a fit is, the more. By photographs that nobody trained on (docs/model-card.md)."""

TOO_LONG_UPRIGHT = 0.15
"""By how much opinions on log f are too large where the camera was held upright: a network that is
unsure leans to what it saw most. By the same photographs; those of lying ones are as good as right,
also on pictures that are no photographs of people."""

WIDER = 1.22
"""The sigma of log f that a fit, an opinion and half of the mixture leave is up to this many times
too small, as they err together. By the same photographs."""

SILENT = 1.0
"""Inverse variance of log f below which nobody has told anything."""


@dataclass(frozen=True)
class Part:
    """A normal distribution of the logarithm of the 35 mm equivalent."""

    share: float
    millimetres: float
    sigma: float
    """Of the logarithm."""


@dataclass(frozen=True)
class Opinion:
    """Of a second network: the logarithm of a focal length in pixels, and its sigma."""

    log_f: float
    sigma: float


WIDE_TAIL = Part(0.1, 35.0, 0.8)
LYING = (Part(0.596, 28.2, 0.168), Part(0.304, 64.0, 0.342), WIDE_TAIL)
UPRIGHT = (Part(0.659, 27.2, 0.109), Part(0.241, 62.4, 0.360), WIDE_TAIL)


def combined(mean: float, sigma: float, parts: Sequence[Part]) -> tuple[float, float]:
    """Mean and sigma of the log of an equivalent, in millimetres, that a picture tells with these,
    once the parts are known as well."""
    weights, means, variances = [], [], []
    for part in parts:
        at, both = math.log(part.millimetres), sigma**2 + part.sigma**2
        weights.append(math.log(part.share) - 0.5 * (math.log(both) + (mean - at) ** 2 / both))
        variances.append(sigma**2 * part.sigma**2 / both)
        means.append((mean * part.sigma**2 + at * sigma**2) / both)
    shares = [math.exp(weight - max(weights)) for weight in weights]
    total = sum(shares)
    middle = sum(s * m for s, m in zip(shares, means, strict=True)) / total
    spread = sum(
        s * (v + (m - middle) ** 2) for s, m, v in zip(shares, means, variances, strict=True)
    )
    return middle, math.sqrt(spread / total)


def as_people_take_them(
    outcomes: Sequence[Outcome],
    cameras: Sequence[int],
    told: Sequence[float] | None,
    opinions: Sequence[Opinion | None] | None = None,
) -> list[Outcome]:
    """The network's answers with what is known of photographs, where nobody else told the focal
    length.

    cameras: equal integers for images of one camera; whether it was held upright is asked of the
    first of them. told: inverse variances of log f by others, as ``Given.told_log_f``. opinions: of
    a second network, on each; those on a camera of several pictures are not asked.
    """
    count = Counter(cameras)
    first: dict[int, Calibration] = {}
    answers: list[Outcome] = []
    for row, (outcome, camera) in enumerate(zip(outcomes, cameras, strict=True)):
        silent = told is None or told[row] < SILENT
        if isinstance(outcome, Calibration) and silent and _applies(outcome):
            held = first.setdefault(camera, outcome)
            upright = held.height > held.width
            parts = UPRIGHT if upright else LYING
            opinion = opinions[row] if opinions is not None and count[camera] == 1 else None
            if opinion is None:
                outcome = _pulled(outcome, parts)
            else:
                too_long = TOO_LONG_UPRIGHT if upright else 0.0
                mended = replace(opinion, log_f=opinion.log_f - too_long)
                outcome = _weighed(outcome, mended, _halved(parts))
        answers.append(outcome)
    return answers


def _applies(calibration: Calibration) -> bool:
    """Focal lengths of wide models are something else."""
    return LOG_F in calibration.parameters and not calibration.camera.model.wide


def _halved(parts: Sequence[Part]) -> list[Part]:
    """Parts that count half: the square root of the density of each."""
    shares = [math.sqrt(part.share * part.sigma) for part in parts]
    return [
        replace(part, share=share / sum(shares), sigma=math.sqrt(2) * part.sigma)
        for part, share in zip(parts, shares, strict=True)
    ]


def _weighed(calibration: Calibration, opinion: Opinion, parts: Sequence[Part]) -> Calibration:
    """With log f as it is by the fit, by an opinion and by how photographs are taken."""
    at = calibration.parameters.index(LOG_F)
    variance = float(calibration.covariance[at, at])
    if not 0 < variance < math.inf:
        return calibration
    # 1 where the fit is sure: whatever the others say, it stays so.
    doubt = max(1.0, FACTOR * variance ** ((POWER - 1) / 2))
    unsure = _stretched(calibration, doubt)
    diagonal = math.hypot(calibration.width, calibration.height)
    millimetres = math.exp(opinion.log_f) / diagonal * FULL_FRAME_DIAGONAL
    both = _pulled(unsure, [Part(1.0, millimetres, opinion.sigma)])
    return _stretched(_pulled(both, parts), min(doubt, WIDER))


def _stretched(calibration: Calibration, factor: float) -> Calibration:
    """With a sigma of log f that is so many times as large."""
    stretch = np.ones(len(calibration.parameters))
    stretch[calibration.parameters.index(LOG_F)] = factor
    covariance = stretch[:, None] * calibration.covariance * stretch
    return calibration.moved(calibration.camera, calibration.gravity, covariance, calibration.lines)


def _pulled(calibration: Calibration, parts: Sequence[Part]) -> Calibration:
    """With log f as it is by both, and all that depends on it moved along."""
    names, camera, covariance = calibration.parameters, calibration.camera, calibration.covariance
    at = names.index(LOG_F)
    variance = float(covariance[at, at])
    if not 0 < variance < math.inf:
        return calibration
    pixels = math.hypot(calibration.width, calibration.height) / FULL_FRAME_DIAGONAL
    mean = math.log(calibration.fy / pixels)
    found, sigma = combined(mean, math.sqrt(variance), parts)
    slope = covariance[:, at] / variance
    step = dict(zip(names, slope * (found - mean), strict=True))
    gravity = calibration.gravity
    if ALONG_PITCH in step:
        gravity = sphere.move(gravity, np.array([step[ALONG_ROLL], step[ALONG_PITCH]]))
    bend = np.array([step.get(name, 0.0) for name in camera.model.parameters])
    f = camera.f * np.exp(step[LOG_F])
    camera = replace(camera, f=f, distortion=camera.distortion + bend)
    spread = covariance + (sigma**2 - variance) * slope[:, None] * slope
    return calibration.moved(camera, gravity, spread, calibration.lines)
