"""Whether stated sigmas are true, and the factors that make them so.

The covariance of a fit takes the errors of neighbouring pixels for independent. A network's are
not, so its sigmas come out too small, by a factor that only photographs with ground truth tell.

The factor of a quantity is the one with which 68.3% of its absolute errors are within one sigma,
as they are of a normal variable: the 0.683 quantile of |error| / sigma. Outliers do not move it,
so the shares within two and three sigmas stay an independent check of the tails.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geocalib.errors import ConfigError
from geocalib.nets.weights.card import SIGMAS, WeightCard
from geocalib.nets.weights.files import read_weights, save_weights
from geocalib.result.calibration import Calibration, Outcome
from geocalib_lab.evaluation.datasets import Sample
from geocalib_lab.evaluation.report import K1_MODELS

ONE_SIGMA = math.erf(1 / math.sqrt(2))
"""The share of a normal variable within one sigma, 0.683."""

FEWEST = 10
"""The fewest errors that a factor is estimated from."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Deviations:
    """Signed errors of one quantity and the sigmas stated for them, (M,) each."""

    errors: Array
    sigmas: Array

    @property
    def normalised(self) -> Array:
        """(M,) errors in units of their sigma."""
        return self.errors / self.sigmas

    def within(self, sigmas: float) -> float:
        """The share of errors within so many sigmas."""
        return float(np.mean(np.abs(self.normalised) <= sigmas)) if len(self.errors) else math.nan


def deviations(samples: Sequence[Sample], outcomes: Sequence[Outcome]) -> dict[str, Deviations]:
    """By a name of ``SIGMAS``, the errors where there are a truth, an answer and a sigma.

    gravity: roll and pitch together, degrees, with the sigmas of answer and truth where the truth
    was measured; focal: of log f, for models whose field of view is
    that of the focal length; distortion: of k1, for models that have it.
    """
    pairs: dict[str, list[tuple[float, float]]] = {name: [] for name in SIGMAS}
    for sample, outcome in zip(samples, outcomes, strict=True):
        if isinstance(outcome, Calibration):
            for name, error, sigma in _deviations(sample, outcome):
                if math.isfinite(error) and 0 < sigma < math.inf:
                    pairs[name].append((error, sigma))
    columns = {name: np.array(pair).reshape(-1, 2).T for name, pair in pairs.items()}
    return {name: Deviations(errors, sigmas) for name, (errors, sigmas) in columns.items()}


def _deviations(sample: Sample, answer: Calibration) -> Iterable[tuple[str, float, float]]:
    """The name of a quantity, its signed error and its sigma, of all that is known."""
    sigma, model = answer.sigma, answer.cameras.model
    if sample.roll_deg is not None:
        turn = (answer.roll_deg - sample.roll_deg + 180) % 360 - 180
        yield "gravity", turn, math.hypot(sigma.roll_deg, sample.roll_sigma_deg)
    if sample.pitch_deg is not None:
        sigma_deg = math.hypot(sigma.pitch_deg, sample.pitch_sigma_deg)
        yield "gravity", answer.pitch_deg - sample.pitch_deg, sigma_deg
    if sample.vfov_deg is not None and not model.wide:
        # Relative to the height, so that a picture may have another size than its table says.
        true_f = 0.5 * answer.height / math.tan(math.radians(sample.vfov_deg) / 2)
        yield "focal", math.log(answer.fy / true_f), sigma.focal / answer.fy
    if sample.k1 is not None and model.name in K1_MODELS:
        yield "distortion", answer.distortion[0] - sample.k1, sigma.distortion[0]


def pooled(parts: Iterable[Mapping[str, Deviations]]) -> dict[str, Deviations]:
    """The deviations of several sets as of one."""
    parts = list(parts)
    return {
        name: Deviations(
            np.concatenate([part[name].errors for part in parts]),
            np.concatenate([part[name].sigmas for part in parts]),
        )
        for name in SIGMAS
    }


def fit_sigma_scale(
    errors: Mapping[str, ArrayLike], sigmas: Mapping[str, ArrayLike]
) -> dict[str, float]:
    """By name, the factor on sigmas (M,) within which 68.3% of the errors (M,) then are.

    Names with fewer than ten errors have no factor.

    >>> round(fit_sigma_scale({"focal": range(1, 102)}, {"focal": [10.0] * 101})["focal"], 2)
    6.93
    """
    factors = {}
    for name, values in errors.items():
        ratios = np.abs(np.asarray(values, np.float64) / np.asarray(sigmas[name], np.float64))
        if len(ratios) >= FEWEST:
            factors[name] = float(np.quantile(ratios, ONE_SIGMA))
    return factors


def sigma_factors(found: Mapping[str, Deviations]) -> dict[str, float]:
    """The factors of ``fit_sigma_scale`` for these deviations."""
    return fit_sigma_scale(
        {name: part.errors for name, part in found.items()},
        {name: part.sigmas for name, part in found.items()},
    )


def recalibrate(
    weights: str | Path, factors: Mapping[str, float], out: str | Path, description: str
) -> WeightCard:
    """Write weights again with factors on their sigmas; returns the new card.

    The factors were measured with these weights, so they multiply those that are there already.
    """
    if not factors:
        raise ConfigError("there are too few errors to tell any factor from; give more photographs")
    network, card = read_weights(weights)
    scale = {**card.sigma_scale}
    for name, factor in factors.items():
        scale[name] = factor * scale.get(name, 1.0)
    card = replace(card, sigma_scale=scale, description=description)
    save_weights(out, network, card)
    return card
