"""Pooling: fewer observations that say the same."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from geocalib.geometry.fields import Fields, pixel_grid
from geocalib.solver import FitOptions, fit
from geocalib.solver.observations import concatenate, observe
from views import (
    gravity_error_deg,
    random_cameras,
    random_gravity,
    see,
    with_noise,
    with_outliers,
)


def linear_field(size: tuple[int, int], slope: float = 0.003) -> tuple[Fields, Tensor]:
    """A latitude that is linear in the pixel position, with random confidences, and the
    coefficients of x, y, 1."""
    width, height = size
    generator = torch.Generator().manual_seed(0)
    grid = pixel_grid(width, height, torch.zeros(1, dtype=torch.float64))
    plane = torch.tensor([slope, -1.7 * slope, 0.1], dtype=torch.float64)
    latitude = grid @ plane[:2] + plane[2]
    up = torch.zeros(1, 2, height, width, dtype=torch.float64)
    up[:, 1] = -1
    confidences = torch.rand(2, 1, height, width, generator=generator, dtype=torch.float64)
    return Fields(up, latitude[None, None], *confidences), plane


@pytest.mark.parametrize("size", [(40, 40), (45, 38), (33, 50)])
def test_exact_to_first_order(size: tuple[int, int]) -> None:
    fields, plane = linear_field(size)
    pooled = observe(fields, 10)
    assert pooled.count < 0.2 * size[0] * size[1]
    expected = pooled.latitude_places() @ plane[:2] + plane[2]
    torch.testing.assert_close(torch.asin(pooled.sin_latitude), expected, rtol=0, atol=1e-12)
    # Confidences are kept in sum. (Up-vectors count a little less away from the horizon.)
    torch.testing.assert_close(
        pooled.latitude_weight.sum(1), fields.latitude_confidence.sum((1, 2))
    )
    every = observe(fields, None)
    torch.testing.assert_close(pooled.up_weight.sum(1), every.up_weight.sum(1), rtol=1e-4, atol=0)
    torch.testing.assert_close(pooled.up_x, torch.zeros_like(pooled.up_x))
    torch.testing.assert_close(pooled.up_y, -torch.ones_like(pooled.up_y))


def test_a_cell_lies_at_the_weighted_mean_of_its_pixels() -> None:
    fields, _ = linear_field((8, 8))
    pooled = observe(fields, 2)
    weight = fields.up_confidence[0, :4, 4:]
    grid = pixel_grid(8, 8, weight)[:4, 4:]
    expected = (weight[..., None] * grid).sum((0, 1)) / weight.sum()
    torch.testing.assert_close(pooled.up_places()[0, 1], expected)


def test_every_pixel_without_pooling() -> None:
    fields, _ = linear_field((7, 5))
    every = observe(fields, None)
    assert every.count == 35
    assert torch.equal(every.up_places()[0], pixel_grid(7, 5, fields.up).reshape(-1, 2))
    assert torch.equal(every.up_places(), every.latitude_places())
    # Too small to pool: the same.
    assert observe(fields, 5).count == 35


@pytest.mark.parametrize("size", [(192, 192), (200, 150), (120, 246)])
def test_pooled_fit_equals_the_fit_of_every_pixel(size: tuple[int, int]) -> None:
    camera = random_cameras("simple_radial", 4, seed=1, size=size)
    gravity = random_gravity(4, seed=2)
    fields = see(camera, gravity, torch.float32)
    pooled = fit(fields, "simple_radial")
    every = fit(fields, "simple_radial", options=FitOptions(cells=None))
    assert gravity_error_deg(pooled.gravity, every.gravity).max() < 0.02
    torch.testing.assert_close(pooled.camera.f, every.camera.f, rtol=1e-3, atol=0)


def test_pooled_fit_is_as_sure_as_that_of_every_pixel() -> None:
    camera = random_cameras("pinhole", 4, seed=1, size=(160, 160), vfov_deg=(40, 90))
    fields = with_noise(see(camera, random_gravity(4, seed=2, most_deg=30)), 3, seed=3)
    # Plain squares: with the Huber cost the median of pixels beats the mean of cells a little.
    pooled = fit(fields, options=FitOptions(huber=None))
    every = fit(fields, options=FitOptions(cells=None, huber=None))
    for name in ("roll_deg", "pitch_deg", "vfov_deg"):
        torch.testing.assert_close(
            getattr(pooled.sigma, name), getattr(every.sigma, name), rtol=0.15, atol=0
        )


def test_stray_latitudes_of_low_confidence_barely_move_a_cell() -> None:
    fields, _ = linear_field((40, 40), slope=0.0)
    latitude = fields.latitude.clone()
    latitude_confidence = torch.ones_like(fields.latitude_confidence)
    latitude[:, :, 1::4, 2::4] = 1.3
    latitude_confidence[:, 1::4, 2::4] = 0.05
    stray = Fields(fields.up, latitude, fields.up_confidence, latitude_confidence)
    pooled = observe(stray, 10)
    moved = torch.asin(pooled.sin_latitude) - 0.1
    # A plain mean would move by 0.05 / 15.05 * 1.2 = 4e-3.
    assert moved.abs().max() < 4e-4


def test_pooling_survives_outliers() -> None:
    camera = random_cameras("pinhole", 4, seed=1, size=(160, 160), vfov_deg=(40, 90))
    gravity = random_gravity(4, seed=2, most_deg=30)
    fields = with_outliers(with_noise(see(camera, gravity), 1, seed=3), 0.3, 0.05, seed=4)
    result = fit(fields)
    assert gravity_error_deg(result.gravity, gravity).max() < 0.2
    assert (result.vfov_deg - torch.rad2deg(camera.vfov)).abs().max() < 0.5


def test_cells_without_confidence_carry_no_weight() -> None:
    fields, plane = linear_field((40, 40))
    up_confidence = fields.up_confidence.clone()
    latitude_confidence = fields.latitude_confidence.clone()
    up_confidence[:, :20], latitude_confidence[:, :, 13:22] = 0, 0
    pooled = observe(Fields(fields.up, fields.latitude, up_confidence, latitude_confidence), 10)
    for value in vars(pooled).values():
        assert bool(torch.isfinite(value).all())
    assert int((pooled.up_weight == 0).sum()) == 5 * 10
    assert int((pooled.latitude_weight == 0).sum()) == 10
    used = pooled.latitude_weight > 0
    expected = (pooled.latitude_places() @ plane[:2] + plane[2])[used]
    torch.testing.assert_close(torch.asin(pooled.sin_latitude)[used], expected, rtol=0, atol=1e-12)


def test_up_vectors_near_the_zenith_count_less() -> None:
    # A camera that looks straight up, nearly.
    camera = random_cameras("pinhole", 1, seed=0, size=(41, 41), vfov_deg=(60, 60))
    gravity = torch.tensor([[0.0, math.sin(0.01), -math.cos(0.01)]], dtype=torch.float64)
    every = observe(see(camera, gravity), None)
    weight = every.up_weight.reshape(41, 41)
    assert weight[20, 20] < 0.1
    assert weight[0, 0] > 0.9
    assert every.latitude_weight.min() == 1


def test_batches_of_different_sizes_are_padded_without_weight() -> None:
    small, large = observe(linear_field((8, 6))[0], None), observe(linear_field((10, 9))[0], None)
    both = concatenate([small, large])
    assert len(both) == 2
    assert both.count == 90
    assert torch.equal(both.up_weight[0, :48], small.up_weight[0])
    assert float(both.up_weight[0, 48:].abs().sum()) == 0
    assert float(both.latitude_weight[0, 48:].abs().sum()) == 0
    assert torch.equal(both.latitude_places()[0, :48], small.latitude_places()[0])
    assert torch.equal(both.sin_latitude[1], large.sin_latitude[0])
