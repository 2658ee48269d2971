"""Sigmas corrected by what the errors of a network on pictures with known truth say.

The covariance of a fit knows how sharp its optimum is, and nothing of how networks err: sigmas of a
sure fit are too small, and tilted or long views are worse than their residuals show. How far an
answer tends to be off follows from six numbers that every fit has; a line in their logarithms was
fitted to the errors of one set of weights, and holds for no other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from geocalib.arrays import diagonal
from geocalib.cameras.base import CameraModel
from geocalib.cameras.camera import Camera
from geocalib.cameras.legacy import LegacySimpleRadial, without_legacy
from geocalib.cameras.radial import SimpleRadial
from geocalib.geometry.fields import ALONG_PITCH, ALONG_ROLL, LOG_F
from geocalib.records import dataclass
from geocalib.solver.known import Given
from geocalib.solver.result import FitResult

Floats = npt.NDArray[np.float64]

FREE = (ALONG_ROLL, ALONG_PITCH, LOG_F)
"""The parameters of the fits that are corrected."""
TRAITS = ("roll sigma", "pitch sigma", "focal sigma", "focal", "looking up", "leaning")
LEAST_FACTOR = 0.35
"""No fit is much surer than it says: some pictures are unlike all that was learnt from."""
BLIND = (math.radians(6), math.radians(13), 1.0)
"""Sigmas of ``FREE`` where nothing is seen: how people hold cameras, and any focal length."""
LEAST = 1e-300
"""Smallest variance, so that it has a logarithm."""


@dataclass(frozen=True)
class LearntSigmas:
    """Factors on the sigmas of ``FREE``: exponentials of lines in the traits of a fit."""

    low: Floats
    """(6,) the least of each trait among the pictures learnt from; below, it is clipped."""
    high: Floats
    roll: Floats
    """(7,) the line's constant, and its slopes."""
    pitch: Floats
    focal: Floats

    def applied(self, result: FitResult, seen: Sequence[bool]) -> FitResult:
        """Multiply the sigmas of fits, in NumPy, by these factors; fits of other parameters than
        ``FREE`` stay as they are.

        seen: of each of B images, whether there was anything to see. If not, the network's
        confidence means nothing, and the variances of ``BLIND`` are added.
        """
        if result.parameters != FREE:
            return result
        factor = self.factors(traits(result.camera, result.gravity, result.covariance))
        scaled = factor[:, :, None] * result.covariance * factor[:, None]
        blind = result.covariance + np.diag(np.square(BLIND))
        return replace(result, covariance=np.where(np.array(seen)[:, None, None], scaled, blind))

    def factors(self, values: Floats) -> Floats:
        """(B, 3) of ``FREE``, given traits (B, 6)."""
        seen = np.clip(values, self.low, self.high)
        lines = np.stack([self.roll, self.pitch, self.focal], 1)
        # No matrix product: its last bits depend on how many rows there are.
        raised = lines[0] + (seen[:, :, None] * lines[1:]).sum(1)
        return np.maximum(np.exp(raised), LEAST_FACTOR)

    def to_dict(self) -> dict[str, list[float]]:
        """The constants as plain lists by name."""
        return {name: getattr(self, name).tolist() for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> LearntSigmas:
        """What ``to_dict`` made; ValueError or KeyError if it is not."""
        sizes = {"low": 0, "high": 0, "roll": 1, "pitch": 1, "focal": 1}
        arrays = {name: np.asarray(values[name], np.float64) for name in sizes}
        for name, more in sizes.items():
            if arrays[name].shape != (len(TRAITS) + more,) or not np.isfinite(arrays[name]).all():
                raise ValueError(f"{name} must be {len(TRAITS) + more} numbers")
        return cls(**arrays)


def traits(camera: Camera, gravity: Floats, covariance: Floats) -> Floats:
    """(B, 6), as ``TRAITS`` names them, of cameras and gravity (B, 3) with the covariance (B, 3, 3)
    of ``FREE``: logarithms of the sigmas of gravity along roll and along pitch and of log f, and of
    the focal length by the diagonal; how far the camera looks up or down, and leans to a side, as
    sines."""
    variance = np.maximum(diagonal(covariance), LEAST)
    # The width is in pixels that may not be square, and f in those of the height.
    focal = np.log(camera.f / np.hypot(camera.size[:, 0] / camera.aspect, camera.size[:, 1]))
    away = np.abs(gravity)
    columns = [0.5 * np.log(variance), np.stack([focal, away[:, 2], away[:, 0]], 1)]
    return np.concatenate(columns, 1)


@dataclass(frozen=True)
class FieldErrors:
    """What the card of a network's weights says of its errors, and the file of learnt sigmas."""

    confidence_scale: float | None = None
    """s^2, as ``FitOptions`` takes it."""
    sigma_scale: Mapping[str, float] = field(default_factory=dict)
    """Factors on the sigmas, as ``FitResult.with_sigmas_scaled`` takes them."""
    legacy_up_field: bool = False
    """Whether distortion bends up-vectors as ``cameras.legacy`` has it."""
    learnt: LearntSigmas | None = None
    """The correction of each single photo, where the weights have one."""

    def model_to_fit(self, model: CameraModel) -> CameraModel:
        """Return the model to fit to the fields where this one is wanted."""
        legacy = self.legacy_up_field and isinstance(model, SimpleRadial)
        return LegacySimpleRadial() if legacy else model

    def before_correction(self, given: Given) -> Given:
        """Return what a fit has to be given whose sigmas will be corrected."""
        return given.before_scaling(**self.sigma_scale)

    def corrected(self, result: FitResult) -> FitResult:
        """Return a fit with calibrated sigmas, of a camera model that users know."""
        if isinstance(result.camera.model, LegacySimpleRadial):
            result = replace(result, camera=without_legacy(result.camera))
        return result.with_sigmas_scaled(**self.sigma_scale)

    def with_learnt_sigmas(self, corrected: FitResult, seen: Sequence[bool]) -> FitResult:
        """Correct the sigmas of each image of a corrected fit of single images, of which nothing
        else is known. seen: whether there was anything to see in it."""
        return corrected if self.learnt is None else self.learnt.applied(corrected, seen)
