"""Which images do not show the camera that the others show: a robust chi-square test.

Each image has an opinion of the intrinsics, with a covariance. The consensus is their mean under
Student's distribution, started from their median; how far opinions of one camera really scatter,
compared with their covariances, is read off the median of their distances, with the covariances
as the belief that few images do not overturn. What is too far away to be chance is an outlier.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

FALSE_ALARM = 1e-4
"""Probability that an image of the same camera is called an outlier."""

FEWEST = 3
"""Images among which one can be odd: of two that disagree, nobody knows which is wrong."""

SAME_CAMERA = 0.02
"""Sigma by which log f and the distortion of one camera differ between its photos: focusing and
stabilisation move the lens, and photos are cropped a little."""

BELIEF = 5.0
"""Images that the covariances are worth when their scale is judged."""

FREEDOM = 4.0
"""Of Student's distribution."""

ROUNDS = 50

SILENCE, LEAST_SPREAD = 5.0, 0.46
"""Standard deviations by which the log confidence of a silent image is below the median, and the
least that one counts: so that it has a tenth of what is usual, or less."""


@dataclass(frozen=True)
class Verdict:
    """What B opinions of P intrinsics amount to."""

    consensus: Tensor
    """(P,)."""
    spread: float
    """By how much opinions scatter more than their sigmas say (less if below 1)."""
    distance: Tensor
    """(B,) from the consensus, in sigmas of the scatter; NaN without an opinion."""
    outlier: Tensor
    """(B,)."""


def judge(opinion: Tensor, covariance: Tensor) -> Verdict:
    """The verdict on opinions (B, P) with covariances (B, P, P); NaN rows have none."""
    images, unknowns = opinion.shape
    heard = torch.isfinite(opinion).all(1) & torch.isfinite(covariance).flatten(1).all(1)
    distance = torch.full((images,), torch.nan, dtype=opinion.dtype)
    nobody = torch.zeros(images, dtype=torch.bool)
    x, C = opinion[heard], covariance[heard]
    if unknowns == 0 or len(x) == 0:
        empty = opinion.new_full((unknowns,), torch.nan)
        return Verdict(empty, 1.0, torch.where(heard, 0.0, distance), nobody)
    consensus, spread = _medians(x, C), 1.0
    for _ in range(ROUNDS):
        spread = _spread(_squared(x - consensus, C), unknowns)
        whole = _with_changes(spread**2 * C)
        before, consensus = consensus, _centre(x, whole, consensus)
        if bool(((consensus - before).abs() < 1e-9).all()):
            break
    squared = _squared(x - consensus, _with_changes(spread**2 * C))
    distance[heard] = squared.sqrt()
    if len(x) >= FEWEST:
        chance = torch.special.gammaincc(torch.full_like(squared, 0.5 * unknowns), 0.5 * squared)
        nobody[heard] = chance < FALSE_ALARM
    return Verdict(consensus, spread, distance, nobody)


def silent(confidence: Tensor) -> Tensor:
    """Which images (B,) the network is hardly confident of at all, compared with the others, as of
    pictures that no camera took. Each has a sum of confidences (B,); 0 counts as none."""
    level = confidence.double().clamp(min=torch.finfo(torch.float64).tiny).log()
    middle = level.median()
    spread = max(1.4826 * (level - middle).abs().median().item(), LEAST_SPREAD)
    return (level < middle - SILENCE * spread) & (len(level) >= FEWEST)


def _with_changes(covariance: Tensor) -> Tensor:
    own = torch.full_like(covariance[:, 0], SAME_CAMERA**2)
    return covariance + torch.diag_embed(own)


def _medians(x: Tensor, covariance: Tensor) -> Tensor:
    """(P,) medians, where an opinion weighs as much as it is sure."""
    weight = _with_changes(covariance).diagonal(dim1=1, dim2=2).rsqrt()
    order = x.argsort(0)
    ranked = weight.gather(0, order).cumsum(0)
    middle = (ranked < 0.5 * ranked[-1:]).sum(0, keepdim=True)
    return x.gather(0, order).gather(0, middle)[0]


def _spread(squared: Tensor, unknowns: int) -> float:
    """Scale of the sigmas that squared distances (B,) of P unknowns ask for."""
    # The median of a chi-square variable, to a few percent.
    usual = unknowns * (1 - 2 / (9 * unknowns)) ** 3
    seen = squared.median().item() / usual
    return math.sqrt((BELIEF + len(squared) * seen) / (BELIEF + len(squared)))


def _squared(away: Tensor, covariance: Tensor) -> Tensor:
    """(B,) squared Mahalanobis lengths."""
    squared: Tensor = (away * torch.linalg.solve(covariance, away)).sum(1)
    return squared


def _centre(x: Tensor, covariance: Tensor, at: Tensor) -> Tensor:
    """One step to the mean under Student's distribution."""
    freedom = FREEDOM + x.shape[1]
    weight = freedom / (FREEDOM + _squared(x - at, covariance))
    information = torch.linalg.inv(covariance) * weight[:, None, None]
    total = information.sum(0)
    centre: Tensor = torch.linalg.solve(total, (information @ x[:, :, None]).sum(0)[:, 0])
    return centre
