"""A fit finds the camera that shows the field, and says so in the promised shapes. Options are
checked, limits kept, and a search that begins in few cells ends where one in all of them does.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch

from geocalib.cameras import MODELS, get_model
from geocalib.errors import CameraError, ConfigError, FieldError
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import Fields
from geocalib.solver import FitOptions, FitResult, Prior, Status, fit, optimum
from geocalib.solver.objective import Problem
from geocalib.solver.optimum import Solution
from geocalib.solver.state import State
from lenses import ALL_MODELS
from libraries import numpy_of
from views import (
    gravity_error_deg,
    random_cameras,
    random_gravity,
    ray_error_deg,
    see,
    see_by_projection,
    with_noise,
    with_outliers,
)

MODULE = import_module("geocalib.solver.fit")
"""Its name in the package is that of its function."""


EVERY_PIXEL = FitOptions(cells=None)
PERSPECTIVE = [name for name in ALL_MODELS if not MODELS[name].wide]
WIDE = [name for name in ALL_MODELS if MODELS[name].wide]


# Recovery ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("aspect", [1.0, 1.2])
@pytest.mark.parametrize("model", PERSPECTIVE)
def test_recovers_perspective_cameras(model: str, aspect: float) -> None:
    camera = random_cameras(model, 12, seed=1, aspect=aspect)
    gravity = random_gravity(12, seed=2)
    fields = see(camera, gravity, torch.float32)
    result = fit(fields, model, aspect=aspect, options=EVERY_PIXEL)
    assert result.status == [Status.CONVERGED] * 12
    assert gravity_error_deg(result.gravity, gravity).max() < 1e-3
    torch.testing.assert_close(result.camera.f.double(), camera.f, rtol=1e-5, atol=0)
    assert ray_error_deg(result.camera, camera).max() < 1e-3


@pytest.mark.parametrize("model", WIDE)
def test_recovers_wide_cameras(model: str) -> None:
    camera = random_cameras(model, 12, seed=3)
    gravity = random_gravity(12, seed=4)
    result = fit(see(camera, gravity), model, options=EVERY_PIXEL)
    assert result.status == [Status.CONVERGED] * 12
    assert gravity_error_deg(result.gravity, gravity).max() < 1e-3
    assert ray_error_deg(result.camera, camera).max() < 1e-3
    assert (result.vfov_deg - torch.rad2deg(camera.vfov)).abs().max() < 1e-2


@pytest.mark.parametrize("model", ALL_MODELS)
def test_no_bias_on_fields_of_the_projection_itself(model: str) -> None:
    # The oracle moves points up and projects them: it shares no code with the fitted field.
    camera = random_cameras(model, 8, seed=5, aspect=0.9)
    gravity = random_gravity(8, seed=6)
    result = fit(see_by_projection(camera, gravity), model, aspect=0.9, options=EVERY_PIXEL)
    assert (result.vfov_deg - torch.rad2deg(camera.vfov)).abs().max() < 0.01
    assert gravity_error_deg(result.gravity, gravity).max() < 1e-3
    assert ray_error_deg(result.camera, camera).max() < 1e-3


def test_outliers_of_full_confidence_barely_matter() -> None:
    camera = random_cameras("pinhole", 4, seed=7, vfov_deg=(40, 90))
    gravity = random_gravity(4, seed=8, most_deg=30)
    fields = see(camera, gravity)
    latitude = fields.latitude.clone()
    latitude[:, :, 10:20, 10:30] = 1.2
    spoiled = Fields(fields.up, latitude, fields.up_confidence, fields.latitude_confidence)
    robust = fit(spoiled, options=EVERY_PIXEL)
    plain = fit(spoiled, options=FitOptions(cells=None, huber=None))
    error = gravity_error_deg(robust.gravity, gravity)
    assert error.max() < 0.3
    assert bool((error < 0.3 * gravity_error_deg(plain.gravity, gravity)).all())


# Contract ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("model", ALL_MODELS)
def test_shapes_names_and_dtype(model: str, dtype: torch.dtype) -> None:
    B, D = 3, len(MODELS[model].parameters)
    camera = random_cameras(model, B, seed=1, size=(20, 16), vfov_deg=(60, 100))
    fields = with_noise(see(camera, random_gravity(B, seed=2, most_deg=20), dtype), 0.3, seed=3)
    result = fit(fields, model)
    P = 3 + D
    shapes = {
        (B,): [
            result.camera.f,
            result.camera.aspect,
            result.roll_deg,
            result.pitch_deg,
            result.vfov_deg,
            result.hfov_deg,
            result.sigma.roll_deg,
            result.sigma.pitch_deg,
            result.sigma.gravity_deg,
            result.sigma.vfov_deg,
            result.sigma.focal,
            result.cost,
            result.confidence_scale,
        ],
        (B, 2): [result.camera.c, result.camera.size, result.sigma.principal_point],
        (B, 3): [result.gravity],
        (B, D): [result.camera.distortion, result.sigma.distortion],
        (B, P, P): [result.covariance],
    }
    for shape, values in shapes.items():
        for value in values:
            assert value.shape == shape
            assert value.dtype == dtype
            assert bool(torch.isfinite(value).all())
            assert not value.is_inference()
    assert len(result) == len(result.status) == B
    assert result.iterations.shape == (B,)
    assert result.parameters == (
        *("roll direction", "pitch direction", "log f"),
        *MODELS[model].parameters,
    )
    torch.testing.assert_close(
        torch.linalg.vector_norm(result.gravity, dim=1), torch.ones(B, dtype=dtype)
    )


def test_angles_of_the_result_follow_the_conventions() -> None:
    camera = random_cameras("pinhole", 5, seed=1)
    gravity = random_gravity(5, seed=2)
    result = fit(see(camera, gravity))
    roll = torch.rad2deg(torch.atan2(gravity[:, 0], gravity[:, 1]))
    torch.testing.assert_close(result.roll_deg, roll, rtol=0, atol=1e-3)
    pitch = torch.rad2deg(-torch.asin(gravity[:, 2]))
    torch.testing.assert_close(result.pitch_deg, pitch, rtol=0, atol=1e-3)
    vfov = torch.rad2deg(2 * torch.atan(16 / camera.f))
    torch.testing.assert_close(result.vfov_deg, vfov, rtol=0, atol=1e-3)


@pytest.mark.parametrize("options", [EVERY_PIXEL, FitOptions()])
def test_images_of_different_sizes(options: FitOptions) -> None:
    sizes = [(48, 64), (90, 60), (100, 100)]
    parts, alone = [], []
    for seed, size in enumerate(sizes):
        camera = random_cameras("simple_radial", 2, seed=seed, size=size, vfov_deg=(40, 90))
        fields = with_noise(see(camera, random_gravity(2, seed=seed, most_deg=30)), 1, seed=seed)
        parts.append(fields)
        alone.append(fit(fields, "simple_radial", options=options))
    together = fit(parts, "simple_radial", options=options)
    assert together.camera.size.tolist() == [list(size) for size in sizes for _ in range(2)]
    for i, one in enumerate(alone):
        pair = slice(2 * i, 2 * i + 2)
        torch.testing.assert_close(together.camera.f[pair], one.camera.f, rtol=1e-7, atol=0)
        torch.testing.assert_close(together.gravity[pair], one.gravity, rtol=0, atol=1e-7)
        torch.testing.assert_close(together.covariance[pair], one.covariance, rtol=1e-4, atol=1e-12)


def test_twice_the_same_to_the_bit() -> None:
    camera = random_cameras("radial", 2, seed=1, size=(40, 36))
    fields = with_noise(see(camera, random_gravity(2, seed=2), torch.float32), 2, seed=3)
    for initial in ("trivial", "ransac"):
        options = FitOptions(initial=initial)
        first, second = (fit(fields, "radial", options=options) for _ in range(2))
        for one, other in (
            (first.gravity, second.gravity),
            (first.camera.f, second.camera.f),
            (first.camera.distortion, second.camera.distortion),
            (first.covariance, second.covariance),
        ):
            assert torch.equal(one, other)


# Failures stay where they are -------------------------------------------------------------------


def batch_with_faults() -> tuple[Fields, list[int]]:
    """Nine images, of which those not in the list cannot be used."""
    camera = random_cameras("simple_radial", 9, seed=1, size=(90, 80))
    fields = with_noise(see(camera, random_gravity(9, seed=2, most_deg=30)), 1, seed=3)
    up, latitude = fields.up.clone(), fields.latitude.clone()
    up_confidence = fields.up_confidence.clone()
    latitude_confidence = fields.latitude_confidence.clone()
    up[1, 0, 3, 4] = torch.nan
    latitude[2, 0, 5, 5] = torch.inf
    up_confidence[3], latitude_confidence[3] = 0, 0
    up_confidence[5, 7, 7] = -0.1
    latitude_confidence[7, 7, 7] = torch.nan
    return Fields(up, latitude, up_confidence, latitude_confidence), [0, 4, 6, 8]


EXPECTED_FAULTS = {
    1: Status.NOT_FINITE,
    2: Status.NOT_FINITE,
    3: Status.NO_CONFIDENCE,
    5: Status.NEGATIVE_CONFIDENCE,
    7: Status.NOT_FINITE,
}


@pytest.mark.parametrize("options", [EVERY_PIXEL, FitOptions()])
def test_a_bad_image_fails_alone(options: FitOptions) -> None:
    fields, good = batch_with_faults()
    result = fit(fields, "simple_radial", options=options)
    clean = fit(fields[good], "simple_radial", options=options)
    for image, status in EXPECTED_FAULTS.items():
        assert result.status[image] is status
        assert status.failed
        for value in (
            result.gravity,
            result.camera.f,
            result.camera.c,
            result.camera.distortion,
            result.covariance,
            result.vfov_deg,
            result.sigma.vfov_deg,
            result.cost,
        ):
            assert bool(torch.isnan(value[image]).all())
    assert [result.status[i] for i in good] == clean.status == [Status.CONVERGED] * 4
    torch.testing.assert_close(result.gravity[good], clean.gravity, rtol=0, atol=1e-9)
    torch.testing.assert_close(result.camera.f[good], clean.camera.f, rtol=1e-9, atol=0)
    torch.testing.assert_close(result.covariance[good], clean.covariance, rtol=1e-6, atol=1e-15)


def test_a_bad_image_does_not_disturb_its_group() -> None:
    camera = random_cameras("simple_radial", 1, seed=1, vfov_deg=(60, 80))
    gravity = random_gravity(4, seed=2, most_deg=30)
    fields = with_noise(see(camera[[0] * 4], gravity), 1, seed=3)
    up = fields.up.clone()
    up[2] = torch.nan
    spoiled = Fields(up, fields.latitude, fields.up_confidence, fields.latitude_confidence)
    result = fit(spoiled, "simple_radial", groups=[0, 0, 0, 0])
    clean = fit(fields[[0, 1, 3]], "simple_radial", groups=[0, 0, 0])
    assert result.status[2] is Status.NOT_FINITE
    assert bool(torch.isnan(result.camera.f[2]))
    for part in (0, 1, 3):
        assert result.status[part] is Status.CONVERGED
    torch.testing.assert_close(result.gravity[[0, 1, 3]], clean.gravity, rtol=0, atol=1e-8)
    torch.testing.assert_close(result.camera.f[[0, 1, 3]], clean.camera.f, rtol=1e-8, atol=0)
    torch.testing.assert_close(
        result.covariance[[0, 1, 3]], clean.covariance, rtol=1e-5, atol=1e-15
    )


def test_pixels_without_confidence_may_hold_anything() -> None:
    camera = random_cameras("pinhole", 2, seed=1, size=(100, 90))
    fields = with_noise(see(camera, random_gravity(2, seed=2, most_deg=30)), 1, seed=3)
    up, latitude = fields.up.clone(), fields.latitude.clone()
    up_confidence = fields.up_confidence.clone()
    latitude_confidence = fields.latitude_confidence.clone()
    # The sky has no up-vectors, the ground no latitudes, a corner neither.
    up_confidence[:, :30], latitude_confidence[:, 60:] = 0, 0
    up_confidence[:, 30:40, :40], latitude_confidence[:, 30:40, :40] = 0, 0
    expected = fit(Fields(up, latitude, up_confidence, latitude_confidence))
    up[:, :, :30], latitude[:, :, 60:] = torch.nan, torch.inf
    up[:, :, 30:40, :40], latitude[:, :, 30:40, :40] = torch.inf, torch.nan
    result = fit(Fields(up, latitude, up_confidence, latitude_confidence))
    assert result.status == expected.status == [Status.CONVERGED] * 2
    torch.testing.assert_close(result.gravity, expected.gravity, rtol=0, atol=1e-9)
    torch.testing.assert_close(result.camera.f, expected.camera.f, rtol=1e-9, atol=0)


@pytest.mark.parametrize(("options", "size"), [(EVERY_PIXEL, (40, 36)), (FitOptions(), (100, 90))])
@pytest.mark.parametrize("model", ["pinhole", "radial", "eucm"])
def test_answers_do_not_depend_on_batch_mates(
    model: str, options: FitOptions, size: tuple[int, int]
) -> None:
    camera = random_cameras(model, 5, seed=1, size=size, vfov_deg=(30, 110))
    fields = with_noise(see(camera, random_gravity(5, seed=2)), 1, seed=3)
    # One of them is full of strays, which the others must not notice.
    noisy = with_noise(fields[3:4], 15, seed=4)
    fields = Fields.concatenate([fields[:3], noisy, fields[4:]])
    together = fit(fields, model, options=options)
    for i in (0, 3):
        alone = fit(fields[[i]], model, options=options)
        assert alone.status == together.status[i : i + 1]
        torch.testing.assert_close(together.gravity[[i]], alone.gravity, rtol=0, atol=1e-6)
        torch.testing.assert_close(together.camera.f[[i]], alone.camera.f, rtol=1e-6, atol=0)
        torch.testing.assert_close(
            together.camera.distortion[[i]], alone.camera.distortion, rtol=1e-5, atol=1e-6
        )


# What is wrong with the call --------------------------------------------------------------------


def level(batch: int = 2, dtype: torch.dtype = torch.float32) -> Fields:
    camera = random_cameras("pinhole", batch, seed=0, size=(12, 10))
    return see(camera, random_gravity(batch, seed=0, most_deg=10), dtype)


def test_unknown_models_are_listed() -> None:
    with pytest.raises(CameraError, match="pinhole") as caught:
        fit(level(), "pinhoel")
    assert all(name in str(caught.value) for name in MODELS)


def test_wrong_fields() -> None:
    fields = level()
    with pytest.raises(FieldError, match="non-empty list"):
        fit([])
    with pytest.raises(FieldError, match="takes Fields"):
        fit(fields.up)  # type: ignore[arg-type]
    with pytest.raises(FieldError, match="same dtype"):
        fit([fields, level(dtype=torch.float64)])
    half = fields.to(torch.float16)
    with pytest.raises(FieldError, match=r"float32 or float64, got torch\.float16"):
        fit(half)


@pytest.mark.parametrize("aspect", [0.0, -1.0, [1.0, 1.0, 1.0], [[1.0, 1.0]]])
def test_wrong_aspects(aspect: object) -> None:
    with pytest.raises(FieldError, match="aspect must be a positive number"):
        fit(level(), aspect=aspect)  # type: ignore[arg-type]


@pytest.mark.parametrize("model", ALL_MODELS)
def test_recovers_pixels_that_are_not_square(model: str) -> None:
    count = 5
    camera = random_cameras(model, count, seed=9, size=(32, 32))
    stretch = torch.linspace(0.8, 1.25, count, dtype=torch.float64)
    camera = replace(camera, aspect=stretch)
    gravity = random_gravity(count, seed=10)
    fields = see(camera, gravity)
    result = fit(fields, model, aspect=Prior(1.0, 1.0), options=EVERY_PIXEL)
    assert result.parameters[-1] == "log aspect"
    torch.testing.assert_close(result.camera.aspect, stretch, rtol=1e-4, atol=0)
    assert gravity_error_deg(result.gravity, gravity).max() < 0.01
    assert ray_error_deg(result.camera, camera).max() < 0.01
    held = fit(fields[[0, -1]], model, aspect=Prior(1.0, 1e-6), options=EVERY_PIXEL)
    assert (held.camera.aspect - 1).abs().max() < 1e-3


def test_sigma_of_a_free_aspect() -> None:
    """It tells how far answers scatter, and a prior alone is repeated."""
    camera = random_cameras("pinhole", 60, seed=1, size=(24, 24), vfov_deg=(70, 70), aspect=1.1)
    gravity = random_gravity(1, seed=2, most_deg=20).expand(60, 3)
    fields = with_noise(see(camera, gravity), 1.0, seed=3)
    result = fit(fields, aspect=Prior(1.0, 1.0), options=EVERY_PIXEL)
    sigma = result.covariance[:, -1, -1].sqrt()
    score = (result.camera.aspect / 1.1).log() / sigma
    assert 0.75 < score.square().mean().sqrt() < 1.3
    unheard = fit(fields, aspect=Prior(1.2, 0.06), options=FitOptions(confidence_scale=1e12))
    torch.testing.assert_close(
        unheard.covariance[:, -1, -1].sqrt(), torch.full((60,), 0.05).double(), rtol=1e-3, atol=0
    )


def test_aspect_per_image() -> None:
    square, stretched = (
        random_cameras("pinhole", 1, seed=1, vfov_deg=(50, 60), aspect=a) for a in (1.0, 1.3)
    )
    gravity = random_gravity(2, seed=2, most_deg=20)
    fields = Fields.concatenate([see(square, gravity[:1]), see(stretched, gravity[1:])])
    result = fit(fields, aspect=[1.0, 1.3])
    assert result.camera.aspect.tolist() == [1.0, 1.3]
    assert gravity_error_deg(result.gravity, gravity).max() < 0.01
    torch.testing.assert_close(
        result.camera.f, torch.cat([square.f, stretched.f]), rtol=1e-4, atol=0
    )


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
        patch.setattr(MODULE, "COARSE_CELLS", 64)
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
        return optimum.minimise(problem, start, most, damping, *rest)

    monkeypatch.setattr(MODULE, "minimise", minimise)
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
    monkeypatch.setattr(MODULE, "NEWTON_SIGMAS", 0.0)
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
