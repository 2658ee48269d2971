"""Any calibration that there can be, for the tests of results and formats."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from calibrations import gravity
from geocalib.cameras import MODELS, Camera
from geocalib.result.calibration import Calibration, Failure, Outcome
from geocalib.result.uncertainty import Trust, Uncertainty
from lenses import ALL_MODELS


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
        cameras=Camera.create(
            model,
            f=np.array(draw(st.floats(1, 1e5)), np.float64),
            size=draw(st.tuples(st.integers(1, 20000), st.integers(1, 20000))),
            distortion=[draw(st.floats(*bounds)) for bounds in model.bounds],
            c=draw(st.tuples(st.floats(-1e4, 1e4), st.floats(-1e4, 1e4))),
            aspect=draw(st.floats(0.2, 5) | st.just(1.0)),
        ),
        gravity=gravity(draw(st.floats(-3.1, 3.1)), draw(st.floats(-1.5, 1.5))),
        sigma=Uncertainty(
            *sigmas, tuple(draw(sigma) for _ in model.parameters), (draw(sigma), draw(sigma))
        ),
        covariance=np.array(covariance, np.float64).reshape(len(names), len(names)),
        parameters=tuple(names),
        status=draw(st.just("converged") | st.text(min_size=1, max_size=12)),
        warnings=tuple(draw(st.lists(st.text(max_size=12), max_size=2))),
        trust=draw(st.builds(Trust, st.booleans(), st.booleans(), st.booleans())),
    )


def outcomes() -> st.SearchStrategy[Outcome]:
    """Any calibration or failure."""
    pixels = st.none() | st.integers(1, 20000)
    text = st.text(min_size=1, max_size=12)
    return calibrations() | st.builds(Failure, st.none() | text, pixels, pixels, text)
