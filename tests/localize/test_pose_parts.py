"""What a pose is made of: rotations, minimal samples, pixel errors, draws, refinement."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.spatial.transform import Rotation

from geocalib.cameras import Camera
from geocalib.errors import ConfigError, PriorError
from geocalib.localize import GravityPrior, world_gravity
from geocalib.localize.estimate import draw, samples_needed
from geocalib.localize.matches import prepare
from geocalib.localize.minimal import choose_solver, solve_samples
from geocalib.localize.refine import PoseEstimate, PoseProblem, covariance, refine
from geocalib.localize.rotation import facing, from_quaternion, from_vector, to_quaternion
from matched_views import make_view

vectors = st.lists(st.floats(-4, 4), min_size=3, max_size=3).map(np.array)


@given(vectors)
def test_rotations_against_scipy(vector: np.ndarray) -> None:
    expected = Rotation.from_rotvec(vector)
    rotation = from_vector(vector)
    assert rotation == pytest.approx(expected.as_matrix(), abs=1e-12)
    quaternion = to_quaternion(rotation)
    assert quaternion[0] >= 0
    assert from_quaternion(3 * quaternion) == pytest.approx(rotation, abs=1e-12)
    cosine = abs(quaternion @ expected.as_quat(scalar_first=True))
    assert cosine == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("axis", np.eye(3).tolist())
def test_quaternions_of_half_turns(axis: list[float]) -> None:
    quaternion = to_quaternion(from_vector(np.pi * np.array(axis)))
    assert np.abs(quaternion) == pytest.approx([0, *axis], abs=1e-12)


@given(vectors.filter(lambda v: np.linalg.norm(v) > 1e-3))
def test_facing(vector: np.ndarray) -> None:
    direction = vector / np.linalg.norm(vector)
    turn = facing(direction)
    assert turn @ direction == pytest.approx([0, 0, 1], abs=1e-12)
    assert turn @ turn.T == pytest.approx(np.eye(3), abs=1e-12)
    assert np.linalg.det(turn) == pytest.approx(1)


@pytest.mark.parametrize("solver", ["opencv", "poselib"])
def test_minimal_samples(solver: str) -> None:
    """The true pose is among the answers, for rays in all directions and behind the camera too."""
    if solver == "poselib":
        pytest.importorskip("poselib")
    generator = np.random.default_rng(0)
    rotation, translation = from_vector(np.array([0.3, 2.0, -0.5])), np.array([1.0, -2.0, 0.5])
    for _ in range(30):
        centre = generator.normal(size=3)
        local = 5 * centre / np.linalg.norm(centre) + generator.normal(0, 1, (3, 3))
        points = (local - translation) @ rotation
        rays = local / np.linalg.norm(local, axis=1, keepdims=True)
        R, t = solve_samples(rays[None], points[None], solver)
        miss = np.abs(R - rotation).max((1, 2)) + np.abs(t - translation).max(1)
        assert miss.min() < 1e-6


@pytest.mark.parametrize("solver", ["opencv", "poselib"])
def test_samples_without_a_pose(solver: str) -> None:
    if solver == "poselib":
        pytest.importorskip("poselib")
    rays = np.eye(3)[None]
    R, t = solve_samples(rays, np.zeros((1, 3, 3)), solver)
    assert (len(R), len(t)) == (0, 0)
    R, t = solve_samples(rays[:0], rays[:0], solver)
    assert (R.shape, t.shape) == ((0, 3, 3), (0, 3))


def test_choice_of_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("geocalib.localize.minimal.find_spec", lambda name: None)
    assert choose_solver(None) == "opencv"
    with pytest.raises(ConfigError, match="poselib is not installed; pip install poselib"):
        choose_solver("poselib")
    monkeypatch.setattr("geocalib.localize.minimal.find_spec", lambda name: SimpleNamespace())
    assert choose_solver(None) == "poselib"
    assert choose_solver("opencv") == "opencv"
    with pytest.raises(ConfigError, match="unknown solver 'p4p'; known: opencv, poselib"):
        choose_solver("p4p")


def test_poselib_answers_are_taken_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def p3p(rays: np.ndarray, points: np.ndarray) -> list[SimpleNamespace]:
        asked.append((rays, points))
        return [SimpleNamespace(R=np.eye(3), t=points[0])] * 2

    monkeypatch.setitem(sys.modules, "poselib", SimpleNamespace(p3p=p3p))
    rays, points = np.ones((2, 3, 3)), np.arange(18.0).reshape(2, 3, 3)
    R, t = solve_samples(rays, points, "poselib")
    assert np.array_equal(asked[1][1], points[1])
    assert R.shape == (4, 3, 3)
    assert t.tolist() == [[0, 1, 2], [0, 1, 2], [9, 10, 11], [9, 10, 11]]


CAMERAS = [
    Camera.create("pinhole", f=800.0, size=(1000, 800), dtype=np.float64),
    Camera.create("radial", 700.0, (1000, 800), [-0.2, 0.03], aspect=1.1, dtype=np.float64),
    Camera.create("eucm", 300.0, (900, 900), [0.6, 1.1], dtype=np.float64),
]


@pytest.mark.parametrize("camera", CAMERAS, ids=lambda camera: camera.model.name)
def test_pixel_errors_against_projection(camera: Camera) -> None:
    view = make_view(0, camera=camera, noise=3.0)
    matches, usable = prepare(view.pixels, view.points, camera)
    assert usable.all()
    translation = -view.rotation @ view.centre
    error, _ = matches.residuals(view.rotation, translation)
    local = view.points @ view.rotation.T + translation
    projected = camera.project(local[None])[0][0]
    # Exact to first order: errors of some pixels are right to a few hundredths.
    assert error == pytest.approx(projected - view.pixels, abs=0.15)
    squared = matches.squared_errors(view.rotation[None], translation[None])
    assert squared[0] == pytest.approx((error * error).sum(1))
    behind = matches.squared_errors(-view.rotation[None], -translation[None])
    assert np.isinf(behind).all()


def test_residual_derivatives() -> None:
    view = make_view(1, right=5, noise=3.0)
    matches, _ = prepare(view.pixels, view.points, view.camera)
    start = PoseEstimate(view.rotation, -view.rotation @ view.centre)

    def residuals(step: np.ndarray) -> np.ndarray:
        moved = start.moved(step)
        return matches.residuals(moved.rotation, moved.translation)[0].ravel()

    _, jacobian = matches.residuals(start.rotation, start.translation)
    numeric = approx_fprime(np.zeros(6), residuals, 1e-7)
    assert jacobian.reshape(10, 6) == pytest.approx(numeric, rel=1e-4, abs=1e-2)


def test_gradient_of_the_refinement() -> None:
    view = make_view(2, right=8, noise=3.0)
    matches, _ = prepare(view.pixels, view.points, view.camera)
    start = PoseEstimate(view.rotation, -view.rotation @ view.centre)
    gravity = GravityPrior(np.array([0.1, 1.0, 0.2]), np.array([0.0, 1.0, 0.0]), 2.0)
    problem = PoseProblem.create(matches, start, gravity, 0.1)
    _, gradient, _ = problem.normal_equations(start)
    numeric = approx_fprime(np.zeros(6), lambda step: problem.cost(start.moved(step)), 1e-7)
    assert 2 * gradient == pytest.approx(numeric, rel=1e-3, abs=0.1)
    best = refine(problem, start, 50)
    assert problem.cost(best) < problem.cost(start)
    assert np.abs(problem.normal_equations(best)[1]).max() < 1e-2 * np.abs(gradient).max()


@pytest.mark.parametrize("weight", [0.0, 0.1])
def test_covariance_is_honest(weight: float) -> None:
    """The squared errors in its units are as large as 6 numbers make them, on average, also where
    gravity weighs more than its sigma says."""
    distances = []
    for seed in range(50):
        view = make_view(seed, right=60, noise=1.5)
        matches, _ = prepare(view.pixels, view.points, view.camera)
        truth = PoseEstimate(view.rotation, -view.rotation @ view.centre)
        down = np.array([0.0, 1.0, 0.0])
        tilt = np.radians(0.5) * np.random.default_rng(seed).normal(size=3)
        gravity = GravityPrior(from_vector(tilt) @ view.rotation @ down, down, 0.5)
        problem = PoseProblem.create(matches, truth, gravity, weight)
        found = refine(problem, truth, 30)
        turn = cv2.Rodrigues(found.rotation @ truth.rotation.T)[0][:, 0]
        # The motion takes x to turn x + v, and with it the true translation to the found one.
        shift = found.translation - from_vector(turn) @ truth.translation
        error = np.concatenate([turn, shift])
        distances.append(error @ np.linalg.solve(covariance(problem, found), error))
    assert np.mean(distances) == pytest.approx(6, abs=1.5)


def test_draws_are_fair_and_different() -> None:
    samples = draw(np.random.default_rng(0), 5, 20_000)
    assert all(len(set(sample)) == 3 for sample in samples.tolist())
    counts = np.unique(np.sort(samples, 1), axis=0, return_counts=True)[1]
    assert len(counts) == 10
    assert counts == pytest.approx(np.full(10, 2000), rel=0.1)


@pytest.mark.parametrize(
    ("share", "confidence", "needed"),
    [(0.5, 0.99, 34.49), (1.0, 0.99, 1.0), (0.0, 0.99, np.inf), (0.1, 0.9999, 9205.7)],
)
def test_samples_needed(share: float, confidence: float, needed: float) -> None:
    assert samples_needed(share, confidence) == pytest.approx(needed, rel=1e-3)


def test_world_gravity() -> None:
    generator = np.random.default_rng(0)
    down = np.array([0.6, 0.0, -0.8])
    rotations = from_vector(generator.normal(size=(30, 3)))
    seen = rotations @ down + generator.normal(0, 0.01, (30, 3))
    seen[:8] = generator.normal(size=(8, 3))
    found = world_gravity(rotations, seen)
    assert np.degrees(np.arccos(found @ down)) < 1
    assert world_gravity(rotations[-1:], seen[-1:]) == pytest.approx(down, abs=0.05)


def test_world_gravity_of_nothing() -> None:
    with pytest.raises(PriorError, match="got 0 poses and 0 gravities"):
        world_gravity([], [])
    with pytest.raises(PriorError, match="contradict each other"):
        world_gravity([np.eye(3)] * 2, [[0, 1, 0], [0, -1, 0]])


def test_rodrigues_is_opencvs() -> None:
    vector = np.array([0.4, -1.2, 2.0])
    assert from_vector(vector) == pytest.approx(cv2.Rodrigues(vector)[0], abs=1e-12)
