"""Runs a calibrator over photographs with ground truth, and measures its errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from geocalib.calibration import Calibration, Outcome
from geocalib.errors import ConfigError, GeoCalibError
from geocalib.evaluation.datasets import Sample
from geocalib.evaluation.metrics import (
    gravity_errors,
    k1_hat_error,
    median,
    pixel_distortion_error,
    summarise,
    vfov_error,
)
from geocalib.imaging import ImageSource, read_photo
from geocalib.nets.weights import WeightCard

CHUNK = 16
"""Photographs handed to the calibrator at once."""

ANGLES = ("roll", "pitch", "gravity", "vfov")
"""Errors in degrees."""

K1_MODELS = ("simple_radial", "radial")
"""Camera models whose first parameter is the k1 of the truth."""

MAGNIFICATIONS = {"below 1": (0.0, 1.0), "1 to 1.5": (1.0, 1.5), "above 1.5": (1.5, np.inf)}
"""Classes of pictures cut out of panoramas."""

Array = NDArray[np.float64]


class Calibrates(Protocol):
    """What is evaluated: a ``Calibrator``, or anything that answers as one does."""

    @property
    def card(self) -> WeightCard: ...

    def calibrate(
        self, images: Sequence[ImageSource], camera_model: str = ...
    ) -> list[Outcome]: ...


@dataclass(frozen=True)
class Report:
    """N photographs, the answers, and how wrong they are."""

    name: str
    """Of the set."""
    card: WeightCard
    """Of the weights that answered."""
    camera_model: str
    """What was fitted."""
    samples: tuple[Sample, ...]
    outcomes: tuple[Outcome, ...]
    errors: Mapping[str, Array]
    """(N,) each: roll, pitch, gravity and vfov in degrees; with a model that has the truth's k1
    also k1_hat, its error in units of the image height, and pixels, by how many it misplaces a
    point on average, and both for the answer k1 = 0 (k1_hat_of_none, pixels_of_none). Infinite:
    no answer; NaN: no truth."""

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def failed(self) -> int:
        """Photographs without an answer."""
        return sum(not isinstance(outcome, Calibration) for outcome in self.outcomes)

    def known(self, kind: str, among: NDArray[np.bool_] | None = None) -> Array:
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

    def summary(self, among: NDArray[np.bool_] | None = None) -> dict[str, float]:
        """Medians and AUC (``metrics.summarise``) of all angles, or of those among some (N,).

        With distortion, also those of pixels (thresholds in pixels) and the median of k1_hat.
        """
        kinds = {kind: self.known(kind, among) for kind in (*ANGLES, "pixels", "pixels_of_none")}
        summary = summarise({kind: values for kind, values in kinds.items() if len(values)})
        for kind in ("k1_hat", "k1_hat_of_none"):
            if len(values := self.known(kind, among)):
                summary[f"{kind}_median"] = median(values)
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

    def by_magnification(self) -> dict[str, NDArray[np.bool_]]:
        """Which (N,) of the photographs are in each class that there is any of."""
        values = self.magnifications()
        classes = {
            name: (values >= low) & (values < high) for name, (low, high) in MAGNIFICATIONS.items()
        }
        return {name: chosen for name, chosen in classes.items() if chosen.any()}


def evaluate(
    calibrator: Calibrates,
    samples: Sequence[Sample],
    camera_model: str | None = None,
    *,
    name: str = "photographs",
    blur: int | None = None,
    done: Callable[[], None] = lambda: None,
) -> Report:
    """Calibrate photographs and compare the answers with the truth.

    camera_model: by default simple_radial if the truth of any of them has distortion, else
    pinhole. blur: first shrink each photograph until its shorter side has so many pixels, and
    enlarge it again. done: called after each photograph.
    """
    if not samples:
        raise ConfigError("there is nothing to evaluate; give at least one photograph")
    if blur is not None and blur < 1:
        raise ConfigError(f"blur is {blur}; give the pixels to keep across the shorter side")
    if camera_model is None:
        camera_model = "simple_radial" if any(sample.k1 for sample in samples) else "pinhole"
    outcomes: list[Outcome] = []
    for start in range(0, len(samples), CHUNK):
        chunk = [sample.image for sample in samples[start : start + CHUNK]]
        images = chunk if blur is None else [_blurred_or_broken(path, blur) for path in chunk]
        for outcome in calibrator.calibrate(images, camera_model):
            outcomes.append(outcome)
            done()
    rows = [
        measure(sample, outcome, camera_model)
        for sample, outcome in zip(samples, outcomes, strict=True)
    ]
    errors = {kind: np.array([row[kind] for row in rows]) for kind in rows[0]}
    return Report(name, calibrator.card, camera_model, tuple(samples), tuple(outcomes), errors)


def measure(sample: Sample, outcome: Outcome, camera_model: str) -> dict[str, float]:
    """The errors of one answer, as in ``Report.errors``."""
    kinds = list(ANGLES)
    if camera_model in K1_MODELS:
        kinds += ["k1_hat", "pixels", "k1_hat_of_none", "pixels_of_none"]
    errors = dict.fromkeys(kinds, np.nan)
    answer = outcome if isinstance(outcome, Calibration) else None
    if sample.gravity is not None:
        found = torch.full_like(sample.gravity, torch.nan) if answer is None else answer.gravity
        angles = gravity_errors(found[None], sample.gravity[None])
        errors |= {kind: value.item() for kind, value in angles.items()}
    truth = sample.camera
    if truth is None:
        return errors
    errors["vfov"] = np.inf if answer is None else vfov_error(answer.camera, truth).item()
    if camera_model in K1_MODELS and sample.k1 is not None:
        # Both grow in proportion to what k1 is off by, so one look at the pixels will do.
        off_by_one = torch.tensor([sample.k1 + 1.0], dtype=torch.float64)
        k1_hat = k1_hat_error(off_by_one, truth).item()
        pixels = pixel_distortion_error(off_by_one, truth).item()
        off = np.inf if answer is None else abs(answer.distortion[0] - sample.k1)
        for suffix, size in (("", off), ("_of_none", abs(sample.k1))):
            errors[f"k1_hat{suffix}"] = size * k1_hat
            errors[f"pixels{suffix}"] = size * pixels
    return errors


def blurred(source: ImageSource, short_side: int) -> Image.Image:
    """A photograph with the detail of one that has so many pixels across its shorter side.

    One that has no more is as it was. The size does not change.
    """
    picture = Image.fromarray(read_photo(source, short_side=None).pixels)
    scale = short_side / min(picture.size)
    if scale >= 1:
        return picture
    small = tuple(max(1, round(scale * side)) for side in picture.size)
    shrunk = picture.resize((small[0], small[1]), Image.Resampling.LANCZOS)
    return shrunk.resize(picture.size, Image.Resampling.BICUBIC)


def _blurred_or_broken(source: ImageSource, short_side: int) -> ImageSource:
    """What cannot be read stays as it is: the calibrator says why."""
    try:
        return blurred(source, short_side)
    except GeoCalibError:
        return source


@dataclass(frozen=True)
class Leak:
    """How the field of view moves when nothing but the sharpness of a photograph changes."""

    median_shift_deg: float
    """Blurred minus sharp."""
    median_change_deg: float
    """Of its size."""
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
