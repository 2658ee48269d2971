"""Ordinary calibrations, for the tests of what is done with them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from geocalib.arrays import Array
from geocalib.cameras import MODELS, Camera
from geocalib.geometry import gravity as sphere
from geocalib.result.calibration import Calibration, Failure
from geocalib.result.uncertainty import Uncertainty
from lenses import PARAMETERS

SIZE = (640, 480)

FAILURE = Failure("broken.jpg", None, None, "broken.jpg: the file ends too early")


def one(
    model: str = "simple_radial",
    image: str | None = "photo.jpg",
    roll_deg: float = 5.0,
    pitch_deg: float = -10.0,
    orientation: int = 1,
    **camera: Any,
) -> Calibration:
    """An ordinary calibration; keywords change its camera."""
    given = {
        "f": 200.0 if MODELS[model].wide else 500.0,
        "size": SIZE,
        "distortion": PARAMETERS[model][0],
        "c": (310.3, 251.7),
    } | camera
    free = ("roll direction", "pitch direction", "log f", *MODELS[model].parameters)
    root = np.linspace(0.001, 0.02, len(free) ** 2)
    root = root.reshape(len(free), len(free))
    return Calibration(
        image=image,
        cameras=Camera.create(model, **given | {"f": np.array(given["f"], np.float64)}),
        gravity=gravity(math.radians(roll_deg), math.radians(pitch_deg)),
        sigma=Uncertainty(
            0.3, 0.4, 0.45, 1.2, 1.5, 12.5, 0.0, (0.01,) * len(MODELS[model].parameters), (0.0, 0.0)
        ),
        covariance=root @ root.T,
        parameters=free,
        status="converged",
        orientation=orientation,
    )


def several() -> list[Calibration]:
    """Images in two folders, of three sizes, two of them of one camera."""
    first = one(image="left/a.jpg")
    return [
        first,
        replace(first, image="left/b.jpg", gravity=gravity(0.2, 0.1)),
        one(image="right/a.jpg", size=(480, 640), c=(240, 320)),
    ]


def gravity(roll: float, pitch: float) -> Array:
    """(3,) down, of angles in radians."""
    angles = np.array([roll, pitch], np.float64)
    return sphere.from_roll_pitch(angles[0], angles[1])
