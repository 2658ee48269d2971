"""Poses from matches: exact, noisy, mostly wrong, far away, with wide lenses, with gravity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import pytest

import calibrations
from geocalib.cameras import Camera, to_opencv
from geocalib.errors import ConfigError, MatchError, PriorError
from geocalib.localize import GravityPrior, LocalizeOptions, Pose, PoseStatus, localize
from geocalib.localize.rotation import from_vector
from matched_views import PINHOLE, View, make_view

QUICK = LocalizeOptions(min_iterations=100, solver="opencv")
DOWN = np.array([0.0, 1.0, 0.0])
FISHEYE = Camera.create(
    "kannala_brandt", f=300.0, size=(1000, 1000), distortion=[0.0] * 4, dtype=np.float64
)
"""Sees up to 95 degrees from its axis at the sides, 135 in the corners."""


def prior(view: View, off_deg: float = 0.0, sigma_deg: float = 1.0) -> GravityPrior:
    """The true gravity, tilted by that much."""
    gravity = view.rotation @ DOWN
    across = np.cross(gravity, [0.0, 0.0, 1.0])
    tilt = from_vector(np.radians(off_deg) * across / np.linalg.norm(across))
    return GravityPrior(tilt @ gravity, DOWN, sigma_deg)


def solve(view: View, gravity: GravityPrior | None = None, **options: Any) -> Pose:
    chosen = replace(QUICK, **options)
    return localize(view.pixels, view.points, view.camera, gravity, chosen)


@pytest.mark.parametrize(
    "camera",
    [
        PINHOLE,
        Camera.create(
            "simple_radial", f=700.0, size=(1000, 800), distortion=[-0.15], dtype=np.float64
        ),
        FISHEYE,
    ],
    ids=lambda camera: camera.model.name,
)
def test_exact_matches(camera: Camera) -> None:
    for seed in range(3):
        view = make_view(seed, right=12, camera=camera)
        pose = solve(view)
        degrees, metres = view.errors(pose.rotation, pose.centre)
        assert pose.status is PoseStatus.FOUND
        assert degrees < 1e-4
        assert metres < 1e-5
        assert pose.inliers.all()
        assert np.linalg.det(pose.rotation) == pytest.approx(1)


def test_most_matches_are_wrong() -> None:
    for seed in range(3):
        view = make_view(seed, right=40, wrong=160, noise=1.0)
        pose = solve(view)
        degrees, metres = view.errors(pose.rotation, pose.centre)
        assert degrees < 0.5
        assert metres < 0.1
        assert pose.inliers[:40].all()
        assert pose.inliers[40:].sum() < 8
        assert pose.num_inliers == pose.inliers.sum()


def test_refinement_agrees_with_opencv() -> None:
    """Without outliers and with small noise, both minimise nearly the same."""
    view = make_view(3, right=100, noise=0.5)
    pose = solve(view)
    _, K, distortion = to_opencv(view.camera)[0]
    # OpenCV counts from pixel centres.
    _, vector, shift = cv2.solvePnP(view.points, view.pixels - 0.5, K, distortion)
    vector, shift = cv2.solvePnPRefineLM(
        view.points, view.pixels - 0.5, K, distortion, vector, shift
    )
    degrees, _ = view.errors(pose.rotation, pose.centre)
    rotation = cv2.Rodrigues(vector)[0]
    apart = np.degrees(np.linalg.norm(cv2.Rodrigues(rotation @ pose.rotation.T)[0]))
    assert apart < 0.3 * degrees
    assert pose.translation == pytest.approx(shift[:, 0], abs=2e-3)


def test_the_same_seed_gives_the_same_pose() -> None:
    view = make_view(1, right=20, wrong=40, noise=1.0)
    first, again, other = solve(view), solve(view), solve(view, seed=7)
    assert np.array_equal(first.rotation, again.rotation)
    assert np.array_equal(first.translation, again.translation)
    assert first.score == again.score
    assert other.rotation == pytest.approx(first.rotation, abs=1e-3)


def test_origin_far_away() -> None:
    """As in maps of a country, in metres."""
    origin = (4.5e5, 5.4e6, 300.0)
    near, far = make_view(2, noise=0.5), make_view(2, noise=0.5, origin=origin)
    pose, moved = solve(near), solve(far)
    assert moved.rotation == pytest.approx(pose.rotation, abs=1e-7)
    assert moved.centre == pytest.approx(pose.centre + origin, abs=1e-6)
    assert moved.covariance == pytest.approx(pose.covariance, rel=1e-4, abs=1e-12)


def test_gravity_is_worth_matches() -> None:
    """Two poses have the same support: gravity says which is meant, and the score shows it."""
    first, second = make_view(4, right=12), make_view(5, right=12)
    both = replace(
        first,
        pixels=np.concatenate([first.pixels, second.pixels]),
        points=np.concatenate([first.points, second.points]),
    )
    for view in (first, second):
        pose = solve(both, prior(view), min_iterations=1000)
        degrees, _ = view.errors(pose.rotation, pose.centre)
        assert degrees < 0.01
        assert pose.score == pytest.approx(12 * QUICK.gravity_reward, rel=0.02)


def test_reward_ends_at_two_sigma() -> None:
    view = make_view(6, right=10)
    near = solve(view, prior(view, 1.9), gravity_weight=0)
    beyond = solve(view, prior(view, 2.1), gravity_weight=0)
    assert near.score == pytest.approx(10 * QUICK.gravity_reward)
    assert beyond.score == pytest.approx(10)


def test_gravity_steadies_noisy_poses() -> None:
    """Few matches, much noise: the tilt is the gravity's rather than that of the noise."""
    with_gravity, without = [], []
    for seed in range(8):
        view = make_view(seed, right=6, noise=5.0)
        gravity = prior(view, off_deg=0.1, sigma_deg=0.2)
        for found, used in ((with_gravity, gravity), (without, None)):
            pose = solve(view, used, threshold=25, gravity_weight=0.2)
            found.append(np.degrees(prior(view).angle(pose.rotation)))
    assert np.median(with_gravity) < 0.6 * np.median(without)


@pytest.mark.parametrize("off_deg", [5, 15, 30, 60, 90, 180])
def test_wrong_gravity_does_no_harm(off_deg: float) -> None:
    for seed in (8, 9):
        view = make_view(seed, right=40, wrong=40, noise=1.0)
        pose = solve(view, prior(view, off_deg))
        degrees, metres = view.errors(pose.rotation, pose.centre)
        assert degrees < 0.1
        assert metres < 0.02


def test_too_few_matches() -> None:
    view = make_view(0, right=3)
    pose = solve(view)
    assert pose.status is PoseStatus.TOO_FEW_MATCHES
    assert pose.status.failed
    assert np.isnan(pose.rotation).all()
    assert pose.inliers.tolist() == [False] * 3


def test_no_matches_agree() -> None:
    pose = solve(make_view(0, right=0, wrong=30), min_inliers=12)
    assert pose.status is PoseStatus.NO_CONSENSUS
    assert np.isnan(pose.covariance).all()


def test_points_on_a_line_have_no_pose() -> None:
    view = make_view(0, right=10)
    line = np.outer(np.arange(10.0), [1.0, 2.0, 3.0])
    pose = solve(replace(view, points=line), max_iterations=100, min_inliers=10)
    assert pose.status is PoseStatus.NO_CONSENSUS


def test_pixels_without_a_ray_are_left_out() -> None:
    camera = Camera.create(
        "simple_radial", f=800.0, size=(1000, 800), distortion=[-0.12], dtype=np.float64
    )
    view = make_view(0, right=12, camera=camera)
    # So far out no ray meets the sensor.
    pixels = np.concatenate([view.pixels, [[1600.0, 1200.0]]])
    points = np.concatenate([view.points, view.points[:1]])
    pose = localize(pixels, points, camera, options=QUICK)
    assert pose.inliers.tolist() == [True] * 12 + [False]


@pytest.mark.parametrize(
    ("pixels", "points", "camera", "line"),
    [
        (np.zeros((4, 3)), np.zeros((4, 3)), PINHOLE, r"got \(4, 3\) and \(4, 3\)"),
        (np.zeros((4, 2)), np.zeros((5, 3)), PINHOLE, r"got \(4, 2\) and \(5, 3\)"),
        (np.full((4, 2), np.nan), np.zeros((4, 3)), PINHOLE, "4 of 4 matches are not finite"),
        (np.zeros((4, 2)), np.zeros((4, 3)), FISHEYE[[0, 0]], "those of one camera, got 2"),
    ],
)
def test_malformed_matches(pixels: Any, points: Any, camera: Camera, line: str) -> None:
    with pytest.raises(MatchError, match=line):
        localize(pixels, points, camera)


@pytest.mark.parametrize(
    ("option", "line"),
    [
        ({"threshold": 0}, "threshold must be above 0, got 0"),
        ({"confidence": 1.0}, "confidence must be above 0 and below 1"),
        ({"min_inliers": 3}, "min_inliers must be at least 4"),
        ({"gravity_reward": 0.5}, "gravity_reward must be at least 1"),
        ({"gravity_weight": float("nan")}, "gravity_weight must be at least 0, got nan"),
    ],
)
def test_options_that_make_no_sense(option: dict[str, Any], line: str) -> None:
    with pytest.raises(ConfigError, match=line):
        LocalizeOptions(**option)


@pytest.mark.parametrize(
    ("camera", "sigma", "line"),
    [
        ([0.0, 0.0, 0.0], 1.0, "camera gravity must be 3 finite numbers"),
        ([0.0, 1.0], 1.0, "camera gravity must be 3 finite numbers"),
        ([0.0, 1.0, 0.0], 0.0, "sigma_deg must be positive"),
        ([0.0, 1.0, 0.0], float("nan"), "sigma_deg must be positive"),
    ],
)
def test_priors_that_make_no_sense(camera: Any, sigma: float, line: str) -> None:
    with pytest.raises(PriorError, match=line):
        GravityPrior(camera, DOWN, sigma)


def test_prior_of_a_calibration() -> None:
    calibration = calibrations.one()
    gravity = GravityPrior.from_calibration(calibration, [0, 0, -2])
    assert gravity.camera == pytest.approx(calibration.gravity)
    assert gravity.world.tolist() == [0, 0, -1]
    assert gravity.sigma_deg == calibration.sigma.gravity_deg
