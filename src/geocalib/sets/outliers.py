"""Find the images that do not show the camera of the others, by a robust chi-square test.

Each image has an opinion of the intrinsics, with a covariance. The consensus is their mean under
Student's distribution, started from their median; how far opinions of one camera really scatter,
compared with their covariances, is read off the median of their distances, with the covariances
as the belief that few images do not overturn. What is too far away to be chance is an outlier.

Among few images, one that is odd draws the consensus to itself and widens the scatter, so that it
seems to belong. There each image is held against what the others make of themselves without it.
"""

from __future__ import annotations

import math

import numpy as np

from geocalib.arrays import Array, diagonal, inverse_root
from geocalib.chi_square import chi2_sf
from geocalib.records import dataclass

FALSE_ALARM = 1e-4
"""Probability that an image of the same camera is called an outlier."""

GUESSED_ALARM = 2.7e-3
"""The same where nothing but their size says that images are of one camera: 3 sigmas."""

FEW = 16
"""Images up to which each is held against all others."""

FEWEST = 3
"""Least number of images with outliers: of two that disagree, either may be wrong."""

SAME_CAMERA = 0.02
"""Sigma by which log f and the distortion of one camera differ between its photos: focusing and
stabilisation move the lens, and photos are cropped a little."""

BELIEF = 5.0
"""Images that the covariances are worth when their scale is judged."""

FREEDOM = 4.0
"""Degrees of freedom of Student's distribution."""

ROUNDS = 50

SILENCE, LEAST_SPREAD = 5.0, 0.46
"""Standard deviations by which the log confidence of a silent image is below the median, and the
least that one counts: so that it has a tenth of what is usual, or less."""


@dataclass(frozen=True)
class OutlierVerdict:
    """What B opinions of P intrinsics amount to."""

    consensus: Array
    """(P,)."""
    spread: float
    """By how much opinions scatter more than their sigmas say (less if below 1)."""
    distance: Array
    """(B,) from the consensus, in sigmas of the scatter; NaN without an opinion."""
    outlier: Array
    """(B,)."""


def judge(opinion: Array, covariance: Array, alarm: float = FALSE_ALARM) -> OutlierVerdict:
    """The verdict on opinions (B, P) with covariances (B, P, P); NaN rows have none. alarm: the
    probability that an image of the same camera is called an outlier."""
    images, unknowns = opinion.shape
    usable = np.isfinite(opinion).all(1) & np.isfinite(covariance).all((1, 2))
    distance = np.full(images, np.nan)
    outlier = np.zeros(images, np.bool_)
    x, C = opinion[usable], covariance[usable]
    if unknowns == 0 or len(x) == 0:
        return OutlierVerdict(
            np.full(unknowns, np.nan), 1.0, np.where(usable, 0.0, distance), outlier
        )
    consensus, spread = _consensus(x, C)
    squared = _squared(x - consensus, _with_changes(spread**2 * C))
    odd = np.zeros(len(x), np.bool_)
    if len(x) > FEW:
        odd = chi2_sf(squared, unknowns) < alarm
    else:
        # The oddest first, which makes others seem odd.
        while (~odd).sum() >= FEWEST:
            left = np.flatnonzero(~odd)
            squared[left] = [_from_others(x[left], C[left], row) for row in range(len(left))]
            oddest = left[squared[left].argmax()]
            if not chi2_sf(squared[[oddest]], unknowns)[0] < alarm:
                break
            odd[oddest] = True
        if odd.any():
            consensus, spread = _consensus(x[~odd], C[~odd])
    distance[usable], outlier[usable] = np.sqrt(squared), odd
    return OutlierVerdict(consensus, spread, distance, outlier)


def _consensus(x: Array, covariance: Array) -> tuple[Array, float]:
    """(P,) the consensus of opinions (B, P), and by how much they scatter more than they say."""
    consensus, spread = _medians(x, covariance), 1.0
    for _ in range(ROUNDS):
        spread = _spread(_squared(x - consensus, covariance), x.shape[1])
        whole = _with_changes(spread**2 * covariance)
        before, consensus = consensus, _centre(x, whole, consensus)
        if (np.abs(consensus - before) < 1e-9).all():
            break
    return consensus, spread


def _from_others(x: Array, covariance: Array, row: int) -> float:
    """The squared distance of one opinion from the consensus of the others, which is uncertain,
    too."""
    others = np.arange(len(x)) != row
    consensus, spread = _consensus(x[others], covariance[others])
    whole = _with_changes(spread**2 * covariance)
    both = whole[[row]] + np.linalg.inv(np.linalg.inv(whole[others]).sum(0))
    return float(_squared(x[[row]] - consensus, both)[0])


def silent(confidence: Array) -> Array:
    """Whether the network has hardly any confidence in each image (B,), compared with others, as of
    pictures that no camera took. Each has a sum of confidences (B,); 0 counts as none."""
    level = np.log(np.maximum(confidence, np.finfo(np.float64).tiny))
    middle = _median(level)
    spread = max(1.4826 * _median(np.abs(level - middle)), LEAST_SPREAD)
    return (level < middle - SILENCE * spread) & (len(level) >= FEWEST)


def _with_changes(covariance: Array) -> Array:
    return covariance + SAME_CAMERA**2 * np.eye(covariance.shape[-1])


def _medians(x: Array, covariance: Array) -> Array:
    """(P,) medians, where an opinion weighs as much as it is sure."""
    weight = inverse_root(diagonal(_with_changes(covariance)))
    order = x.argsort(0)
    ranked = np.take_along_axis(weight, order, 0).cumsum(0)
    middle = (ranked < 0.5 * ranked[-1:]).sum(0, keepdims=True)
    return np.take_along_axis(np.take_along_axis(x, order, 0), middle, 0)[0]


def _median(values: Array) -> float:
    """The lower one of two in the middle, so that it is one of the values."""
    return float(np.quantile(values, 0.5, method="lower"))


def _spread(squared: Array, unknowns: int) -> float:
    """Scale of the sigmas that squared distances (B,) of P unknowns ask for."""
    # The median of a chi-square variable, to a few percent.
    usual = unknowns * (1 - 2 / (9 * unknowns)) ** 3
    seen = _median(squared) / usual
    return math.sqrt((BELIEF + len(squared) * seen) / (BELIEF + len(squared)))


def _squared(away: Array, covariance: Array) -> Array:
    """The squared Mahalanobis lengths, (B,)."""
    return (away * np.linalg.solve(covariance, away[..., None])[..., 0]).sum(1)


def _centre(x: Array, covariance: Array, at: Array) -> Array:
    """One step to the mean under Student's distribution."""
    freedom = FREEDOM + x.shape[1]
    weight = freedom / (FREEDOM + _squared(x - at, covariance))
    information = np.linalg.inv(covariance) * weight[:, None, None]
    total = information.sum(0)
    return np.linalg.solve(total, (information @ x[:, :, None]).sum(0)[:, 0])
