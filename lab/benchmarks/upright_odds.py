"""How often lines that are used are not of an upright world, and what tells it: the constants
``NOT_UPRIGHT`` of ``geocalib.lines.hypotheses``, as they are to be written there.

    python lab/benchmarks/upright_odds.py SET ... [--weights W] [--at-most N] [--keep FOLDER]

A set is a folder or table with gravity, as ``lines.py`` reads it, of pictures that the weights have
not learnt from; at most N of each are looked at. --keep: a folder for what network and detector
saw, from which another run goes on. Constants are fitted to all; what is said of them is of fits to
four fifths of the photographers (names up to "__"), on the others.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from geocalib import Calibration, Calibrator
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import ALONG_PITCH
from geocalib.lines.hypotheses import NOT_UPRIGHT, upright_traits
from geocalib.lines.refine import refine
from geocalib_lab.evaluation.datasets import Sample
from lines import Seen, seen_in

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
    parser.add_argument("sets", type=Path, nargs="+")
    parser.add_argument("--weights", default="lean")
    parser.add_argument("--at-most", type=int)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--off", type=float, default=12.0)
    options = parser.parse_args()
    calibrator, photos = Calibrator(options.weights), list[Photo]()
    for path in options.sets:
        name, _, seen = seen_in(path, calibrator, options.at_most, options.keep)
        photos += photos_of(seen)
        print(f"{name}: {len(seen)} photographs", flush=True)
    wrong = np.array([photo.error_deg > options.off for photo in photos], np.float64)
    traits = np.array([[1, *photo.traits] for photo in photos])
    far = np.mean([photo.sigmas > 5 for photo in photos])
    odds = held_out(photos, traits, wrong)
    print(f"{len(photos)} photographs of {len(owners(photos))} photographers use lines")
    print(f"off by more than {options.off:g} degrees: {wrong.mean():.1%}; by 5 sigmas: {far:.1%}")
    today = area(traits @ NOT_UPRIGHT, wrong)
    print(f"area under the curve: {area(odds, wrong):.2f}; with the constants of today {today:.2f}")
    print(f"NOT_UPRIGHT = {constants(traits, wrong)}")


def owners(photos: Sequence[Photo]) -> list[str]:
    return sorted({photo.owner for photo in photos})


def held_out(photos: Sequence[Photo], traits: Array, wrong: Array) -> Array:
    """The log odds (N,) of each photograph, by constants fitted to other photographers."""
    every = owners(photos)
    fold = np.array([every.index(photo.owner) % FOLDS for photo in photos])
    odds = np.zeros(len(photos))
    for number in range(FOLDS):
        own = fold == number
        odds[own] = traits[own] @ logistic(traits[~own], wrong[~own])
    return odds


def constants(traits: Array, wrong: Array) -> str:
    """As they are written in Python."""
    return f"np.array([{', '.join(f'{value:.2f}' for value in logistic(traits, wrong))}])"


def photos_of(seen: Sequence[Seen]) -> list[Photo]:
    """The photographs whose lines are used, and whose gravity is known."""
    photos = []
    for sample, _, by_card, segments in seen:
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
    owner, error = sample.image.name.split("__")[0], float(np.degrees(np.hypot(*off)))
    return Photo(owner, traits, error, sigmas)


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
