"""Calibrations that no fit has made: guesses, and the truth."""

from __future__ import annotations

import numpy as np

from geocalib.arrays import Array, to_numpy
from geocalib.cameras import Camera
from geocalib.result.calibration import Calibration
from geocalib.result.uncertainty import Uncertainty
from geocalib.solver import Status
from geocalib_lab.evaluation.datasets import Sample


def without_sigmas(image: str | None, camera: Camera, gravity: Array) -> Calibration:
    """The calibration of a camera (a batch of 1) and gravity (3,), with unknown sigmas."""
    return Calibration(
        image=image,
        cameras=camera.map(_double),
        gravity=_double(gravity),
        sigma=Uncertainty.unknown(camera),
        covariance=np.zeros((0, 0)),
        parameters=(),
        status=str(Status.CONVERGED),
    )


def truth_of(sample: Sample, size: tuple[int, int]) -> Calibration | None:
    """The truth as an answer for the picture of (width, height); None where it is not whole."""
    camera, gravity = sample.camera, sample.gravity
    if camera is None or gravity is None:
        return None
    return without_sigmas(str(sample.image), camera.resize(*size), gravity)


def _double(value: Array) -> Array:
    return np.asarray(to_numpy(value), np.float64)
