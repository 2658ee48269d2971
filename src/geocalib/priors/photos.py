"""How people take photographs: a prior of focal lengths, for photos without a known one.

A second network that has looked at the photo (``nets.focal_head``) is used as well, where there is
one.

35 mm equivalents of 1,519 photographs of 108 people, each of whom counts alike; a wide third part
makes none improbable. The shape of a photo depends on its camera: phones and compact cameras have
sensors of 4:3 and lenses near 28 mm, reflex cameras 3:2, zooms and longer lenses.
``lab/benchmarks/photo_prior.py`` fits the numbers, and measures what they give.
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
"""Beside the estimate of a second network, a fit whose sigma of log f is s counts with
FACTOR s^POWER where that is more: both networks saw the same photo and learnt from the same
panoramas, so they err together, and the less sure a fit is, the more. By held-out
photographs (docs/model-card.md)."""

TOO_LONG = 0.05
"""By how much the second network's estimates of log f are too large: a network that is unsure leans
to what it saw most. By the same photographs."""

WIDER = 1.35
"""The sigma of log f that a fit, the second network and the habits of people leave is up to this
many times too small: networks have learnt some of these habits. By the same photographs."""

GRAVITY_WIDER = 1.5
"""The factor by which sigmas of gravity are too small on photographs without lines:
networks learn from panoramas, whose views rarely look down at a table. By photographs with an
accelerometer (``lab/benchmarks/trust.py report``)."""

UNLEARNT_WIDER = 2.5
"""The same where no sigmas were learnt for the single photo, as beside a focal length that is told
(``gather --focal`` there)."""

SILENT = 1.0
"""Inverse variance of log f below which the focal length counts as unknown."""


@dataclass(frozen=True)
class FocalComponent:
    """A normal distribution of the logarithm of the 35 mm equivalent."""

    share: float
    millimetres: float
    sigma: float
    """One sigma of the logarithm."""


@dataclass(frozen=True)
class FocalEstimate:
    """What a second network says: the logarithm of a focal length in pixels, and its sigma."""

    log_f: float
    sigma: float


WIDE_TAIL = FocalComponent(0.1, 35.0, 0.8)


@dataclass(frozen=True)
class ShapePrior:
    """How people take photographs of one shape."""

    lying: tuple[FocalComponent, ...]
    upright: tuple[FocalComponent, ...]


ANY_SHAPE = ShapePrior(
    lying=(FocalComponent(0.596, 28.2, 0.168), FocalComponent(0.304, 64.0, 0.342), WIDE_TAIL),
    upright=(FocalComponent(0.659, 27.2, 0.109), FocalComponent(0.241, 62.4, 0.360), WIDE_TAIL),
)
BY_SHAPE = {
    4 / 3: ShapePrior(
        lying=(FocalComponent(0.688, 28.1, 0.164), FocalComponent(0.212, 40.7, 0.675), WIDE_TAIL),
        upright=(FocalComponent(0.842, 27.3, 0.107), FocalComponent(0.058, 52.9, 0.100), WIDE_TAIL),
    ),
    3 / 2: ShapePrior(
        lying=(FocalComponent(0.279, 26.4, 0.100), FocalComponent(0.621, 55.5, 0.382), WIDE_TAIL),
        upright=(FocalComponent(0.394, 31.4, 0.231), FocalComponent(0.506, 75.2, 0.167), WIDE_TAIL),
    ),
}
"""By the ratio of the longer to the shorter side."""

SAME_SHAPE = 0.02
"""Ratios that differ by less, relatively, are one: sides are rounded, and sensors are made so."""


def shape_prior(width: int, height: int) -> ShapePrior:
    """How people take photographs of this shape; of any, where it is neither of the two usual."""
    ratio = max(width, height) / min(width, height)
    near = [known for shape, known in BY_SHAPE.items() if abs(ratio / shape - 1) < SAME_SHAPE]
    return near[0] if near else ANY_SHAPE


def usual(width: int, height: int) -> tuple[FocalComponent, ...]:
    """The focal lengths of photographs of this size."""
    known = shape_prior(width, height)
    return known.upright if height > width else known.lying


def combined(mean: float, sigma: float, parts: Sequence[FocalComponent]) -> tuple[float, float]:
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
    focal_information: Sequence[float] | None,
    focal_estimates: Sequence[FocalEstimate | None] | None = None,
) -> list[Outcome]:
    """The network's answers with what is known of photographs, where nothing else is known of the
    focal length.

    cameras: equal integers for images of one camera; their shape, and whether it was held upright,
    are those of the first of them. focal_information: inverse variances of log f by others, as
    ``Given.focal_information``. focal_estimates: of a second network, of each; those of a camera of
    several pictures are not used.
    """
    count = Counter(cameras)
    first: dict[int, Calibration] = {}
    answers: list[Outcome] = []
    for row, (outcome, camera) in enumerate(zip(outcomes, cameras, strict=True)):
        silent = focal_information is None or focal_information[row] < SILENT
        if isinstance(outcome, Calibration) and silent and _applies(outcome):
            held = first.setdefault(camera, outcome)
            parts = usual(held.width, held.height)
            focal_estimate = (
                focal_estimates[row] if focal_estimates is not None and count[camera] == 1 else None
            )
            outcome = _weighed(outcome, focal_estimate, parts)
        answers.append(outcome)
    return answers


def as_sure_as_photographs(outcome: Outcome, angles: tuple[str, ...], learnt: bool) -> Outcome:
    """An answer with the sigmas that gravity has on photographs, in those of its angles that the
    network tells alone, if no lines were used. learnt: whether its sigmas are those learnt for
    single photos."""
    if not isinstance(outcome, Calibration) or ALONG_PITCH not in outcome.parameters:
        return outcome
    if not angles:
        return outcome
    if outcome.lines is not None and outcome.lines.verdict.used:
        return outcome
    return _stretched(outcome, GRAVITY_WIDER if learnt else UNLEARNT_WIDER, angles)


def _applies(calibration: Calibration) -> bool:
    """Focal lengths of wide models are something else."""
    return LOG_F in calibration.parameters and not calibration.cameras.model.wide


def _weighed(
    calibration: Calibration, focal_estimate: FocalEstimate | None, parts: Sequence[FocalComponent]
) -> Calibration:
    """With log f by the fit, by a second network, if any, and by how photographs are taken."""
    at = calibration.parameters.index(LOG_F)
    variance = float(calibration.covariance[at, at])
    if not 0 < variance < math.inf:
        return calibration
    # 1 where the fit is sure: whatever the others say, it stays so.
    doubt = max(1.0, FACTOR * variance ** ((POWER - 1) / 2))
    if focal_estimate is not None:
        diagonal = math.hypot(calibration.width, calibration.height)
        millimetres = math.exp(focal_estimate.log_f - TOO_LONG) / diagonal * FULL_FRAME_DIAGONAL
        estimated = FocalComponent(1.0, millimetres, focal_estimate.sigma)
        calibration = _pulled(_stretched(calibration, doubt), [estimated])
    return _stretched(_pulled(calibration, parts), min(doubt, WIDER))


def _stretched(
    calibration: Calibration, factor: float, parameters: Sequence[str] = (LOG_F,)
) -> Calibration:
    """With sigmas of some parameters that are so many times as large."""
    stretch = np.ones(len(calibration.parameters))
    stretch[[calibration.parameters.index(name) for name in parameters]] = factor
    covariance = stretch[:, None] * calibration.covariance * stretch
    return calibration.moved(
        calibration.cameras, calibration.gravity, covariance, calibration.lines
    )


def _pulled(calibration: Calibration, parts: Sequence[FocalComponent]) -> Calibration:
    """With log f as it is by both, and all that depends on it moved along."""
    names, camera, covariance = calibration.parameters, calibration.cameras, calibration.covariance
    at = names.index(LOG_F)
    variance = float(covariance[at, at])
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
