"""Where a fit starts, and that it does not matter."""

from __future__ import annotations

import pytest
import torch

from geocalib.cameras import Camera
from geocalib.geometry import gravity as sphere
from geocalib.solver import FitOptions, fit
from geocalib.solver.initial import heuristic, trivial
from views import gravity_error_deg, random_cameras, random_gravity, see, with_noise


def test_trivial_start() -> None:
    guess = trivial(torch.tensor([[640.0, 480.0], [100.0, 200.0]]))
    assert guess.f.tolist() == pytest.approx([448, 140])
    assert guess.gravity.tolist() == [[0, 1, 0], [0, 1, 0]]


@pytest.mark.parametrize("pitch_deg", [-20, 0, 15])
def test_heuristic_is_exact_without_roll(pitch_deg: float) -> None:
    # With an odd size the principal point is the centre of a pixel.
    camera = Camera.create("pinhole", torch.tensor([70.0, 45.0]).double(), (61, 51))
    pitch = torch.deg2rad(torch.tensor([pitch_deg], dtype=torch.float64)).expand(2)
    gravity = sphere.from_roll_pitch(torch.zeros_like(pitch), pitch)
    guess = heuristic(see(camera, gravity), camera.c)
    torch.testing.assert_close(guess.f, camera.f)
    torch.testing.assert_close(guess.gravity, gravity)


def test_heuristic_with_roll_comes_close() -> None:
    camera = random_cameras("pinhole", 10, seed=1, vfov_deg=(40, 80))
    gravity = random_gravity(10, seed=2, most_deg=30)
    guess = heuristic(see(camera, gravity), camera.c)
    # Half a pixel off in a 32 x 32 image, and the image's column is no meridian.
    assert gravity_error_deg(guess.gravity, gravity).max() < 2
    assert (guess.f / camera.f - 1).abs().max() < 0.6


def test_heuristic_reads_at_the_principal_point() -> None:
    f = torch.tensor([70.0], dtype=torch.float64)
    camera = Camera.create("pinhole", f, (61, 51), c=(20.5, 10.5))
    gravity = random_gravity(1, seed=3, most_deg=30)
    guess = heuristic(see(camera, gravity), camera.c)
    torch.testing.assert_close(guess.gravity, gravity)


@pytest.mark.parametrize("model", ["pinhole", "simple_radial", "eucm"])
def test_all_starts_lead_to_the_same_answer(model: str) -> None:
    # A narrow view hardly tells a wide model's parameters apart.
    vfov_deg = (80, 140) if model == "eucm" else (40, 100)
    camera = random_cameras(model, 4, seed=1, size=(32, 32), vfov_deg=vfov_deg)
    gravity = random_gravity(4, seed=2)
    fields = with_noise(see(camera, gravity), 1, seed=3)
    results = [
        fit(fields, model, options=FitOptions(initial=initial))
        for initial in ("trivial", "heuristic", "ransac")
    ]
    for other in results[1:]:
        error = gravity_error_deg(other.gravity, results[0].gravity)
        assert bool((error < 0.02 * results[0].sigma.gravity_deg + 1e-6).all())
        error = (other.vfov_deg - results[0].vfov_deg).abs()
        assert bool((error < 0.02 * results[0].sigma.vfov_deg + 1e-6).all())


def test_an_image_without_a_guess_starts_trivially() -> None:
    # No latitudes: the minimal solver has nothing to choose from.
    camera = random_cameras("pinhole", 2, seed=1, vfov_deg=(60, 80))
    fields = see(camera, random_gravity(2, seed=2, most_deg=30))
    none = torch.zeros_like(fields.latitude_confidence)
    fields = type(fields)(fields.up, fields.latitude, fields.up_confidence, none)
    result = fit(fields, focal=camera.f, options=FitOptions(initial="ransac"))
    assert not any(status.failed for status in result.status)
    assert bool(torch.isfinite(result.gravity).all())
