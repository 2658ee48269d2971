"""Gravity over time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import expm

from geocalib.arrays import Array
from geocalib.geometry import gravity as sphere
from geocalib.localize.rotation import from_vector
from geocalib.video.heading import Heading, Turn
from geocalib.video.motion import (
    FrameGravity,
    Moment,
    MotionFilter,
    MotionNoise,
    MotionState,
    _smoothed,
    first_state,
    smooth,
)

CLAIMED_DEG = 0.6


def sights(gravity: Array, times: Array, sigma_deg: float = CLAIMED_DEG) -> list[FrameGravity]:
    covariance = math.radians(sigma_deg) ** 2 * np.eye(2)
    return [
        FrameGravity(Moment(float(t)), g, covariance) for t, g in zip(times, gravity, strict=True)
    ]


def wave(count: int, fps: float) -> tuple[Array, Array]:
    """Times and gravities of a slow hand."""
    times = np.arange(count, dtype=np.float64) / fps
    roll = np.deg2rad(4 * np.sin(1.4 * times))
    pitch = np.deg2rad(10 + 3 * np.sin(2.0 * times + 0.4))
    return times, sphere.from_roll_pitch(roll, pitch)


def noisy(gravity: Array, sigma_deg: float, kept: float = 0.0, seed: int = 0) -> Array:
    generator = np.random.default_rng(seed)
    noise = generator.standard_normal((len(gravity), 2))
    error = [noise[0]]
    for new in noise[1:]:
        error.append(kept * error[-1] + math.sqrt(1 - kept**2) * new)
    return sphere.move(gravity, math.radians(sigma_deg) * np.stack(error))


def errors_deg(truth: Array, found: Array) -> Array:
    return np.rad2deg(sphere.difference(truth, found, sphere.tangent_basis(truth)))


def smoothed(measured: list[FrameGravity]) -> Array:
    return np.stack([pose.gravity for pose in smooth(measured, [s.moment for s in measured])])


@pytest.mark.parametrize("kept", [0.0, 0.8])
def test_less_jitter_and_no_less_accuracy(kept: float) -> None:
    times, truth = wave(120, 20)
    seen = noisy(truth, 0.4, kept)
    before, after = errors_deg(truth, seen), errors_deg(truth, smoothed(sights(seen, times)))
    assert (after**2).mean() < (before**2).mean()
    assert 3 * np.diff(after, n=2, axis=0).std() < np.diff(before, n=2, axis=0).std()


def test_without_noise_nothing_moves() -> None:
    times, truth = wave(60, 20)
    assert np.abs(errors_deg(truth, smoothed(sights(truth, times)))).max() < 0.1


@pytest.mark.parametrize("turn", [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.6, 0.48, 0.64]])
def test_no_direction_is_special(turn: list[float]) -> None:
    """Turned as a whole, also over the poles of roll and pitch, the answers turn along."""
    times, truth = wave(40, 20)
    seen = noisy(truth, 0.4)
    axis = 1.5 * np.array(turn, np.float64)
    cross = np.zeros((3, 3))
    cross[2, 1], cross[0, 2], cross[1, 0] = axis
    R = expm(cross - cross.T)
    found = smoothed(sights(seen, times)) @ R.T
    assert np.allclose(smoothed(sights(seen @ R.T, times)), found, atol=1e-7)


def test_smoother_against_least_squares() -> None:
    """On a small patch, where the sphere is flat, it is the least squares of all at once."""
    noise = MotionNoise.candidates()[96]
    times = [0.0, 0.1, 0.25, 0.3, 0.5]
    level = np.array([0.0, 1.0, 0.0], np.float64)
    generator = np.random.default_rng(3)
    steps = 1e-5 * generator.standard_normal((5, 2))
    measured = sights(
        sphere.move(np.broadcast_to(level, (5, 3)), steps), np.array(times, np.float64), 1e-3
    )
    states = _smoothed(measured, [], noise)
    basis = sphere.tangent_basis(level)
    found = np.stack([sphere.difference(level, states[t].gravity[0], basis) for t in times])

    # Along one axis: rows of a whitened system in the angle, velocity, acceleration and error of
    # all times.
    sigma, share = math.radians(1e-3), noise.share.item()
    rows, targets = [], []

    def add(entries: dict[int, float], target: float, deviation: float) -> None:
        row = np.zeros(20)
        for at, value in entries.items():
            row[at] = value / deviation
        rows.append(row)
        targets.append(target / deviation)

    add({1: 1.0}, 0.0, math.radians(30))
    add({2: 1.0}, 0.0, math.radians(60))
    add({3: 1.0}, 0.0, math.sqrt(noise.common.item()))
    for k in range(5):
        add({4 * k: 1.0, 4 * k + 3: sigma}, steps[k, 0].item(), sigma * math.sqrt(0.05 * share))
        if k:
            dt = times[k] - times[k - 1]
            F, Q = noise.transition(dt)[0], noise.random(dt)[0]
            pick = np.ix_([0, 2, 4, 6], [0, 2, 4, 6])
            whiten = np.linalg.inv(np.linalg.cholesky(Q[pick]))
            block = np.zeros((4, 20))
            block[:, 4 * k : 4 * k + 4] = whiten
            block[:, 4 * k - 4 : 4 * k] = -whiten @ F[pick]
            rows.extend(block)
            targets.extend([0.0] * 4)
    solution = np.linalg.lstsq(np.array(rows), np.array(targets), rcond=None)[0]
    assert found[:, 0] == pytest.approx(solution[::4], abs=1e-9)


def test_sigmas_are_true_for_independent_frames() -> None:
    times, truth = wave(50, 10)
    ratios = []
    for seed in range(4):
        measured = sights(noisy(truth, CLAIMED_DEG, seed=seed), times)
        poses = smooth(measured, [sight.moment for sight in measured])
        error = np.deg2rad(errors_deg(truth, np.stack([pose.gravity for pose in poses])))
        sigma2 = np.stack([np.diagonal(pose.covariance) for pose in poses])
        ratios.append((error**2 / sigma2).mean())
    assert 0.4 < np.stack(ratios).mean() < 2.0


def test_an_error_that_lasts_stays_in_the_sigma() -> None:
    """All frames off by the same: no smoothing helps, and none is claimed to."""
    times, truth = wave(100, 10)
    tilted = noisy(sphere.move(truth, np.full((100, 2), math.radians(0.5))), 0.03)
    pose = smooth(sights(tilted, times), [Moment(5.0)])[0]
    assert math.degrees(math.sqrt(pose.covariance[0, 0])) > 0.9 * CLAIMED_DEG


def test_between_and_before_frames() -> None:
    times, truth = wave(60, 20)
    asked = [Moment(time) for time in (-1.0, 0.0, 1.0125, 1.5)]
    poses = smooth(sights(truth, times), asked)
    assert np.array_equal(poses[0].gravity, poses[1].gravity)
    target = sphere.from_roll_pitch(
        np.deg2rad(4 * np.sin(np.array(1.4 * 1.0125))),
        np.deg2rad(10 + 3 * np.sin(np.array(2.0 * 1.0125 + 0.4))),
    )
    assert math.degrees(sphere.angle_between(poses[2].gravity, target)) < 0.1


def test_accepts_what_a_hand_does_and_nothing_else() -> None:
    times, truth = wave(40, 10)
    filter = MotionFilter.start(sights(truth, times)[0])
    for sight in sights(truth, times)[1:-1]:
        assert filter.accepts(sight)
        filter = filter.updated(sight)
    last = sights(truth, times)[-1]
    aside = sphere.move(last.gravity, np.array([math.radians(15), 0.0]))
    assert filter.accepts(last)
    assert not filter.accepts(FrameGravity(last.moment, aside, last.covariance))


def test_a_basis_is_carried_as_it_is() -> None:
    times, truth = wave(2, 10)
    noise = MotionNoise.candidates()
    state: MotionState = first_state(sights(truth, times)[0], noise)
    step = np.full((len(noise.share), 8), 0.3, np.float64)
    moved = state.moved(step, state.covariance)
    frame = np.concatenate([moved.gravity[..., None], moved.basis], -1)
    eye = np.broadcast_to(np.eye(3), frame.shape)
    assert np.allclose(frame.mT @ frame, eye)
    assert np.allclose(state.step_to(moved), step)


def turning(times: Array, gravity: Array, sigma_deg: float) -> list[Moment]:
    """Moments of a camera that pans while it wobbles, with turns known so well."""
    world = sphere.world_from_camera(gravity, 0.5 * times)
    generator = np.random.default_rng(0)
    heading = Heading.start()
    moments = [Moment(float(times[0]), heading)]
    for k in range(1, len(times)):
        error = math.radians(sigma_deg) * generator.normal(size=3)
        rotation = from_vector(error) @ world[k].T @ world[k - 1]
        covariance = math.radians(sigma_deg) ** 2 * np.eye(3)
        heading = heading.after(Turn(rotation, covariance, 0.0, np.zeros(3), 0.0, 0.0))
        moments.append(Moment(float(times[k]), heading))
    return moments


class TestTurns:
    def test_known_turns_leave_little_jitter_also_without_a_future(self) -> None:
        times, truth = wave(100, 10)
        seen = noisy(truth, 0.4, 0.5)
        pairs = zip(turning(times, truth, 0.01), sights(seen, times), strict=True)
        measured = [FrameGravity(moment, s.gravity, s.covariance) for moment, s in pairs]
        filter, online = MotionFilter.start(measured[0]), [measured[0].gravity]
        for sight in measured[1:]:
            filter = filter.updated(sight)
            online.append(filter.pose_at(sight.moment).gravity)
        before = errors_deg(truth, seen)
        for found, less in ((np.stack(online), 2), (smoothed(measured), 10)):
            after = errors_deg(truth, found)
            assert (after**2).mean() < 0.7 * (before**2).mean()
            assert less * np.diff(after, n=2, axis=0).std() < np.diff(before, n=2, axis=0).std()

    def test_frames_without_an_answer_turn_along(self) -> None:
        """Also on a way that no motion model would guess."""
        times, truth = wave(60, 10)
        truth[30:] = sphere.move(truth[30:], np.full((30, 2), math.radians(8)))
        moments = turning(times, truth, 0.01)
        claimed = math.radians(CLAIMED_DEG) ** 2 * np.eye(2)
        pairs = list(zip(moments, truth, strict=True))
        measured = [FrameGravity(moment, g, claimed) for moment, g in (*pairs[:25], *pairs[40:])]
        found = np.stack([pose.gravity for pose in smooth(measured, moments)])
        assert np.abs(errors_deg(truth, found)).max() < 0.1
        filter = MotionFilter.start(measured[0])
        for sight in measured[1:25]:
            filter = filter.updated(sight)
        ahead = filter.pose_at(moments[39])
        assert math.degrees(sphere.angle_between(ahead.gravity, truth[39])) < 0.3

    def test_a_chain_that_breaks_is_none(self) -> None:
        times, truth = wave(40, 10)
        moments = turning(times, truth, 0.01)
        for k, moment in enumerate(moments[20:], 20):
            assert moment.heading is not None
            rotation = from_vector(np.array([1.0, 0.2, -0.5]))
            heading = Heading(1, moment.heading.rotation @ rotation, moment.heading.covariance)
            moments[k] = Moment(moment.time, heading)
        measured = [
            FrameGravity(moment, s.gravity, s.covariance)
            for moment, s in zip(moments, sights(truth, times), strict=True)
        ]
        assert moments[20].since(moments[19]) is None
        assert np.abs(errors_deg(truth, smoothed(measured))).max() < 0.2
