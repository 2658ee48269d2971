"""Which kind of lens took a picture: families of camera models, compared by their evidence.

Each family is fitted to the same perspective fields. Its evidence is the likelihood of the fields
at the optimum times the share of its prior that the optimum's neighbourhood takes up (Laplace's
approximation). How noisy the fields of a picture are is not known beforehand: with E the sum of
squared residuals, and as much information as ``INFORMATION`` independent residuals, the noise is
summed out, which leaves E^(-INFORMATION / 2). So it is the ratio of residuals that tells lenses
apart, and pictures that networks see badly tell little.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from geocalib.arrays import Array
from geocalib.cameras import Camera, get_model
from geocalib.cameras.base import CameraModel
from geocalib.geometry.fields import LOG_F, Fields
from geocalib.records import dataclass
from geocalib.solver.fit import fit
from geocalib.solver.known import Given, Known, Prior
from geocalib.solver.result import FitResult
from geocalib.solver.schedule import FitOptions
from geocalib.solver.sigma_calibration import FieldErrors

INFORMATION = 30.0
"""Independent residuals that a field is worth. Chosen on rendered views and photographs of the
training part, where the families' probabilities are right as often as they say."""
CELLS = 16
"""Cells of the fields along the shorter side: their optimum is that of all, to a few hundredths of
a sigma."""


@dataclass(frozen=True)
class Family:
    """Lenses of one kind, and how they are spread before a picture is seen."""

    model: CameraModel
    odds: float
    """How common they are, by photographs."""
    log_focal: tuple[float, float]
    """Mean and sigma of the logarithm of the focal length over the longer side."""
    distortion: tuple[float, float] | None = None
    """Mean and sigma of its parameter."""
    per_focal: bool = False
    """Whether the parameter is in units of (focal length / shorter side)^2."""

    def prior(self, focal: float, size: tuple[int, int]) -> tuple[float, float]:
        """Mean and sigma of the distortion of a lens of about that focal length, pixels."""
        assert self.distortion is not None
        unit = (focal / min(size)) ** 2 if self.per_focal else 1.0
        return self.distortion[0] * unit, self.distortion[1] * unit


RECTILINEAR = Family(get_model("pinhole"), 0.80, (0.0, 0.5))
BENT = Family(get_model("simple_radial"), 0.15, (0.0, 0.5), (0.0, 0.07), per_focal=True)
WIDE = Family(get_model("ucm"), 0.05, (math.log(0.45), 0.4), (0.58, 0.13))
FAMILIES = (RECTILINEAR, BENT, WIDE)


@dataclass(frozen=True)
class Candidate:
    """A family, fitted to the field of one picture."""

    family: Family
    camera: Camera
    """In pixels of the fields, a batch of 1."""
    gravity: Array
    """(3,)."""
    distortion: tuple[float, float] | None
    """Mean and sigma of the prior it was fitted with."""
    log_evidence: float
    """Of the field; -inf where the fit failed."""


def candidates(
    fields: Fields, known: Given, aspect: Known, errors: FieldErrors
) -> list[list[Candidate]]:
    """The families fitted to each of B fields of one size, in the order of ``FAMILIES``.

    known: in pixels of the fields; what is known of focal lengths and gravity holds for every
    family. aspect: fx / fy of each. errors: of the network that saw the fields.
    """
    options = FitOptions(confidence_scale=errors.confidence_scale, cells=CELLS)
    found: list[list[Candidate]] = [[] for _ in range(len(fields))]
    focal: list[float] = []
    for family in FAMILIES:
        distortion: Known = None
        priors: list[tuple[float, float] | None] = [None] * len(fields)
        if family.distortion is not None:
            own = [family.prior(f, fields.size) for f in focal]
            distortion = Prior(np.array([p[:1] for p in own]), np.array([p[1:] for p in own]))
            priors = [*own]
        result = fit(
            fields,
            errors.model_to_fit(family.model),
            known.focal,
            known.gravity,
            distortion,
            known.principal_point,
            aspect=aspect,
            options=options,
        ).in_numpy()
        focal = focal or [
            f if math.isfinite(f) else 0.7 * max(fields.size) for f in result.camera.f.tolist()
        ]
        for row, fitted in enumerate(found):
            camera, prior = result.camera[row], priors[row]
            evidence = _log_evidence(family, result, row, prior)
            fitted.append(Candidate(family, camera, result.gravity[row], prior, evidence))
    return found


def _log_evidence(
    family: Family, result: FitResult, row: int, prior: tuple[float, float] | None
) -> float:
    """Of one field, given its fit."""
    cost, scale = float(result.cost[row]), float(result.confidence_scale[row])
    if result.status[row].failed or not cost > 0:
        return -math.inf
    # The covariance at the noise that the residuals show.
    covariance = result.covariance[row] * (cost / INFORMATION / scale)
    sign, log_volume = np.linalg.slogdet(2 * math.pi * covariance)
    if sign <= 0:
        return -math.inf
    camera = result.camera[row]
    evidence = -0.5 * INFORMATION * math.log(cost) + 0.5 * float(log_volume)
    if LOG_F in result.parameters:
        log_focal = math.log(camera.f.item() / float(camera.size.max()))
        evidence += _log_normal(log_focal, *family.log_focal)
    if prior is not None:
        evidence += _log_normal(camera.distortion[0, 0].item(), *prior)
    return evidence


def _log_normal(value: float, mean: float, sigma: float) -> float:
    return -0.5 * ((value - mean) / sigma) ** 2 - math.log(sigma * math.sqrt(2 * math.pi))


def probabilities(
    pictures: Sequence[Sequence[Candidate]], odds: Sequence[float] | None = None
) -> list[float]:
    """Of each of ``FAMILIES``, given all pictures of one camera.

    odds: how common the families are for such cameras, in place of ``Family.odds``.
    """
    prior = [family.odds for family in FAMILIES] if odds is None else odds
    logs = [
        math.log(share) + sum(own[place].log_evidence for own in pictures)
        for place, share in enumerate(prior)
    ]
    if not max(logs) > -math.inf:
        return [1.0, *[0.0] * (len(FAMILIES) - 1)]
    weights = [math.exp(value - max(logs)) for value in logs]
    return [weight / sum(weights) for weight in weights]
