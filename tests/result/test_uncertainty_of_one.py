"""One sigma of everything people ask for, against draws from the covariance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibrations import one
from geocalib.cameras import Camera
from geocalib.geometry import gravity as sphere
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.result.uncertainty import Uncertainty

NAMES = ("roll direction", "pitch direction", "log f", "k1", "cx", "cy", "log aspect")
DRAWS = 4000


def test_spread_of_draws() -> None:
    """Draws of the parameters, read as people read them, scatter as the sigmas say."""
    generator = np.random.default_rng(0)
    mix = generator.standard_normal((7, 7))
    scale = np.array([2e-3, 3e-3, 4e-3, 2e-3, 2.0, 3.0, 5e-3], np.float64)
    root = scale[:, None] * mix / np.linalg.norm(mix, axis=1, keepdims=True)
    camera = one("simple_radial", distortion=[-0.1], aspect=1.2).cameras
    angles = np.array([0.3, 0.7], np.float64)
    gravity = from_roll_pitch(angles[0], angles[1])
    sigma = Uncertainty.of(camera, gravity, root @ root.T, NAMES)

    steps = generator.standard_normal((DRAWS, 7)) @ root.T
    basis = sphere.tangent_basis(gravity[None])[0]
    drawn = gravity + steps[:, :2] @ basis.T
    drawn = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    roll, pitch = sphere.to_roll_pitch(drawn)
    moved = Camera(
        camera.model,
        camera.f * np.exp(steps[:, 2]),
        camera.c + steps[:, 4:6],
        camera.distortion + steps[:, 3:4],
        np.broadcast_to(camera.size, (DRAWS, 2)),
        camera.aspect * np.exp(steps[:, 6]),
    )
    spread = {
        "roll_deg": np.rad2deg(roll),
        "pitch_deg": np.rad2deg(pitch),
        "vfov_deg": np.rad2deg(moved.vfov),
        "hfov_deg": np.rad2deg(moved.hfov),
        "focal": moved.f,
        "aspect": moved.aspect,
    }
    for name, values in spread.items():
        assert getattr(sigma, name) == pytest.approx(values.std().item(), rel=0.05), name
    assert sigma.distortion[0] == pytest.approx(steps[:, 3].std().item(), rel=0.05)
    assert sigma.principal_point == pytest.approx(tuple(steps[:, 4:6].std(0).tolist()), rel=0.05)
    off = np.sqrt(np.linalg.eigvalsh(np.cov(steps[:, :2].T))[-1])
    assert sigma.gravity_deg == pytest.approx(math.degrees(off.item()), rel=0.05)


def test_what_is_held_fixed_is_certain() -> None:
    known = one("radial", distortion=[-0.1, 0.01])
    sigma = Uncertainty.of(known.cameras, known.gravity, np.zeros((0, 0)), ())
    assert sigma == Uncertainty(0, 0, 0, 0, 0, 0, 0, (0, 0), (0, 0))


def test_nobody_knows() -> None:
    sigma = Uncertainty.unknown(one("radial", distortion=[-0.1, 0.01]).cameras)
    assert len(sigma.distortion) == 2
    numbers = (sigma.roll_deg, sigma.hfov_deg, sigma.focal, sigma.aspect, *sigma.distortion)
    assert all(math.isnan(number) for number in (*numbers, *sigma.principal_point))


def test_straight_down_roll_may_be_any_angle() -> None:
    generator = np.random.default_rng(0)
    down, scale = np.array([0.0, 1e-4, 1.0]) / math.hypot(1e-4, 1.0), math.radians(1)
    sigma = Uncertainty.of(one().cameras, down, scale**2 * np.eye(2), NAMES[:2])
    basis = sphere.tangent_basis(down[None])[0]
    drawn = down + scale * generator.standard_normal((DRAWS, 2)) @ basis.T
    roll, _ = sphere.to_roll_pitch(drawn)
    assert sigma.roll_deg == pytest.approx(np.rad2deg(roll).std(), rel=0.05)
    assert sigma.pitch_deg == pytest.approx(1, rel=1e-6)
