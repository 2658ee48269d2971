"""Standard deviations are corrected as one: in the covariance and in what people read."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from geocalib import Calibration
from geocalib.solver import FitResult, Prior, Status, fit
from lenses import ALL_MODELS
from views import random_cameras, random_gravity, see, with_noise


@pytest.fixture(scope="module")
def result() -> FitResult:
    cameras = random_cameras("radial", 3, seed=0, size=(48, 40))
    fields = with_noise(see(cameras, random_gravity(3, seed=1)), 1.0, seed=2)
    fields.up[1] = torch.nan
    return fit(fields, "radial", principal_point=Prior([24.0, 20.0], 2.0))


def test_factors(result: FitResult) -> None:
    scaled = result.with_sigmas_scaled(gravity=2, focal=3, distortion=5)
    # The principal point, last, has no factor.
    factor = torch.tensor([2, 2, 3, 5, 5, 1, 1], dtype=torch.float64)
    torch.testing.assert_close(
        scaled.covariance, factor[:, None] * result.covariance * factor, equal_nan=True
    )
    for name, by in (
        ("roll_deg", 2),
        ("pitch_deg", 2),
        ("gravity_deg", 2),
        ("vfov_deg", 3),
        ("focal", 3),
        ("distortion", 5),
        ("principal_point", 1),
    ):
        before, after = getattr(result.sigma, name), getattr(scaled.sigma, name)
        torch.testing.assert_close(after, by * before, equal_nan=True)
        assert bool((after[[0, 2]] > 0).all())


def test_sigmas_are_those_of_the_covariance(result: FitResult) -> None:
    """Closed form: d(vFoV) = -sin(vFoV) d(log f), roll is stretched by 1 / cos(pitch)."""
    scaled = result.with_sigmas_scaled(gravity=0.5, focal=1.7, distortion=0.2)
    deviation = scaled.covariance.diagonal(dim1=1, dim2=2).sqrt()[[0, 2]]
    sigma, camera = scaled.sigma, scaled.camera[[0, 2]]
    close = torch.testing.assert_close
    close(sigma.focal[[0, 2]], camera.f * deviation[:, 2])
    close(sigma.vfov_deg[[0, 2]], (camera.vfov.sin() * deviation[:, 2]).rad2deg())
    close(sigma.distortion[[0, 2]], deviation[:, 3:5])
    close(sigma.pitch_deg[[0, 2]], deviation[:, 1].rad2deg())
    cosine = scaled.pitch_deg[[0, 2]].deg2rad().cos()
    close(sigma.roll_deg[[0, 2]], (deviation[:, 0] / cosine).rad2deg())


@pytest.mark.parametrize("model", ALL_MODELS)
def test_people_read_the_same_of_a_fit_and_of_its_calibration(model: str) -> None:
    """Scaled or not, whatever the field of view of the model depends on."""
    cameras = random_cameras(model, 2, seed=0, size=(48, 40))
    fields = with_noise(see(cameras, random_gravity(2, seed=1)), 1.0, seed=2)
    loose = {"principal_point": Prior([24.0, 20.0], 2.0), "aspect": Prior(1.0, 0.05)}
    result = fit(fields, model, **loose)
    for found in (result, result.with_sigmas_scaled(gravity=2, focal=3, distortion=0.2)):
        read = Calibration.from_fit(found, 1, found.camera[1]).sigma
        for name, value in vars(read).items():
            expected = getattr(found.sigma, name)[1].tolist()
            assert expected == pytest.approx(value, rel=1e-6), name
            assert np.all(np.array(value) > 0)


def test_the_answer_itself_stays(result: FitResult) -> None:
    scaled = result.with_sigmas_scaled(gravity=2, focal=3, distortion=5)
    assert scaled.camera is result.camera
    assert scaled.gravity is result.gravity
    assert scaled.status == [Status.CONVERGED, Status.NOT_FINITE, Status.CONVERGED]
    assert result.with_sigmas_scaled().covariance[[0, 2]].equal(result.covariance[[0, 2]])


def test_what_is_held_fixed_stays_certain() -> None:
    fields = see(random_cameras("pinhole", 1, seed=0), random_gravity(1, seed=1))
    held = fit(fields, "pinhole", focal=80.0, gravity=[0.0, 1.0, 0.0])
    scaled = held.with_sigmas_scaled(gravity=2, focal=3, distortion=5)
    assert scaled.covariance.shape == (1, 0, 0)
    assert scaled.sigma.focal.item() == scaled.sigma.gravity_deg.item() == 0
