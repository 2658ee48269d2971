"""How a camera turned, by the pixels of two frames."""

from __future__ import annotations

import math

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from geocalib import Camera
from geocalib.localize.rotation import from_vector
from geocalib.synthetic import render_scene
from geocalib.video.heading import Heading, Turn
from geocalib.video.turns import Flow, Watcher, turn_of

CAMERA = Camera.create("pinhole", f=300.0, size=(480, 360), dtype=np.float64)
TURN = np.radians([0.8, -1.5, 1.0])


def flow_of(
    points: npt.NDArray[np.float64], turn: npt.NDArray[np.float64], camera: Camera = CAMERA
) -> Flow:
    """Of points (N, 3) in the first camera's frame, seen again in the second, with noise."""
    generator = np.random.default_rng(1)
    pixels = []
    for seen in (points, points @ from_vector(turn).T):
        at, valid = camera.project(seen[None])
        assert valid.all()
        pixels.append(at[0] + generator.normal(0, 0.1, (len(points), 2)))
    return Flow(*pixels)


def scene(count: int = 200) -> npt.NDArray[np.float64]:
    """Points in front of the camera, on a floor and on things that stand on it."""
    generator = np.random.default_rng(0)
    points = generator.uniform([-0.6, -0.4, 4.0], [0.6, 0.4, 20.0], (count, 3))
    points[:, :2] *= points[:, 2:]
    points[: count // 2, 1] = 1.6
    points[: count // 2, 0] *= 0.4
    return points


def off_deg(turn: Turn | None, truth: npt.NDArray[np.float64] = TURN) -> float:
    assert turn is not None
    return math.degrees(np.linalg.norm(cv2.Rodrigues(turn.rotation @ from_vector(truth).T)[0]))


@pytest.mark.parametrize("model", ["pinhole", "simple_radial", "kannala_brandt"])
def test_turn_of_points(model: str) -> None:
    camera = Camera.create(model, f=300.0, size=(480, 360), dtype=np.float64)
    assert off_deg(turn_of(flow_of(scene(), TURN, camera), camera)) < 0.03


def test_things_that_move_by_themselves_do_not_count() -> None:
    flow = flow_of(scene(), TURN)
    flow.after[160:] += [25.0, -4.0]
    assert off_deg(turn_of(flow, CAMERA)) < 0.1


@pytest.mark.parametrize("travel", [[0.0, 0.0, 0.15], [0.1, 0.0, 0.0], [0.03, 0.05, 0.1]])
def test_travel_is_no_turn(travel: list[float]) -> None:
    """A camera that is carried over a floor sees it move downwards, but does not turn; nor does the
    flow tell of the lens."""
    points = scene()
    points = points[points[:, 2] > 5]
    before = flow_of(points, 0 * TURN).before
    after = flow_of(points - np.array(travel), TURN).after
    turn = turn_of(Flow(before, after), CAMERA)
    assert off_deg(turn) < 0.2
    assert turn is not None
    assert math.degrees(np.sqrt(turn.covariance.trace())) > 0.4 * off_deg(turn)
    assert turn.information == 0


def test_a_wrong_lens_is_found_out() -> None:
    """A turn that was found with another focal length is right with its own, which it tells."""
    flow = flow_of(scene(), 2 * TURN)
    wrong = Camera.create("pinhole", f=345.0, size=(480, 360), dtype=np.float64)
    turn = turn_of(flow, wrong)
    assert turn is not None
    assert off_deg(turn, 2 * TURN) > 0.1
    assert off_deg(turn.of_lens(math.log(300), 0.0), 2 * TURN) < 0.05
    assert turn.better_log_f == pytest.approx(math.log(300), abs=0.05)
    sigma = turn.information**-0.5
    assert sigma < 0.1
    unsure = turn.of_lens(math.log(300), 0.01).covariance - turn.covariance
    assert unsure == pytest.approx(0.01 * np.outer(turn.slope, turn.slope))


def test_a_camera_that_stands_still_tells_nothing_of_its_lens() -> None:
    turn, large = (turn_of(flow_of(scene(), factor * TURN), CAMERA) for factor in (0, 1))
    assert off_deg(turn, 0 * TURN) < 0.02
    assert turn is not None
    assert large is not None
    assert turn.information < 0.1 * large.information


@pytest.mark.parametrize("turn", [0 * TURN, np.radians([0.0, 0.0, 1.1]), np.radians([0.2, 0, 0])])
def test_errors_of_points_are_no_stretched_picture(turn: npt.NDArray[np.float64]) -> None:
    """A longer lens makes angles of all errors smaller, which is no reason to prefer it."""
    flow = flow_of(scene(), turn)
    flow.after[:] += np.random.default_rng(2).normal(0, 0.3, flow.after.shape)
    for scale in (1.0, 1.5, 3.0):
        camera = Camera.create("pinhole", f=300.0 * scale, size=(480, 360), dtype=np.float64)
        found = turn_of(flow, camera)
        assert found is not None
        longer = found.better_log_f - math.log(300.0 * scale)
        assert longer < 3 * max(found.information, 1e-9) ** -0.5
        assert found.information < 25


def test_too_few_points() -> None:
    assert turn_of(flow_of(scene(200)[:20], TURN), CAMERA) is None


@pytest.fixture(scope="module")
def pictures() -> list[npt.NDArray[np.uint8]]:
    """Of a town, before and after ``TURN``."""
    level = np.array([[0.0, 1.0, 0.0]])
    picture = (255 * render_scene(CAMERA.cast(np.float32), level, subpixels=1)[0]).byte().numpy()
    first = np.ascontiguousarray(picture)
    half = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
    K = np.linalg.inv(half) @ CAMERA.K[0]
    matrix = K @ from_vector(TURN) @ np.linalg.inv(K)
    second = cv2.warpPerspective(first, matrix, (480, 360), borderMode=cv2.BORDER_REPLICATE)
    return [first, np.asarray(second, dtype=np.uint8)]


class TestWatcher:
    @pytest.mark.parametrize("scale", [1, 3])
    def test_turn_of_pictures(self, pictures: list[npt.NDArray[np.uint8]], scale: int) -> None:
        watcher, found = Watcher(), []
        for picture in pictures:
            large = cv2.resize(picture, None, fx=scale, fy=scale)
            found.append(watcher.see(np.asarray(large, dtype=np.uint8)))
        assert found[0] is None
        assert found[1] is not None
        camera = CAMERA.resize(480 * scale, 360 * scale)
        assert off_deg(turn_of(found[1], camera)) < 0.02

    def test_other_scenes_and_empty_ones(self, pictures: list[npt.NDArray[np.uint8]]) -> None:
        first, second = pictures
        noise = np.random.default_rng(0).integers(0, 255, first.shape).astype(np.uint8)
        for other in (noise, np.zeros_like(first), first[:200]):
            watcher = Watcher()
            assert watcher.see(other) is None
            assert watcher.see(second) is None


def test_headings_add_up() -> None:
    parts = [from_vector(np.array(v)) for v in ([0.1, 0.0, 0.2], [0.0, -0.3, 0.1])]
    covariances = [np.diag([1e-4, 2e-4, 3e-4]), np.diag([2e-4, 1e-4, 1e-4])]
    start = Heading.start()
    turns = [
        Turn(R, C, 0.0, np.zeros(3), 0.0, 0.0) for R, C in zip(parts, covariances, strict=True)
    ]
    middle = start.after(turns[0])
    end = middle.after(turns[1])
    whole = end.since(start)
    assert whole is not None
    assert whole[0] == pytest.approx(parts[1] @ parts[0])
    assert whole[1] == pytest.approx(covariances[1] + parts[1] @ covariances[0] @ parts[1].T)
    last = end.since(middle)
    assert last is not None
    assert last[0] == pytest.approx(parts[1])
    assert last[1] == pytest.approx(covariances[1])
    assert end.after(None).since(end) is None
