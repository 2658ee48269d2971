"""Options are checked, limits kept, and a search that begins in few cells ends where one in all
of them does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from geocalib.cameras import get_model
from geocalib.errors import ConfigError
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import Fields
from geocalib.solver import FitOptions, FitResult, Status, fit, lm, schedule
from geocalib.solver.lm import Solution
from geocalib.solver.objective import Problem
from geocalib.solver.state import State
from lenses import ALL_MODELS
from libraries import numpy_of
from views import random_cameras, random_gravity, see, with_noise, with_outliers

OPTIONS = FitOptions(confidence_scale=1e-3)
COUNT = 6


def noisy(model: str) -> Fields:
    """Of 64x64 pixels, with outliers."""
    camera = random_cameras(model, COUNT, seed=1, size=(64, 64), vfov_deg=(40, 90))
    fields = with_noise(see(camera, random_gravity(COUNT, seed=2, most_deg=30)), 3, seed=3)
    return numpy_of(with_outliers(fields, 0.2, 0.3, seed=4))


def in_all(
    monkeypatch: pytest.MonkeyPatch, fields: Fields, model: str, groups: list[int] | None = None
) -> FitResult:
    """The fit without a coarse level."""
    with monkeypatch.context() as patch:
        patch.setattr(schedule, "COARSE_CELLS", 64)
        return fit(fields, model, groups=groups, options=OPTIONS)


def sigmas_between(one: FitResult, two: FitResult) -> np.ndarray:
    """(B, P) how far two answers are from each other, in sigmas of the second."""
    basis = sphere.tangent_basis(two.gravity)
    turn = sphere.difference(two.gravity, one.gravity, basis)
    zoom = np.log(one.camera.f / two.camera.f)[:, None]
    bend = one.camera.distortion - two.camera.distortion
    variance = np.diagonal(two.covariance, axis1=1, axis2=2)
    return np.abs(np.concatenate([turn, zoom, bend], 1)) / np.sqrt(variance)


@pytest.mark.parametrize("model", ["pinhole", "simple_radial"])
def test_it_ends_where_all_cells_end(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    fields = noisy(model)
    found, wanted = fit(fields, model, options=OPTIONS), in_all(monkeypatch, fields, model)
    assert found.status == [Status.CONVERGED] * COUNT
    assert sigmas_between(found, wanted).max() < 0.02
    np.testing.assert_allclose(found.sigma.vfov_deg, wanted.sigma.vfov_deg, rtol=0.05)
    np.testing.assert_allclose(found.cost, wanted.cost, rtol=1e-3)


@pytest.mark.parametrize(("model", "damping"), [("pinhole", 0.01), ("simple_radial", 0.1)])
def test_without_distortion_the_first_step_is_hardly_damped(
    monkeypatch: pytest.MonkeyPatch, model: str, damping: float
) -> None:
    seen: list[float] = []

    def minimise(problem: Problem, start: State, most: int, damping: float, *rest: Any) -> Solution:
        seen.append(damping)
        return lm.minimise(problem, start, most, damping, *rest)

    monkeypatch.setattr(schedule, "minimise", minimise)
    fit(noisy(model), model, options=OPTIONS)
    assert seen[0] == pytest.approx(damping)


def test_with_a_shared_camera(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = noisy("pinhole")
    groups = [0, 0, 1, 1, 2, 2]
    found = fit(fields, groups=groups, options=OPTIONS)
    wanted = in_all(monkeypatch, fields, "pinhole", groups=groups)
    assert sigmas_between(found, wanted).max() < 0.02


def test_images_do_not_depend_on_their_neighbours() -> None:
    fields = noisy("pinhole")
    together = fit(fields, options=OPTIONS)
    for row in range(COUNT):
        alone = fit(fields[row : row + 1], options=OPTIONS)
        np.testing.assert_array_equal(alone.gravity[0], together.gravity[row])
        np.testing.assert_array_equal(alone.covariance[0], together.covariance[row])


def test_where_one_look_at_all_is_not_enough_more_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = noisy("pinhole")
    wanted = in_all(monkeypatch, fields, "pinhole")
    monkeypatch.setattr(schedule, "NEWTON_SIGMAS", 0.0)
    found = fit(fields, options=OPTIONS)
    assert found.status == [Status.CONVERGED] * COUNT
    assert sigmas_between(found, wanted).max() < 0.01


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"initial": "best"}, "trivial, heuristic, ransac"),
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
