"""Answers beside the truth: the errors of a set of photographs, and parts of it to compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from geocalib.errors import ConfigError
from geocalib.nets.weights.card import WeightCard
from geocalib.result.calibration import Calibration, Outcome
from geocalib_lab.evaluation.datasets import Sample
from geocalib_lab.evaluation.metrics import (
    gravity_errors,
    k1_hat_error,
    median,
    pixel_distortion_error,
    recall,
    summarise,
    vfov_error,
)

ANGLES = ("roll", "pitch", "gravity", "vfov")
"""Kinds of errors in degrees."""

K1_MODELS = ("simple_radial", "radial")
"""Camera models whose first parameter is the k1 of the truth."""

K1_ERRORS = ("k1", "k1_hat", "pixels")
"""Errors of distortion, each also with the suffix ``OF_NONE``."""

OF_NONE = "_of_none"
"""Ends the names of the errors of a method that always answers k1 = 0."""

PIXELS = (0.5, 1.0, 3.0, 5.0)
"""Thresholds of the recall of pixels."""

Split = Literal["magnification", "scene", "vfov"]
"""What a set can be split by."""

Classes = Mapping[str, tuple[float, float]]

MAGNIFICATIONS: Classes = {"below 1": (0.0, 1.0), "1 to 1.5": (1.0, 1.5), "above 1.5": (1.5, 1e9)}
"""Classes of magnification, for pictures cut out of panoramas."""

VFOVS: Classes = {
    "below 30°": (0.0, 30.0),
    "30 to 50°": (30.0, 50.0),
    "50 to 70°": (50.0, 70.0),
    "70 to 90°": (70.0, 90.0),
    "above 90°": (90.0, 180.0),
}

Array = NDArray[np.float64]
Chosen = NDArray[np.bool_]
"""(N,) some of N photographs."""


@dataclass(frozen=True)
class Report:
    """N photographs, the answers, and how wrong they are."""

    name: str
    """The name of the set."""
    card: WeightCard
    """The card of the weights."""
    camera_model: str
    """The fitted camera model."""
    samples: tuple[Sample, ...]
    outcomes: tuple[Outcome, ...]
    errors: Mapping[str, Array]
    """(N,) each: roll, pitch, gravity and vfov in degrees; with a model that has the truth's k1
    also k1, k1_hat, its error in units of the image height, and pixels, by how many it misplaces
    a point on average, and these for the answer k1 = 0 (k1_of_none, ...). Infinite: no answer;
    NaN: no truth."""
    seconds: float | None = None
    """Processor time per calibrated photograph; None if all answers came from an earlier run."""

    @classmethod
    def create(
        cls,
        name: str,
        card: WeightCard,
        camera_model: str,
        samples: Sequence[Sample],
        outcomes: Sequence[Outcome],
    ) -> Report:
        """With the errors of the outcomes, one for each sample."""
        rows = [measure(s, o, camera_model) for s, o in zip(samples, outcomes, strict=True)]
        errors = {kind: np.array([row[kind] for row in rows]) for kind in rows[0]}
        return cls(name, card, camera_model, tuple(samples), tuple(outcomes), errors)

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def failed(self) -> int:
        """How many photographs have no answer."""
        return sum(not isinstance(outcome, Calibration) for outcome in self.outcomes)

    def about(self, samples: Sequence[Sample]) -> Report:
        """The same answers, for some of the photographs alone, in their order."""
        found = {sample.image: o for sample, o in zip(self.samples, self.outcomes, strict=True)}
        outcomes = [found[sample.image] for sample in samples]
        return Report.create(self.name, self.card, self.camera_model, samples, outcomes)

    def known(self, kind: str, among: Chosen | None = None) -> Array:
        """The errors of one kind where there is a truth; none if the kind was not measured."""
        values = self.errors.get(kind, np.empty(0))
        if among is not None and len(values):
            values = values[among]
        return values[~np.isnan(values)]

    def vfov_bias_deg(self) -> float:
        """Median of found minus true field of view: positive if it is found too wide."""
        shifts = [
            outcome.vfov_deg - sample.vfov_deg
            for sample, outcome in zip(self.samples, self.outcomes, strict=True)
            if isinstance(outcome, Calibration) and sample.vfov_deg is not None
        ]
        return float(np.median(shifts)) if shifts else float("nan")

    def summary(self, among: Chosen | None = None) -> dict[str, float]:
        """Medians and AUC (``metrics.summarise``) of all angles, or of those among some (N,).

        With distortion, also the medians of k1, k1_hat and pixels, and the recall of pixels at
        0.5, 1, 3 and 5 (pixels_recall0.5, ...).
        """
        kinds = {kind: self.known(kind, among) for kind in ANGLES}
        summary = summarise({kind: values for kind, values in kinds.items() if len(values)})
        for suffix in ("", OF_NONE):
            for kind in K1_ERRORS:
                if len(values := self.known(kind + suffix, among)):
                    summary[f"{kind}{suffix}_median"] = median(values)
            if len(values := self.known(f"pixels{suffix}", among)):
                for threshold, share in zip(PIXELS, recall(values, PIXELS), strict=True):
                    summary[f"pixels{suffix}_recall{threshold:g}"] = share
        return summary

    def magnifications(self) -> Array:
        """(N,) of what the network sees, not of the picture, which is larger; NaN: unknown."""
        return np.array(
            [
                np.nan
                if sample.magnification is None
                else sample.magnification * self.card.short_side / min(sample.width, sample.height)
                for sample in self.samples
            ]
        )

    def split(self, by: Split) -> dict[str, Chosen]:
        """Which (N,) of the photographs are in each class that there is any of.

        Classes of scenes are the words of the table; where a table tells nothing there are none.
        """
        if by == "scene":
            scenes = np.array([sample.scene or "" for sample in self.samples])
            return {str(scene): scenes == scene for scene in np.unique(scenes) if scene}
        if by == "magnification":
            return _classes(self.magnifications(), MAGNIFICATIONS)
        truth = [np.nan if s.vfov_deg is None else s.vfov_deg for s in self.samples]
        return _classes(np.array(truth), VFOVS)


def _classes(values: Array, classes: Classes) -> dict[str, Chosen]:
    found = {name: (values >= low) & (values < high) for name, (low, high) in classes.items()}
    return {name: chosen for name, chosen in found.items() if chosen.any()}


def measure(sample: Sample, outcome: Outcome, camera_model: str) -> dict[str, float]:
    """The errors of one answer, as in ``Report.errors``."""
    kinds = list(ANGLES)
    if camera_model in K1_MODELS:
        kinds += [kind + suffix for kind in K1_ERRORS for suffix in ("", OF_NONE)]
    errors = dict.fromkeys(kinds, np.nan)
    answer = outcome if isinstance(outcome, Calibration) else None
    if sample.gravity is not None:
        found = np.full(3, np.nan) if answer is None else answer.gravity
        angles = gravity_errors(found[None], sample.gravity[None])
        errors |= {kind: value.item() for kind, value in angles.items()}
    truth = sample.camera
    if truth is None:
        return errors
    errors["vfov"] = np.inf if answer is None else vfov_error(answer.cameras, truth).item()
    if camera_model in K1_MODELS and sample.k1 is not None:
        # All grow in proportion to what k1 is off by, so one look at the pixels will do.
        off_by_one = np.array([sample.k1 + 1.0])
        k1_hat = k1_hat_error(off_by_one, truth).item()
        pixels = pixel_distortion_error(off_by_one, truth).item()
        off = np.inf if answer is None else abs(answer.distortion[0] - sample.k1)
        for kind, of_one in zip(K1_ERRORS, (1.0, k1_hat, pixels), strict=True):
            errors[kind] = off * of_one
            errors[kind + OF_NONE] = abs(sample.k1) * of_one
    return errors


@dataclass(frozen=True)
class Leak:
    """How the field of view moves when nothing but the sharpness of a photograph changes."""

    median_shift_deg: float
    """Median of blurred minus sharp, degrees."""
    median_change_deg: float
    """Median of its absolute value, degrees."""
    within_sigma: float
    """Share of the photographs where it moves by no more than the sigma of the sharp one."""


def leak(sharp: Report, soft: Report) -> Leak:
    """Compare two reports of the same photographs, the second one blurred."""
    pairs = [
        (before, after)
        for before, after in zip(sharp.outcomes, soft.outcomes, strict=True)
        if isinstance(before, Calibration) and isinstance(after, Calibration)
    ]
    if not pairs:
        raise ConfigError(f"{sharp.name}: no photograph has an answer both sharp and blurred")
    shift = np.array([after.vfov_deg - before.vfov_deg for before, after in pairs])
    sigma = np.array([before.sigma.vfov_deg for before, _ in pairs])
    return Leak(
        float(np.median(shift)),
        float(np.median(np.abs(shift))),
        float(np.mean(np.abs(shift) <= sigma)),
    )
