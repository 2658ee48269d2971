"""How often lines that are used are not of an upright world, and what tells it: the constants of
``geocalib.lines.hypotheses.NOT_UPRIGHT``.

python lab/benchmarks/upright_odds.py KEPT.pickle ... [--off DEGREES]

Each file holds photographs with known gravity as ``benchmarks/lines.py --keep`` left them: what the
network answered and which segments were found. Folds are of photographers: names up to "__".
"""

from __future__ import annotations

import argparse
import pickle
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from geocalib import Calibration
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import ALONG_PITCH
from geocalib.lines.hypotheses import upright_traits
from geocalib.lines.refine import refine
from geocalib_lab.evaluation.datasets import Sample

Array = npt.NDArray[np.float64]

FOLDS = 5
WEAK = 0.3
"""Inverse variance of the coefficients beforehand."""
ITERATIONS = 50
LABEL_SIGMA = np.radians([0.5, 1.0])
"""Of roll and pitch by an accelerometer."""


@dataclass(frozen=True)
class Photo:
    """A photograph of which lines are used."""

    owner: str
    traits: Array
    error_deg: float
    sigmas: float
    """By how many the answer is off."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kept", type=Path, nargs="+")
    parser.add_argument("--off", type=float, default=12.0)
    options = parser.parse_args()
    photos = [photo for path in options.kept for photo in photos_of(path)]
    wrong = np.array([photo.error_deg > options.off for photo in photos], np.float64)
    traits = np.array([[1, *photo.traits] for photo in photos])
    owners = sorted({photo.owner for photo in photos})
    fold = np.array([owners.index(photo.owner) % FOLDS for photo in photos])
    odds = np.zeros(len(photos))
    for number in range(FOLDS):
        own = fold == number
        odds[own] = traits[own] @ logistic(traits[~own], wrong[~own])
    far = np.mean([photo.sigmas > 5 for photo in photos])
    print(f"{len(photos)} photographs of {len(owners)} photographers use lines")
    print(f"off by more than {options.off:g} degrees: {wrong.mean():.1%}; by 5 sigmas: {far:.1%}")
    print("coefficients:", ", ".join(f"{value:.2f}" for value in logistic(traits, wrong)))
    print(f"area under the curve, cross-validated: {area(odds, wrong):.2f}")


def photos_of(path: Path) -> list[Photo]:
    """The photographs of a file whose lines are used, and whose gravity is known."""
    photos = []
    for sample, _, by_card, segments in pickle.loads(path.read_bytes()):
        if not isinstance(by_card, Calibration) or sample.roll_deg is None:
            continue
        (answer,) = refine([by_card], [segments])
        assert answer.lines is not None
        if answer.lines.verdict.used:
            photos.append(_photo(sample, by_card, answer))
    return photos


def _photo(sample: Sample, network: Calibration, answer: Calibration) -> Photo:
    assert answer.lines is not None
    assert answer.lines.traces is not None
    assert sample.roll_deg is not None
    assert sample.pitch_deg is not None
    pitch = network.parameters.index(ALONG_PITCH)
    sigma = float(np.sqrt(network.covariance[pitch, pitch]))
    traces = answer.lines.traces
    traits = upright_traits(answer.gravity, sigma, traces.directions, traces.vertical)
    truth = sphere.from_roll_pitch(*np.radians(np.array([sample.roll_deg, sample.pitch_deg])))
    off = sphere.difference(answer.gravity, truth, sphere.tangent_basis(answer.gravity))
    covariance = answer.covariance[:2, :2] + np.diag(LABEL_SIGMA**2)
    sigmas = float(np.sqrt(off @ np.linalg.solve(covariance, off)))
    owner = sample.image.name.split("__")[0]
    return Photo(owner, traits, float(np.degrees(np.hypot(*off))), sigmas)


def logistic(traits: Array, wrong: Array) -> Array:
    """Coefficients (K,) of a logistic regression of what is wrong (N,) on traits (N, K), the first
    of which is 1, by Newton's method."""
    found = np.zeros(traits.shape[1])
    weak = WEAK * np.eye(len(found))
    weak[0, 0] = 0
    for _ in range(ITERATIONS):
        chance = 1 / (1 + np.exp(-traits @ found))
        gradient = traits.T @ (chance - wrong) + weak @ found
        hessian = (traits * (chance * (1 - chance))[:, None]).T @ traits + weak
        found = found - np.linalg.solve(hessian, gradient)
    return found


def area(odds: Array, wrong: Array) -> float:
    """The area under the curve: how often a wrong answer has higher odds than a right one."""
    return float(np.mean(odds[wrong > 0][:, None] > odds[wrong == 0]))


if __name__ == "__main__":
    main()
