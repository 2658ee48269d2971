"""Where a fit starts, and that it does not matter."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor

from geocalib.cameras import Camera
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import perspective_field
from geocalib.solver import FitOptions, fit
from geocalib.solver.initial import StartGuess, heuristic, minimal_solver, ransac, trivial
from geocalib.solver.observations import observe
from views import gravity_error_deg, random_cameras, random_gravity, see, with_noise, with_outliers


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


ANGLES = st.integers(-80, 80).map(math.radians)
PIXELS = st.tuples(st.integers(-320, 320), st.integers(-240, 240))


def solve(roll: float, pitch: float, f: float, points: Tensor) -> tuple[StartGuess, Tensor]:
    """Candidates from the exact field at three points, and the true gravity."""
    angles = torch.tensor([roll, pitch], dtype=torch.float64)
    gravity = sphere.from_roll_pitch(angles[0], angles[1])
    camera = Camera.create("pinhole", torch.tensor([f]).double(), (2, 2), c=(0.0, 0.0))
    up, latitude, _ = perspective_field(camera, gravity[None], points[None])
    p, up, sine = points, up[0], torch.sin(latitude[0])
    return minimal_solver(p[0], up[0], p[1], up[1], p[2], sine[2]), gravity


def error(guess: StartGuess, gravity: Tensor, f: float) -> float:
    """Of the better candidate: the larger of the angle and the relative error of f."""
    angle = sphere.angle_between(guess.gravity, gravity.expand_as(guess.gravity))
    both = torch.maximum(angle, (guess.f / f - 1).abs())
    return float(both[torch.isfinite(both)].min()) if bool(torch.isfinite(both).any()) else math.inf


def well_posed(roll: float, pitch: float, f: float, points: Tensor) -> bool:
    """Whether the up-vectors tell (a, b, c) and the latitude then tells f, noticeably."""
    g = sphere.from_roll_pitch(*torch.tensor([roll, pitch], dtype=torch.float64))
    # Where up is along v, (a, b, c f) is perpendicular to (v_y, -v_x, v_x p_y - v_y p_x) / f.
    v = torch.nn.functional.normalize(points[:2] * g[2] / f - g[:2], dim=-1)
    moment = (v[:, 0] * points[:2, 1] - v[:, 1] * points[:2, 0]) / f
    rows = torch.stack([v[:, 1], -v[:, 0], moment], -1)
    across = torch.linalg.vector_norm(torch.linalg.cross(rows[0], rows[1]))

    def sine(focal: float) -> Tensor:
        gravity = torch.cat([g[:2], g[2:] * focal / f])
        ray = torch.cat([points[2], points.new_tensor([focal])])
        return -(ray @ gravity) / ray.norm() / gravity.norm()

    return bool(across > 0.02) and bool((sine(1.01 * f) - sine(0.99 * f)).abs() > 1e-3)


@given(ANGLES, ANGLES, st.integers(100, 2000), PIXELS, PIXELS, PIXELS)
def test_exact_without_noise(
    roll: float,
    pitch: float,
    f: int,
    p1: tuple[int, int],
    p2: tuple[int, int],
    p3: tuple[int, int],
) -> None:
    points = torch.tensor([p1, p2, p3], dtype=torch.float64)
    assume(well_posed(roll, pitch, f, points))
    guess, gravity = solve(roll, pitch, f, points)
    assert guess.gravity.shape == (2, 3)
    assert guess.f.shape == (2,)
    assert error(guess, gravity, f) < 1e-6


@given(ANGLES, st.integers(100, 2000))
def test_exact_for_the_level_camera(roll: float, f: int) -> None:
    points = torch.tensor([[-100.0, 30.0], [150.0, -80.0], [40.0, 0.0]], dtype=torch.float64)
    angles = torch.tensor([roll], dtype=torch.float64)
    # Off the horizon, where the latitude says nothing about f.
    points[2] = points[2] + 90 * torch.cat([torch.sin(angles), torch.cos(angles)])
    guess, gravity = solve(roll, 0.0, f, points)
    assert error(guess, gravity, f) < 1e-6


def test_candidates_show_what_was_observed() -> None:
    points = torch.tensor([[-100.0, 30.0], [150.0, -80.0], [40.0, 120.0]], dtype=torch.float64)
    for roll, pitch in ((0.3, 0.4), (-0.5, -0.3), (2.8, 0.2)):
        guess, gravity = solve(roll, pitch, 300.0, points)
        for g, f in zip(guess.gravity, guess.f, strict=True):
            if bool(torch.isnan(f)):
                continue
            camera = Camera.create("pinhole", f[None], (2, 2), c=(0.0, 0.0))
            truth = Camera.create("pinhole", torch.tensor([300.0]).double(), (2, 2), c=(0.0, 0.0))
            up, latitude, _ = perspective_field(camera, g[None], points[None])
            up_true, latitude_true, _ = perspective_field(truth, gravity[None], points[None])
            torch.testing.assert_close(up[0, :2], up_true[0, :2], rtol=0, atol=1e-9)
            torch.testing.assert_close(latitude[0, 2], latitude_true[0, 2], rtol=0, atol=1e-9)


def test_no_camera_is_no_number() -> None:
    # At one and the same point there is nothing to intersect.
    point, up = torch.tensor([10.0, 20.0]).double(), torch.tensor([0.0, -1.0]).double()
    guess = minimal_solver(point, up, point, up, point, torch.tensor(0.3).double())
    assert bool(torch.isnan(guess.f).all())


def test_ransac_survives_outliers() -> None:
    for aspect in (1.0, 1.3):
        camera = random_cameras(
            "pinhole", 4, seed=1, size=(32, 32), vfov_deg=(40, 100), aspect=aspect
        )
        gravity = random_gravity(4, seed=2)
        # 40% random pixels, as confident as the others.
        fields = with_outliers(see(camera, gravity, torch.float32), 0.4, 1.0, seed=3)
        guess = ransac(observe(fields, None), camera.c, camera.aspect)
        # As good as the tolerance of its inliers: more than enough to start from.
        assert gravity_error_deg(guess.gravity, gravity).max() < 2
        assert (guess.f / camera.f - 1).abs().max() < 0.08


def test_ransac_ignores_what_has_no_confidence() -> None:
    camera = random_cameras("pinhole", 4, seed=1, vfov_deg=(40, 100))
    gravity = random_gravity(4, seed=2)
    fields = with_outliers(see(camera, gravity), 0.9, 0.0, seed=3)
    guess = ransac(observe(fields, None), camera.c, camera.aspect)
    torch.testing.assert_close(guess.f, camera.f, rtol=1e-6, atol=0)
    assert gravity_error_deg(guess.gravity, gravity).max() < 1e-4
