"""Options: what makes no sense is refused by name, and limits are kept."""

from __future__ import annotations

import pytest

from geocalib import FitOptions, fit
from geocalib.cameras import get_model
from geocalib.errors import ConfigError
from lenses import ALL_MODELS
from views import random_cameras, random_gravity, see


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"initial": "best"}, "trivial, heuristic, ransac"),
        ({"gradient": "autograd"}, "none, unrolled, implicit"),
        ({"cells": 0}, "cells must be positive, got 0"),
        ({"huber": -1.0}, "huber must be positive"),
        ({"max_iterations": 0}, "max_iterations must be positive"),
        ({"confidence_scale": float("nan")}, "confidence_scale must be positive"),
    ],
)
def test_wrong_options(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        FitOptions(**wrong)


@pytest.mark.parametrize("limit", [1, 3, 6])
@pytest.mark.parametrize("name", ALL_MODELS)
def test_no_more_iterations_than_allowed(name: str, limit: int) -> None:
    vfov_deg = (70, 120) if get_model(name).wide else (30, 90)
    camera = random_cameras(name, 2, seed=0, size=(24, 24), vfov_deg=vfov_deg)
    fields = see(camera, random_gravity(2, seed=0))
    result = fit(fields, name, options=FitOptions(max_iterations=limit))
    assert int(result.iterations.max()) <= limit
