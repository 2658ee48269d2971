"""Calibrations for the tests of results and formats: ordinary ones, and any there can be."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from geocalib.arrays import Array
from geocalib.cameras import MODELS, Camera
from geocalib.geometry import gravity as sphere
from geocalib.result.calibration import Calibration, Failure, Outcome
from geocalib.result.uncertainty import Uncertainty
from samples import ALL_MODELS, PARAMETERS

SIZE = (640, 480)

FAILURE = Failure("broken.jpg", None, None, "broken.jpg: the file ends too early")


def one(
    model: str = "simple_radial",
    image: str | None = "photo.jpg",
    roll_deg: float = 5.0,
    pitch_deg: float = -10.0,
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
        camera=Camera.create(model, **given | {"f": np.array(given["f"], np.float64)}),
        gravity=_gravity(math.radians(roll_deg), math.radians(pitch_deg)),
        sigma=Uncertainty(
            0.3, 0.4, 0.45, 1.2, 1.5, 12.5, 0.0, (0.01,) * len(MODELS[model].parameters), (0.0, 0.0)
        ),
        covariance=root @ root.T,
        parameters=free,
        status="converged",
    )


def several() -> list[Calibration]:
    """Images in two folders, of three sizes, two of them of one camera."""
    first = one(image="left/a.jpg")
    return [
        first,
        replace(first, image="left/b.jpg", gravity=_gravity(0.2, 0.1)),
        one(image="right/a.jpg", size=(480, 640), c=(240, 320)),
    ]


@st.composite
def calibrations(draw: st.DrawFn) -> Calibration:
    """Any calibration: every double that there can be, and NaN where it is allowed."""
    model = MODELS[draw(st.sampled_from(ALL_MODELS))]
    number = st.floats(-1e3, 1e3)
    sigma = st.floats(0, 1e3) | st.just(math.nan)
    sigmas = [draw(sigma) for _ in range(7)]
    names = draw(st.lists(st.text(max_size=8), max_size=4))
    covariance = draw(st.lists(sigma | number, min_size=len(names) ** 2, max_size=len(names) ** 2))
    return Calibration(
        image=draw(st.none() | st.text(min_size=1, max_size=12)),
        camera=Camera.create(
            model,
            f=np.array(draw(st.floats(1, 1e5)), np.float64),
            size=draw(st.tuples(st.integers(1, 20000), st.integers(1, 20000))),
            distortion=[draw(st.floats(*bounds)) for bounds in model.bounds],
            c=draw(st.tuples(st.floats(-1e4, 1e4), st.floats(-1e4, 1e4))),
            aspect=draw(st.floats(0.2, 5) | st.just(1.0)),
        ),
        gravity=_gravity(draw(st.floats(-3.1, 3.1)), draw(st.floats(-1.5, 1.5))),
        sigma=Uncertainty(
            *sigmas, tuple(draw(sigma) for _ in model.parameters), (draw(sigma), draw(sigma))
        ),
        covariance=np.array(covariance, np.float64).reshape(len(names), len(names)),
        parameters=tuple(names),
        status=draw(st.text(min_size=1, max_size=12)),
        warnings=tuple(draw(st.lists(st.text(max_size=12), max_size=2))),
    )


def outcomes() -> st.SearchStrategy[Outcome]:
    """Any calibration or failure."""
    pixels = st.none() | st.integers(1, 20000)
    text = st.text(min_size=1, max_size=12)
    return calibrations() | st.builds(Failure, st.none() | text, pixels, pixels, text)


def _gravity(roll: float, pitch: float) -> Array:
    angles = np.array([roll, pitch], np.float64)
    return sphere.from_roll_pitch(angles[0], angles[1])
