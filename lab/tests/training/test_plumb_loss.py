"""Straight lines are straight with the right camera, and bent by what a wrong one leaves."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch

from geocalib.cameras.camera import Camera
from geocalib_lab.training.plumb import REACH, SHARES, bow


def cameras(*k1: float) -> Camera:
    bent = torch.tensor(k1, dtype=torch.float64)[:, None]
    f = torch.full((len(k1),), 60.0, dtype=torch.float64)
    return Camera.create("simple_radial", f=f, size=(64, 48), distortion=bent)


def told(camera: Camera, f: float = 1.0, k1: float = 0.0) -> torch.Tensor:
    return bow(camera, camera.f.log() + np.log(f), camera.distortion[:, 0] + k1)


def test_the_true_camera_straightens() -> None:
    assert told(cameras(-0.3, -0.05, 0.0, 0.2)).max() < 1e-7


def test_the_more_wrong_the_more_bent() -> None:
    a_little, more = told(cameras(0.1), k1=0.02), told(cameras(0.1), k1=0.06)
    assert 0 < 2.5 * a_little < more < 3.5 * a_little


def test_a_focal_length_alone_bends_nothing_where_there_is_no_distortion() -> None:
    assert told(cameras(0.0), f=1.3).max() < 1e-12
    assert told(cameras(0.2), f=1.3).min() > 1e-4
    # Undistorted by as much as before, a longer lens straightens as well.
    assert told(cameras(0.2), f=1.3, k1=0.2 * (1.3**2 - 1)).max() < 1e-7


def test_bows_are_those_of_opencv() -> None:
    camera, wrong = cameras(-0.2), -0.11
    K = camera.K[0].numpy()
    edge, ends = 24.0 * SHARES[1], 32.0 * REACH
    seen = np.array([[32 - ends, 24 - edge], [32 + ends, 24 - edge]])[:, None]
    first, last = cv2.undistortPoints(seen, K, np.array([-0.2, 0, 0, 0]))[:, 0]
    world = np.array([[*(0.5 * (first + last)), 1.0]])
    middle, _ = cv2.projectPoints(world, np.zeros(3), np.zeros(3), K, np.array([-0.2, 0, 0, 0]))
    three = np.concatenate([seen, middle])
    flat = cv2.undistortPoints(three, K, np.array([wrong, 0, 0, 0]))[:, 0]
    expected = abs(flat[2, 1] - 0.5 * (flat[0, 1] + flat[1, 1])) * 60 / 48
    lines = torch.tensor([wrong], dtype=torch.float64)
    mean = bow(camera, camera.f.log(), lines)
    # The upper border is one of the outer lines, which are bent the most.
    assert 0.25 * expected < mean < expected


@pytest.mark.parametrize("k1", [-0.2, 0.15])
def test_its_derivatives(k1: float) -> None:
    camera = cameras(k1)
    unknowns = torch.tensor([[np.log(65.0)], [k1 + 0.07]], requires_grad=True, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: bow(camera, x[0], x[1]), unknowns)


def test_pixels_that_are_not_square() -> None:
    square = cameras(0.1)
    wide = square.resize(96, 48)
    unknown = square.f.log(), square.distortion[:, 0] + 0.05
    torch.testing.assert_close(bow(square, *unknown), bow(wide, *unknown))
