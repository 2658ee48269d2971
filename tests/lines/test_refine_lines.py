"""Network and lines together."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from streets import (
    camera_of,
    curves_of,
    errors_of,
    gravity_of,
    headings_of,
    prior_of,
    segments_along,
)

from calibrations import one
from geocalib.arrays import Array
from geocalib.cameras import Camera
from geocalib.geometry import gravity as sphere
from geocalib.geometry.segments import Segments
from geocalib.lines.refine import refine, refine_turned
from geocalib.result.calibration import Calibration
from geocalib.result.evidence import Verdict
from geocalib.solver import Rig
from lenses import ALL_MODELS

GRAVITY = gravity_of(4.0, 12.0)
CROSSED = np.concatenate([GRAVITY[None], headings_of(GRAVITY, [25.0, 115.0])])


def used(answer: Calibration) -> bool:
    return answer.lines is not None and answer.lines.verdict.used


def same(answer: Calibration, other: Calibration) -> bool:
    """Whether two answers differ in nothing but what is said of lines."""
    return replace(answer, lines=None) == replace(other, lines=None)


@pytest.mark.parametrize("model", ALL_MODELS)
def test_exact_recovery_among_clutter(model: str) -> None:
    camera = camera_of(model)
    segments = segments_along(camera, CROSSED, each=120, clutter=120, length=24.0)
    prior = prior_of(camera, GRAVITY, log_f_off=0.08, sigma_log_f=0.2, sigma_distortion=0.02)
    (answer,) = refine([prior], [segments])
    angle, focal = errors_of(answer, camera, GRAVITY)
    before, focal_before = errors_of(prior, camera, GRAVITY)
    assert angle < 0.05
    assert focal < 0.01
    assert angle < 0.1 * before
    assert focal < 0.2 * focal_before


def test_a_focal_length_that_is_far_off() -> None:
    camera = camera_of("pinhole")
    segments = segments_along(camera, CROSSED, each=80, clutter=80, noise=0.3)
    for off in (-0.6, 0.6):
        (answer,) = refine([prior_of(camera, GRAVITY, log_f_off=off, sigma_log_f=0.6)], [segments])
        angle, focal = errors_of(answer, camera, GRAVITY)
        assert angle < 0.3
        assert focal < 0.03


@pytest.mark.parametrize("sigma", [0.06, 0.02])
def test_a_network_that_is_too_sure_does_not_outvote_sharp_lines(sigma: float) -> None:
    camera = camera_of("pinhole")
    segments = segments_along(camera, CROSSED, each=80, clutter=80, noise=0.3)
    (answer,) = refine([prior_of(camera, GRAVITY, log_f_off=0.3, sigma_log_f=sigma)], [segments])
    assert used(answer)
    assert errors_of(answer, camera, GRAVITY)[1] < 0.05


@pytest.mark.parametrize("model", ["pinhole", "simple_radial"])
def test_a_tilted_panel_does_not_outvote_a_sensor(model: str) -> None:
    """Seen from above, its edges are those of a level floor 15 degrees from where down was
    measured; of edges that are level indeed, the sensor leaves what they tell."""
    camera, down = camera_of(model), gravity_of(3.0, -60.0)
    panel = headings_of(gravity_of(3.0, -75.0), [20.0, 110.0])
    measured = np.full((1, 2), math.radians(1.0) ** -2)
    unsure = prior_of(camera, down, (0.3, -0.5), sigma_deg=1.0, sigma_log_f=0.1)
    grid = segments_along(camera, panel, each=120, clutter=40, noise=0.3)
    (drawn,) = refine([unsure], [grid])
    (held,) = refine([unsure], [grid], gravity_information=measured)
    assert errors_of(drawn, camera, down)[0] > 10
    assert errors_of(held, camera, down)[0] < 2
    floor = segments_along(camera, headings_of(down, [20.0, 110.0]), each=120, noise=0.3)
    (level,) = refine([unsure], [floor], gravity_information=measured)
    assert used(level)
    assert errors_of(level, camera, down)[0] < 0.3


def test_a_set_is_held_to_what_was_measured_of_one_of_its_pictures() -> None:
    camera, down = camera_of("pinhole"), gravity_of(3.0, -60.0)
    panel = headings_of(gravity_of(3.0, -75.0), [20.0, 110.0])
    unsure = prior_of(camera, down, (0.3, -0.5), sigma_deg=1.0, sigma_log_f=0.1)
    town = prior_of(camera, GRAVITY, sigma_log_f=0.1)
    pictures = [segments_along(camera, each, 120, noise=0.3) for each in (panel, CROSSED)]
    measured = np.array([[math.radians(1.0) ** -2] * 2, [0.0, 0.0]])
    answers = refine([unsure, town], pictures, [0, 0], gravity_information=measured)
    assert errors_of(answers[0], camera, down)[0] < 2
    assert errors_of(answers[1], camera, GRAVITY)[0] < 0.5 * errors_of(town, camera, GRAVITY)[0]


def test_sigmas_shrink_where_lines_speak() -> None:
    camera = camera_of("pinhole")
    prior = prior_of(camera, GRAVITY, log_f_off=0.1)
    (answer,) = refine([prior], [segments_along(camera, CROSSED, each=80, noise=0.3)])
    assert answer.sigma.roll_deg < 0.3 * prior.sigma.roll_deg
    assert answer.sigma.vfov_deg < 0.3 * prior.sigma.vfov_deg
    assert np.linalg.eigvalsh(answer.covariance)[0] > 0


@pytest.mark.parametrize("count", [0, 1, 5])
def test_few_segments_change_nothing(count: int) -> None:
    camera = camera_of("pinhole")
    prior = prior_of(camera, GRAVITY)
    segments = segments_along(camera, CROSSED)[:count]
    (answer,) = refine([prior], [segments])
    assert same(answer, prior)
    assert answer.lines is not None
    assert answer.lines.verdict is Verdict.TOO_FEW
    assert answer.lines.unused == count


def test_clutter_changes_nothing() -> None:
    camera = camera_of("pinhole")
    prior = prior_of(camera, GRAVITY, sigma_log_f=0.6)
    for seed in range(3):
        segments = segments_along(camera, CROSSED[:0], clutter=400, seed=seed)
        (answer,) = refine([prior], [segments])
        assert same(answer, prior)
        assert answer.lines is not None
        assert answer.lines.verdict is Verdict.NO_DIRECTION


def test_parallel_verticals_fix_gravity_but_not_the_focal_length() -> None:
    camera = camera_of("pinhole")
    level = gravity_of(3.0, 0.0)
    prior = prior_of(camera, level, log_f_off=0.2)
    (answer,) = refine([prior], [segments_along(camera, level[None], each=200, noise=0.3)])
    roll, _ = sphere.to_roll_pitch(answer.gravity)
    assert abs(math.degrees(roll.item()) - 3.0) < 0.1
    assert answer.sigma.roll_deg < 0.3 * prior.sigma.roll_deg
    assert answer.sigma.vfov_deg > 0.8 * prior.sigma.vfov_deg


def test_a_facade_seen_straight_on_says_nothing_about_the_focal_length() -> None:
    camera = camera_of("pinhole")
    level = gravity_of(0.0, 0.0)
    facade = np.concatenate([level[None], headings_of(level, [0.0])])
    prior = prior_of(camera, level, log_f_off=0.2)
    (answer,) = refine([prior], [segments_along(camera, facade, each=150, noise=0.3)])
    assert used(answer)
    assert answer.sigma.roll_deg < 0.3
    assert answer.sigma.vfov_deg > 0.8 * prior.sigma.vfov_deg
    assert abs(answer.fy / prior.fy - 1) < 0.15


@pytest.mark.parametrize("degrees", [(10.0, 50.0, 110.0), (20.0, 65.0, 95.0)])
def test_streets_of_several_directions(degrees: tuple[float, ...]) -> None:
    """Gravity gets better, and no false right angle spoils the focal length."""
    camera = camera_of("pinhole")
    streets = np.concatenate([GRAVITY[None], headings_of(GRAVITY, degrees)])
    prior = prior_of(camera, GRAVITY, log_f_off=0.05, sigma_log_f=0.3)
    segments = segments_along(camera, streets, each=100, clutter=50, noise=0.3, seed=4)
    (answer,) = refine([prior], [segments])
    angle, focal = errors_of(answer, camera, GRAVITY)
    assert angle < 0.3
    assert focal < 0.05
    assert answer.lines is not None
    assert answer.lines.verdict is Verdict.TURNED
    assert len(answer.lines.level) >= 2


def test_two_streets_that_a_sure_network_knows_not_to_cross_squarely() -> None:
    camera = camera_of("pinhole")
    streets = np.concatenate([GRAVITY[None], headings_of(GRAVITY, [20.0, 85.0])])
    prior = prior_of(camera, GRAVITY, sigma_log_f=0.03)
    segments = segments_along(camera, streets, each=100, noise=0.3)
    (answer,) = refine([prior], [segments])
    angle, focal = errors_of(answer, camera, GRAVITY)
    assert angle < 0.3
    assert focal < 0.03


def test_segments_are_told_apart() -> None:
    camera = camera_of("pinhole")
    parts = [segments_along(camera, CROSSED[i : i + 1], each=70, seed=i) for i in range(3)]
    parts.append(segments_along(camera, CROSSED[:0], clutter=30, seed=9))
    segments = Segments(np.concatenate([part.ends for part in parts]), 0.3)
    (answer,) = refine([prior_of(camera, GRAVITY)], [segments])
    assert answer.lines is not None
    lines = answer.lines.traces
    assert lines is not None
    assert lines.vertical.tolist() == [True, False, False]
    start = 0
    for part in parts[:3]:
        kinds = lines.kind[start : start + len(part)]
        start += len(part)
        most = np.bincount(kinds - kinds.min()).argmax() + kinds.min()
        assert (kinds == most).mean() > 0.9
    truth = CROSSED @ lines.directions.T
    assert np.allclose(np.abs(truth).max(1), np.ones(3), atol=1e-4)


def test_what_is_fixed_stays_fixed() -> None:
    camera = camera_of("pinhole")
    segments = segments_along(camera, CROSSED, each=80, noise=0.2)
    prior = prior_of(camera, GRAVITY, log_f_off=0.1)
    names, covariance = prior.parameters, prior.covariance
    no_focal = replace(prior, parameters=names[:2], covariance=covariance[:2, :2])
    (answer,) = refine([no_focal], [segments])
    assert answer.fy == no_focal.fy
    no_gravity = replace(prior, parameters=names[2:], covariance=covariance[2:, 2:])
    (answer,) = refine([no_gravity], [segments])
    assert np.array_equal(answer.gravity, no_gravity.gravity)
    nothing = replace(prior, parameters=(), covariance=covariance[:0, :0])
    (answer,) = refine([nothing], [segments])
    assert same(answer, nothing)
    assert answer.lines is not None
    assert answer.lines.verdict is Verdict.NOTHING_FREE


def test_images_of_one_camera_are_refined_together() -> None:
    """A facade seen straight on learns its focal length from the other images."""
    camera = camera_of("pinhole")
    level = gravity_of(0.0, 0.0)
    facade = np.concatenate([level[None], headings_of(level, [0.0])])
    segments = [
        segments_along(camera, CROSSED, each=80, noise=0.2),
        segments_along(camera, facade, each=80, noise=0.2),
    ]
    priors = [prior_of(camera, g, log_f_off=0.15) for g in (GRAVITY, level)]
    answers = refine(priors, segments, groups=[0, 0])
    assert answers[0].fy == answers[1].fy
    for answer, gravity in zip(answers, (GRAVITY, level), strict=True):
        angle, focal = errors_of(answer, camera, gravity)
        assert angle < 0.2
        assert focal < 0.02
        assert answer.sigma.vfov_deg < 0.5 * priors[0].sigma.vfov_deg
    apart = refine(priors, segments)
    assert errors_of(apart[1], camera, level)[1] > 0.05


def test_a_rig_shares_gravity() -> None:
    camera = camera_of("pinhole")
    angle = np.array(math.radians(60.0), np.float64)
    zero, one = np.zeros_like(angle), np.ones_like(angle)
    turn = np.stack(
        [np.cos(angle), zero, -np.sin(angle), zero, one, zero, np.sin(angle), zero, np.cos(angle)]
    ).reshape(3, 3)
    rotations = np.stack([np.eye(3), turn])
    gravities = (rotations @ GRAVITY[:, None])[..., 0]
    segments = [
        segments_along(camera, CROSSED, each=80, noise=0.2),
        segments_along(camera, CROSSED[:0], clutter=100),
    ]
    priors = [prior_of(camera, g, (0.0, 0.0), log_f_off=0.1) for g in gravities]
    # Both say the same of the rig: gravity is off in the frame of the rig.
    off = sphere.move(GRAVITY, np.array([0.02, -0.02], np.float64))
    priors = [
        p.moved(p.cameras, rotation @ off, p.covariance)
        for p, rotation in zip(priors, rotations, strict=True)
    ]
    answers = refine(priors, segments, rig=Rig(rotations, [0, 1], [0, 0]))
    for answer, gravity in zip(answers, gravities, strict=True):
        assert math.degrees(sphere.angle_between(answer.gravity, gravity).item()) < 0.2
    assert errors_of(answers[0], camera, gravities[0])[1] < 0.02


@pytest.mark.parametrize("k_hat", [-0.1, -0.06, -0.03, 0.03, 0.06, 0.1])
def test_a_bend_of_a_supposed_pinhole_is_borne_with(k_hat: float) -> None:
    """No lens is quite a pinhole: gravity and focal length are right all the same."""
    camera = camera_of("simple_radial")
    k1 = k_hat * (camera.f / camera.size[:, 1]) ** 2
    bent = replace(camera, distortion=k1[:, None])
    segments = segments_along(bent, CROSSED, each=150, clutter=60, noise=0.3)
    segments = replace(segments, curves=curves_of(bent, 40, noise=0.2))
    prior = prior_of(camera_of("pinhole"), GRAVITY, log_f_off=0.08, sigma_log_f=0.2)
    (answer,) = refine([prior], [segments])
    assert used(answer)
    assert answer.camera_model == "pinhole"
    angle, focal = errors_of(answer, bent, GRAVITY)
    assert angle < 0.3
    assert focal < 0.03


def test_a_clearly_bent_lens_is_used_with_what_it_is_worth() -> None:
    """Without long edges the bend is hardly known, and sigmas say so."""
    camera = camera_of("simple_radial")
    bent = replace(camera, distortion=np.array([[-0.2]]))
    prior = prior_of(camera_of("pinhole"), GRAVITY, log_f_off=0.08, sigma_log_f=0.2)
    straight, curved = (
        refine([prior], [segments_along(lens, CROSSED, each=150, clutter=60, noise=0.3)])[0]
        for lens in (camera_of("pinhole"), bent)
    )
    assert used(curved)
    assert curved.sigma.roll_deg < 0.5 * prior.sigma.roll_deg
    assert curved.sigma.vfov_deg > straight.sigma.vfov_deg
    error = math.log(curved.fy / bent.f.item())
    assert abs(error) < 3 * curved.sigma.focal / curved.fy


def test_lines_that_a_network_half_believes_leave_a_wide_sigma() -> None:
    """Between agreement and contradiction the answer says that either may be right."""
    camera = camera_of("pinhole")
    segments = segments_along(camera, CROSSED, each=80, clutter=80, noise=0.3)
    sigmas, shares = [], []
    for off in (0.0, 3.0, 4.0, 5.0, 6.0, 8.0):
        prior = prior_of(camera, GRAVITY, (off, 0.0), sigma_deg=0.3, sigma_log_f=0.1)
        (answer,) = refine([prior], [segments])
        assert answer.lines is not None
        sigmas.append(answer.sigma.roll_deg)
        shares.append(answer.lines.probability)
    assert sigmas[0] < 0.3
    assert max(sigmas) > 1.0
    assert min(shares) < 0.8


def test_two_parameters_of_distortion_are_recovered() -> None:
    """And everything is at most as sure as with one of them."""
    camera = camera_of("radial")
    segments = segments_along(camera, CROSSED, each=120, clutter=60, noise=0.2)
    segments = replace(segments, curves=curves_of(camera, 60, noise=0.1))
    prior = prior_of(camera, GRAVITY, log_f_off=0.08, sigma_log_f=0.2, sigma_distortion=0.05)
    moved = prior.cameras.distortion + np.array([[0.04, -0.03]], np.float64)
    (answer,) = refine(
        [replace(prior, cameras=replace(prior.cameras, distortion=moved))], [segments]
    )
    assert used(answer)
    angle, focal = errors_of(answer, camera, GRAVITY)
    assert angle < 0.2
    assert focal < 0.02
    for found, truth, sigma in zip(
        answer.distortion, camera.distortion[0].tolist(), answer.sigma.distortion, strict=True
    ):
        assert abs(found - truth) < max(0.01, 3 * sigma)
    simple = prior_of(camera_of("simple_radial"), GRAVITY, log_f_off=0.08, sigma_log_f=0.2)
    (less,) = refine([simple], [segments])
    assert answer.sigma.distortion[0] > less.sigma.distortion[0]
    assert answer.sigma.vfov_deg > 0.95 * less.sigma.vfov_deg


def test_what_lines_did_is_said_in_one_sentence() -> None:
    camera = camera_of("pinhole")
    prior = prior_of(camera, GRAVITY, log_f_off=0.1)
    segments = segments_along(camera, CROSSED, each=80, clutter=40, noise=0.3)
    (answer,) = refine([prior], [segments])
    lines = answer.lines
    assert lines is not None
    assert lines.verdict is Verdict.CROSSED
    assert lines.roll_deg == pytest.approx(answer.roll_deg - prior.roll_deg)
    assert lines.vfov_deg == pytest.approx(answer.vfov_deg - prior.vfov_deg)
    assert lines.vertical + sum(lines.level) + lines.unused == len(segments)
    assert f"{lines.vertical} vertical, {lines.level[0]} + {lines.level[1]} level" in str(lines)


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (slice(0, 1), Verdict.UPRIGHT),
        (slice(0, 2), Verdict.CROSSED),
        (slice(1, 2), Verdict.LEVEL),
        (slice(1, 3), Verdict.LEVEL),
    ],
)
def test_no_direction_is_claimed_that_no_segment_follows(seen: slice, verdict: Verdict) -> None:
    camera = camera_of("pinhole")
    segments = segments_along(camera, CROSSED[seen], each=150, clutter=20, noise=0.3)
    (answer,) = refine([prior_of(camera, GRAVITY, log_f_off=0.02)], [segments])
    lines = answer.lines
    assert lines is not None
    assert lines.verdict is verdict
    assert (lines.vertical > 0) == ("vertical and" in verdict or "vertical edges" in verdict)
    assert bool(lines.level) == ("level edges" in verdict)


F = 800.0
SIZES = ((1000, 750), (750, 1000))


def street(camera: Camera, gravity: Array, seed: int) -> Segments:
    """Segments along the vertical and two level directions at a right angle."""
    generator = np.random.default_rng(seed)
    angle = np.array([0.6, 0.6 + math.pi / 2], np.float64)
    level = np.stack([np.cos(angle), np.zeros(2), np.sin(angle)], -1)
    directions = np.concatenate([gravity[None], level @ sphere.world_from_camera(gravity)])
    parts = []
    for direction in directions:
        middle = generator.random((100, 2)) * camera.size[0]
        rays = camera.unproject(middle[None])[0][0]
        ends = [camera.project((rays + s * direction)[None])[0][0] for s in (-0.03, 0.03)]
        parts.append(np.stack(ends, 1))
    return Segments(np.concatenate(parts), 0.05).longest(300)


def test_one_focal_length_for_both() -> None:
    truths, priors, segments = [], [], []
    for i, size in enumerate(SIZES):
        camera = Camera.create("pinhole", np.array(F), size)
        angles = np.deg2rad([4.0 + 3 * i, -8.0])
        gravity = sphere.from_roll_pitch(angles[0], angles[1])
        centre = (size[0] / 2, size[1] / 2)
        start = one("pinhole", f=1.15 * F, size=size, c=centre)
        off = np.deg2rad(np.array([1.0, -1.5], np.float64))
        covariance = np.diag(np.array([0.03, 0.03, 0.3], np.float64) ** 2)
        priors.append(start.moved(start.cameras, sphere.move(gravity, off), covariance))
        truths.append(gravity)
        segments.append(street(camera, gravity, i))
    found = refine_turned(priors, segments, [0, 0])
    for answer, gravity, size, own in zip(found, truths, SIZES, segments, strict=True):
        assert isinstance(answer, Calibration)
        assert (answer.width, answer.height) == size
        assert (answer.cx, answer.cy) == (size[0] / 2, size[1] / 2)
        assert answer.fy == pytest.approx(F, rel=0.01)
        assert math.degrees(sphere.angle_between(answer.gravity, gravity).item()) < 0.1
        assert answer.lines is not None
        traces = answer.lines.traces
        assert traces is not None
        assert traces.segments is own
        (vertical,) = traces.directions[traces.vertical]
        assert abs(vertical @ answer.gravity) > 0.999
    assert found[0].fy == pytest.approx(found[1].fy, rel=1e-12)
