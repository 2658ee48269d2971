"""The kind of lens of a picture: families of camera models, compared by their evidence.

Each family is fitted to the same perspective fields, the simplest first, and the next only if the
fit before is not good enough. Its evidence is the likelihood of the fields at the optimum
times the share of its prior that the optimum's neighbourhood takes up (Laplace's approximation).
How noisy the fields of a picture are is not known beforehand: with E the sum of squared residuals,
and as much information as ``INFORMATION`` independent residuals, the noise is summed out, which
leaves E^(-INFORMATION / 2). So lenses are compared by the ratio of their residuals, and pictures
with noisy fields decide little.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from geocalib.arrays import Array
from geocalib.cameras import Camera, get_model
from geocalib.cameras.base import CameraModel
from geocalib.geometry.fields import LOG_F
from geocalib.records import dataclass
from geocalib.solver.result import FitResult

INFORMATION = 30.0
"""Independent residuals that a field is worth. Chosen on rendered views and photographs of the
training part, where the families' probabilities are right as often as they say."""
CELLS = 16
"""Cells of the fields along the shorter side: their optimum is that of all, to a few hundredths of
a sigma."""
ERROR = 0.1
"""Part of a sigma at which their fits may end: it changes the evidence by less than 0.1."""
EXACT = 1.5e-3
"""Costs below this count as equal: they are below the errors of networks and near rounding."""
EXPLAINED = 1.6
"""Cost of a pinhole, in units of s^2, below which no other family is looked at. Of 44 rendered wide
views none is below (the least has 1.67, the next 2.49); of photographs of phones 72% are."""


@dataclass(frozen=True)
class Family:
    """Lenses of one kind, and the prior of their parameters."""

    model: CameraModel
    odds: float
    """How common they are, by photographs."""
    log_focal: tuple[float, float]
    """Mean and sigma of the logarithm of the focal length over the longer side."""
    distortion: tuple[float, float] | None = None
    """Mean and sigma of its parameter."""
    per_focal: bool = False
    """Whether the parameter is in units of (focal length / shorter side)^2."""

    def prior(self, focal: float, size: tuple[float, float]) -> tuple[float, float]:
        """Mean and sigma of the distortion of a lens of about that focal length, pixels."""
        assert self.distortion is not None
        unit = (focal / min(size)) ** 2 if self.per_focal else 1.0
        return self.distortion[0] * unit, self.distortion[1] * unit


RECTILINEAR = Family(get_model("pinhole"), 0.83, (0.0, 0.5))
BENT = Family(get_model("simple_radial"), 0.15, (0.0, 0.5), (0.0, 0.07), per_focal=True)
WIDE = Family(get_model("ucm"), 0.02, (math.log(0.45), 0.25), (0.58, 0.13))
FAMILIES = (RECTILINEAR, BENT, WIDE)
Odds = tuple[float, float, float]
"""How probable each of them is, before a picture is seen."""


@dataclass(frozen=True)
class Candidate:
    """A family, fitted to the field of one picture."""

    family: Family
    camera: Camera
    """In the pixels of the fit, a batch of 1."""
    gravity: Array
    """(3,)."""
    distortion: tuple[float, float] | None
    """Mean and sigma of the prior it was fitted with."""
    log_evidence: float
    """Log evidence of the field; -inf if the fit failed."""
    cost: float
    """Cost of the fit, in units of s^2."""

    @property
    def bend(self) -> float:
        """Its distortion; NaN where the fit failed."""
        return float(self.camera.distortion[0, 0].item())


Fitted = tuple[FitResult, int]
"""A fit of several pictures by themselves, and the place of one among them."""
FitTo = Callable[[Sequence[int], CameraModel, Sequence[tuple[float, float]] | None], list[Fitted]]
"""Fits a model to some pictures, given mean and sigma of the distortion of each."""


def compare(
    fit_to: FitTo,
    cameras: Sequence[int],
    odds: Mapping[int, Odds | None],
    named: Mapping[int, CameraModel] | None = None,
) -> list[list[Candidate]]:
    """The families that may have taken each of B pictures, in the order of ``FAMILIES``: the same
    ones for all pictures of one camera.

    cameras: (B,) integers, equal where the camera is. odds: of each camera, where more is known
    than how common the families are; if they favour a wide lens, all families are fitted. named:
    the models of cameras with known slight distortion, which have that family alone.
    """
    named = named or {}
    found: list[list[Candidate]] = [[] for _ in cameras]

    def look_at(family: Family, chosen: set[int]) -> None:
        rows = [row for row, camera in enumerate(cameras) if camera in chosen]
        for row, candidate in zip(rows, _fitted(family, fit_to, rows, found), strict=True):
            found[row].append(candidate)

    look_at(RECTILINEAR, set(cameras))
    known = {camera for camera, own in odds.items() if own is not None and own[-1] > WIDE.odds}
    pairs = list(zip(cameras, found, strict=True))
    unexplained = known | {camera for camera, own in pairs if not own[0].cost < EXPLAINED}
    look_at(BENT, unexplained.difference(named))
    for model in dict.fromkeys(named.values()):
        look_at(replace(BENT, model=model), {each for each in named if named[each] == model})
    found = [own[1:] if camera in named else own for camera, own in pairs]
    # A wide lens fitted as a slightly bent one has barrel distortion.
    barrels = {camera for camera, own in pairs if len(own) > 1 and not own[1].bend >= 0}
    look_at(WIDE, (known | barrels).difference(named))
    return found


def _fitted(
    family: Family, fit_to: FitTo, rows: Sequence[int], found: Sequence[Sequence[Candidate]]
) -> list[Candidate]:
    """A family fitted to some pictures; found: of each, what simpler families say."""
    priors: list[tuple[float, float]] | None = None
    if family.distortion is not None:
        cameras = [found[row][0].camera for row in rows]
        priors = [family.prior(_focal(camera), _size(camera)) for camera in cameras]
    candidates = []
    for place, (result, at) in enumerate(fit_to(rows, family.model, priors) if rows else []):
        prior = None if priors is None else priors[place]
        camera = result.camera[at]
        evidence = _log_evidence(family, result, at, prior)
        cost = float(result.cost[at] / result.confidence_scale[at])
        candidates.append(Candidate(family, camera, result.gravity[at], prior, evidence, cost))
    return candidates


def _size(camera: Camera) -> tuple[float, float]:
    width, height = camera.size[0].tolist()
    return width, height


def _focal(camera: Camera) -> float:
    """The focal length of the pinhole's fit; a usual one if that fit failed."""
    focal = camera.f.item()
    return focal if math.isfinite(focal) else 0.7 * max(_size(camera))


def _log_evidence(
    family: Family, result: FitResult, row: int, prior: tuple[float, float] | None
) -> float:
    """The log evidence of one field, given its fit."""
    cost, scale = float(result.cost[row]), float(result.confidence_scale[row])
    if result.status[row].failed or not cost > 0:
        return -math.inf
    cost = max(cost, EXACT)
    # The covariance at the noise that the residuals show.
    covariance = result.covariance[row] * (cost / INFORMATION / scale)
    sign, log_volume = np.linalg.slogdet(2 * math.pi * covariance)
    if sign <= 0:
        return -math.inf
    camera = result.camera[row]
    evidence = -0.5 * INFORMATION * math.log(cost) + 0.5 * float(log_volume)
    if LOG_F in result.parameters:
        log_focal = math.log(camera.f.item() / float(camera.size.max()))
        evidence += log_normal(log_focal, *family.log_focal)
    if prior is not None:
        evidence += log_normal(camera.distortion[0, 0].item(), *prior)
    return evidence


def log_normal(value: float, mean: float, sigma: float) -> float:
    """The logarithm of the density of a normal distribution."""
    return -0.5 * ((value - mean) / sigma) ** 2 - math.log(sigma * math.sqrt(2 * math.pi))


def probabilities(pictures: Sequence[Sequence[Candidate]], odds: Odds | None = None) -> list[float]:
    """The probability of each fitted family, given all pictures of one camera, whether usable or
    not.

    odds: how common the families are for such cameras, in place of ``Family.odds``.
    """
    shares = [family.odds for family in FAMILIES] if odds is None else odds
    usable = [own for own in pictures if max(each.log_evidence for each in own) > -math.inf]
    # Errors of a network are alike in pictures of one camera.
    weight = 1 / math.sqrt(max(1, len(usable)))
    logs = [
        math.log(shares[place]) + weight * sum(own[place].log_evidence for own in usable)
        for place in range(len(pictures[0]) if usable else 0)
    ]
    if not usable:
        return [1.0, *[0.0] * (len(pictures[0]) - 1)]
    if not max(logs) > -math.inf:
        return [1.0, *[0.0] * (len(logs) - 1)]
    weights = [math.exp(value - max(logs)) for value in logs]
    return [weight / sum(weights) for weight in weights]
