"""One sigma of everything people ask for, against draws from the covariance."""

from __future__ import annotations

import math

import pytest
import torch

from calibrations import one
from geocalib.cameras import Camera
from geocalib.geometry import gravity as sphere
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.result.uncertainty import Uncertainty

NAMES = ("roll direction", "pitch direction", "log f", "k1", "cx", "cy", "log aspect")
DRAWS = 4000


def test_spread_of_draws() -> None:
    """Draws of the parameters, read as people read them, scatter as the sigmas say."""
    generator = torch.Generator().manual_seed(0)
    mix = torch.randn(7, 7, dtype=torch.float64, generator=generator)
    scale = torch.tensor([2e-3, 3e-3, 4e-3, 2e-3, 2.0, 3.0, 5e-3], dtype=torch.float64)
    root = scale[:, None] * mix / mix.norm(dim=1, keepdim=True)
    camera = one("simple_radial", distortion=[-0.1], aspect=1.2).camera
    angles = torch.tensor([0.3, 0.7], dtype=torch.float64)
    gravity = from_roll_pitch(angles[0], angles[1])
    sigma = Uncertainty.of(camera, gravity, root @ root.T, NAMES)

    steps = torch.randn(DRAWS, 7, dtype=torch.float64, generator=generator) @ root.T
    basis = sphere.tangent_basis(gravity[None])[0]
    drawn = torch.nn.functional.normalize(gravity + steps[:, :2] @ basis.T, dim=1)
    roll, pitch = sphere.to_roll_pitch(drawn)
    moved = Camera(
        camera.model,
        camera.f * steps[:, 2].exp(),
        camera.c + steps[:, 4:6],
        camera.distortion + steps[:, 3:4],
        camera.size.expand(DRAWS, 2),
        camera.aspect * steps[:, 6].exp(),
    )
    spread = {
        "roll_deg": roll.rad2deg(),
        "pitch_deg": pitch.rad2deg(),
        "vfov_deg": moved.vfov.rad2deg(),
        "hfov_deg": moved.hfov.rad2deg(),
        "focal": moved.f,
        "aspect": moved.aspect,
    }
    for name, values in spread.items():
        assert getattr(sigma, name) == pytest.approx(values.std().item(), rel=0.05), name
    assert sigma.distortion[0] == pytest.approx(steps[:, 3].std().item(), rel=0.05)
    assert sigma.principal_point == pytest.approx(tuple(steps[:, 4:6].std(0).tolist()), rel=0.05)
    off = torch.linalg.eigvalsh(steps[:, :2].T.cov())[-1].sqrt()
    assert sigma.gravity_deg == pytest.approx(math.degrees(off.item()), rel=0.05)


def test_what_is_held_fixed_is_certain() -> None:
    known = one("radial", distortion=[-0.1, 0.01])
    sigma = Uncertainty.of(known.camera, known.gravity, torch.zeros(0, 0).double(), ())
    assert sigma == Uncertainty(0, 0, 0, 0, 0, 0, 0, (0, 0), (0, 0))


def test_nobody_knows() -> None:
    sigma = Uncertainty.unknown(one("radial", distortion=[-0.1, 0.01]).camera)
    assert len(sigma.distortion) == 2
    numbers = (sigma.roll_deg, sigma.hfov_deg, sigma.focal, sigma.aspect, *sigma.distortion)
    assert all(math.isnan(number) for number in (*numbers, *sigma.principal_point))
