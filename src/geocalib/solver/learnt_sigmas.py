"""By how much the sigmas of a photo are too small, as photos with truth have told.

The covariance of a fit knows how sharp its optimum is, and nothing of how networks err: those of a
sure fit are too small, and tilted or long views are worse than their residuals show. How far an
answer tends to be off follows from six numbers that every fit has; a straight line in these was
fitted to the errors of one set of weights (``geocalib_lab.training.sigmas``), and speaks for no
other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from geocalib.arrays import diagonal
from geocalib.cameras.camera import Camera
from geocalib.geometry.fields import ALONG_PITCH, ALONG_ROLL, LOG_F
from geocalib.records import dataclass
from geocalib.solver.result import FitResult

Floats = npt.NDArray[np.float64]

FREE = (ALONG_ROLL, ALONG_PITCH, LOG_F)
"""What a fit finds that this speaks of."""
TRAITS = ("roll sigma", "pitch sigma", "focal sigma", "focal", "looking up", "leaning")
LEAST_FACTOR = 0.35
"""No fit is much surer than it says: some pictures are unlike all that was learnt from."""
BLIND = (math.radians(6), math.radians(13), 1.0)
"""Sigmas of ``FREE`` where nothing is seen: how people hold cameras, and any focal length."""
LEAST = 1e-300
"""A variance, so that it has a logarithm."""


@dataclass(frozen=True)
class LearntSigmas:
    """Factors on the sigmas of ``FREE``: exponentials of lines in the traits of a fit."""

    low: Floats
    """(6,) where each trait is cut off: beyond, nothing was seen."""
    high: Floats
    roll: Floats
    """(7,) the line's constant, and its slopes."""
    pitch: Floats
    focal: Floats

    def applied(self, result: FitResult, seen: Sequence[bool]) -> FitResult:
        """Fits, in NumPy, with these factors on their sigmas; those that found something else than
        gravity and focal length stay as they are. seen: of each of B, whether there was anything to
        see; if not, a network is as sure of nothing as of anything, and ``BLIND`` is added."""
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
        """Plain lists by name."""
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
