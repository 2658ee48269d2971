"""Metrics: areas by hand, angles by construction, pixel distances by OpenCV."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from geocalib.cameras import Camera
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import pixel_grid
from geocalib_lab.evaluation.metrics import (
    auc,
    gravity_errors,
    k1_hat_error,
    median,
    pixel_distortion_error,
    summarise,
    vfov_error,
)


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([0.2, 0.9, 0.0], (100, 100, 100)),
        ([20.0, 30.0], (0, 0, 0)),
        # Flat at 1/2 up to 1, rising to 1 at 3, flat: 0.5 + 1.5 + 2 up to 5.
        ([0.5, 3.0], (50, 80, 90)),
        # An error of exactly 1 counts as none.
        ([1.0, math.inf], (50, 50, 50)),
        # Flat at 0 up to 1, rising to 1/2 at 5: 1 up to 5; then to 1 at 9 and flat: 3 + 1 more.
        ([5.0, 9.0], (0, 20, 50)),
        ([math.nan, 0.0], (50, 50, 50)),
    ],
)
def test_auc_by_hand(errors: list[float], expected: tuple[float, ...]) -> None:
    assert auc(errors) == pytest.approx(expected)


@given(st.lists(st.floats(0, 40), min_size=1, max_size=30))
def test_auc_lies_between_the_floor_and_the_recall(errors: list[float]) -> None:
    values = np.array(errors)
    one, five, ten = auc(errors)
    assert one == pytest.approx(100 * (values <= 1).mean())
    assert one - 1e-9 <= five <= 100 * (values <= 5).mean() + 1e-9
    assert five - 1e-9 <= ten <= 100 * (values <= 10).mean() + 1e-9


def test_auc_matches_a_fine_sum_under_the_polygon() -> None:
    errors = np.random.default_rng(0).gamma(2, 2, 200)
    above = np.sort(errors[errors > 1])
    floor = (errors <= 1).mean()
    x = np.concatenate([[0, 1], above, [99]])
    y = np.concatenate([[floor, floor], (np.arange(len(above)) + 1) / 200 + floor, [1]])
    at = (np.arange(200_000) + 0.5) / 200_000 * 5
    # Up to the threshold the polygon ends at the last error below it, and is flat from there.
    last = above[above <= 5].max()
    height = np.interp(np.minimum(at, last), x, y)
    assert auc(errors, (5,))[0] == pytest.approx(100 * height.mean(), abs=1e-3)


def test_median() -> None:
    assert median([3, 1, 2]) == 2
    assert median([1, 2, 4, math.inf]) == 3
    assert median([1, math.inf, math.nan]) == math.inf
    assert math.isnan(median([]))
    assert all(math.isnan(area) for area in auc([]))


def test_summary_names_every_number() -> None:
    summary = summarise({"roll": [0.5, 3.0]})
    assert summary == {
        "roll_median": 1.75,
        "roll_auc1": pytest.approx(50),
        "roll_auc5": pytest.approx(80),
        "roll_auc10": pytest.approx(90),
    }


def test_gravity_errors_are_those_of_the_angles() -> None:
    roll = torch.deg2rad(torch.tensor([10.0, 179.0, 0.0]))
    pitch = torch.deg2rad(torch.tensor([5.0, 0.0, 30.0]))
    other_roll = torch.deg2rad(torch.tensor([12.0, -179.0, 0.0]))
    other_pitch = torch.deg2rad(torch.tensor([5.0, 0.0, 27.0]))
    errors = gravity_errors(
        sphere.from_roll_pitch(roll, pitch), sphere.from_roll_pitch(other_roll, other_pitch)
    )
    assert errors["roll"].tolist() == pytest.approx([2, 2, 0], abs=1e-4)
    assert errors["pitch"].tolist() == pytest.approx([0, 0, 3], abs=1e-4)
    assert errors["gravity"].tolist() == pytest.approx(
        [2 * math.cos(math.radians(5)), 2, 3], abs=1e-3
    )


def test_failures_are_infinitely_wrong() -> None:
    nothing = torch.full((1, 3), torch.nan)
    level = torch.tensor([[0.0, 1.0, 0.0]])
    assert all(bool(torch.isinf(e).all()) for e in gravity_errors(nothing, level).values())
    truth = Camera.create("simple_radial", 100.0, (100, 80), [0.1], dtype=torch.float32)
    failed = Camera.create("simple_radial", torch.tensor(torch.nan), (100, 80), [torch.nan])
    assert torch.isinf(vfov_error(failed, truth)).all()
    assert torch.isinf(k1_hat_error(failed.distortion[:, 0], truth)).all()
    assert torch.isinf(pixel_distortion_error(failed.distortion[:, 0], truth)).all()


def test_vfov_and_k1_hat() -> None:
    truth = Camera.create("simple_radial", 50.0, (120, 100), [-0.1], dtype=torch.float32)
    found = Camera.create("pinhole", 50 * math.sqrt(3), (120, 100), dtype=torch.float32)
    assert float(vfov_error(found, truth)) == pytest.approx(30, abs=1e-4)
    assert float(k1_hat_error(torch.tensor([0.05]), truth)) == pytest.approx(0.15 * 4)
    # A pinhole camera is one with k1 = 0.
    assert float(k1_hat_error(torch.tensor([0.05]), found)) == pytest.approx(0.05 / 0.75)


@pytest.mark.parametrize(("enlarged", "tolerance"), [(1, 1e-6), (6, 1e-3)])
@pytest.mark.parametrize("k1", [-0.2, 0.0, 0.1])
def test_pixel_distortion_matches_opencv(k1: float, enlarged: int, tolerance: float) -> None:
    width, height, f = 64 * enlarged, 48 * enlarged, 60.0 * enlarged
    truth = Camera.create("simple_radial", f, (width, height), [-0.08], dtype=torch.float64)
    pixels = pixel_grid(width, height, truth.f).reshape(1, -1, 2)
    rays = truth.unproject(pixels)[0][0].numpy()
    K = np.array([[f, 0, width / 2], [0, f, height / 2], [0, 0, 1]])
    landed = [
        cv2.projectPoints(rays, np.zeros(3), np.zeros(3), K, np.array([k, 0, 0, 0, 0]))[0][:, 0]
        for k in (-0.08, k1)
    ]
    expected = np.linalg.norm(landed[0] - landed[1], axis=1).mean()
    assert float(pixel_distortion_error(torch.tensor([k1]), truth)) == pytest.approx(
        expected, rel=tolerance, abs=1e-9
    )
