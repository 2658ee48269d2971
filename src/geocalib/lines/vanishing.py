"""Lines alone: three vanishing points at right angles by random sampling (``sampling``), without a
network.

The classical way, and the baseline that the network and its refinement are held against. It knows
no more than that cameras are held upright more often than not, and what focal lengths are usual.
"""

from __future__ import annotations

import math

import numpy as np

from geocalib.cameras import Camera
from geocalib.cameras.base import CameraModel
from geocalib.geometry.conventions import TRIVIAL_FOCAL
from geocalib.geometry.fields import ALONG_PITCH, ALONG_ROLL, LOG_F
from geocalib.geometry.segments import Segments
from geocalib.lines.refine import FEWEST, refined_alone
from geocalib.result.calibration import Calibration
from geocalib.result.uncertainty import Uncertainty
from geocalib.solver import Status

TOO_FEW = "too few straight lines to tell the camera from; let the network look (lines auto)"

GRAVITY_SIGMA = math.radians(30.0)
LOG_FOCAL_SIGMA = 0.7
DISTORTION_SIGMA = 0.1
"""One sigma of what is believed beforehand."""


def calibrate_by_lines(
    segments: Segments, size: tuple[int, int], model: CameraModel, image: str | None = None
) -> Calibration | None:
    """The camera of an image of (width, height) from its segments; None if they tell nothing."""
    if len(segments) < FEWEST:
        return None
    return refined_alone(_vague(size, model, image), segments)


def _vague(size: tuple[int, int], model: CameraModel, image: str | None) -> Calibration:
    """Return what is believed of any photo, before it is seen."""
    camera = Camera.create(model, TRIVIAL_FOCAL * max(size), size)
    names = (ALONG_ROLL, ALONG_PITCH, LOG_F, *model.parameters)
    sigmas = [GRAVITY_SIGMA] * 2 + [LOG_FOCAL_SIGMA] + [DISTORTION_SIGMA] * len(model.parameters)
    covariance = np.diag(np.square(sigmas))
    gravity = np.array([0.0, 1.0, 0.0])
    sigma = Uncertainty.of(camera, gravity, covariance, names)
    return Calibration(image, camera, gravity, sigma, covariance, names, str(Status.CONVERGED))
