"""Arrays of unknowns, cameras and segments; arrow-shaped systems against dense ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from streets import PARAMETERS, SIZE, camera_of, gravity_of, prior_of

from geocalib.cameras import get_model
from geocalib.geometry.fields import Free
from geocalib.geometry.segments import Segments
from geocalib.lines.distortion import measure_sagittas
from geocalib.lines.prior import network_prior
from geocalib.lines.unknowns import (
    PAD_TO,
    Array,
    Guess,
    Layout,
    SegmentBatch,
    assemble,
    compass,
    cross,
    eliminate_headings,
    level_frame,
    powers,
    unit,
)
from geocalib.solver.coupling import couple
from geocalib.solver.state import Frame
from lenses import ALL_MODELS

GRAVITY = gravity_of(3.0, 8.0)
ALONE = couple(1, None, None)


def start(model: str) -> tuple[Guess, Layout]:
    prior, layout = network_prior([prior_of(camera_of(model), GRAVITY)], ALONE)
    return prior.mean, layout


@pytest.mark.parametrize("model", ALL_MODELS)
def test_a_small_step_is_what_it_says(model: str) -> None:
    guess, layout = start(model)
    step = 1e-6 * np.arange(1.0, 1 + layout.intrinsics)
    moved = layout.moved(guess, np.array([[[1e-6, -2e-6]]]), step[None, None])
    assert moved.log_f - guess.log_f == pytest.approx(step[0], rel=1e-3)
    assert (moved.distortion - guess.distortion)[0, 0] == pytest.approx(step[1:], rel=1e-3)
    angle = np.linalg.norm(moved.gravity - guess.gravity)
    assert angle == pytest.approx(np.hypot(1e-6, 2e-6), rel=1e-3)


def test_steps_end_at_the_bounds() -> None:
    guess, layout = start("simple_radial")
    far = layout.moved(guess, np.zeros((1, 1, 2)), np.array([[[50.0, -50.0]]]))
    assert far.log_f[0, 0] == layout.high[0]
    assert far.distortion[0, 0, 0] == layout.model.bounds[0][0]


@pytest.mark.parametrize("model", ["simple_radial", "radial", "division", "division2"])
def test_straight_edges_stay_straight_along_a_zoom(model: str) -> None:
    """A step of log f, and of distortion as it goes with f to first order, bends nothing."""
    from streets import curves_of

    camera = camera_of(model)
    curves = curves_of(camera)
    guess, layout = start(model)
    d_log_f = 0.4
    along = powers(layout.model) * np.array(PARAMETERS[model]) * d_log_f
    moved = layout.moved(guess, np.zeros((1, 1, 2)), np.array([[[d_log_f, *along]]]))
    zoomed = layout.camera_of(moved, 0)
    assert zoomed.f.item() == pytest.approx(camera.f.item() * np.exp(d_log_f))
    assert np.abs(measure_sagittas(zoomed, curves).sagitta).max() < 1e-6
    stiff = replace(zoomed, distortion=camera.distortion)
    assert np.abs(measure_sagittas(stiff, curves).sagitta).max() > 0.1


def test_the_camera_of_a_guess_is_the_one_it_came_from() -> None:
    guess, layout = start("radial")
    camera, found = camera_of("radial"), layout.camera_of(guess, 0)
    assert found.f.item() == pytest.approx(camera.f.item())
    assert np.array_equal(found.distortion, camera.distortion)
    assert found.size.tolist() == [list(SIZE)]
    assert layout.free == Free(True, True, (0, 1))


def test_guesses_are_taken_apart_and_put_together() -> None:
    guess, _ = start("pinhole")
    several = Guess.concatenate([guess, replace(guess, log_f=guess.log_f + 1)])
    assert len(several) == 2
    assert several[[1]].log_f == guess.log_f + 1


def test_level_frames_and_headings() -> None:
    frame = level_frame(GRAVITY)
    assert np.allclose(frame @ frame.T, np.eye(3))
    headings = compass(6) @ frame
    assert np.allclose(headings @ GRAVITY, 0, atol=1e-12)
    assert np.allclose(np.degrees(np.arccos(headings[0] @ headings[1])), 30)


def test_products_and_lengths() -> None:
    a, b = np.random.default_rng(0).normal(size=(2, 4, 3))
    assert np.allclose(cross(a, b), np.cross(a, b))
    assert np.allclose(np.linalg.norm(unit(a), axis=-1), 1)


def segments(*ends: tuple[float, float, float, float], noise: float = 0.5) -> Segments:
    return Segments(np.array(ends, np.float64).reshape(-1, 2, 2), noise)


def test_middle_direction_and_length() -> None:
    batch = SegmentBatch.create([segments((0, 0, 6, 8), noise=0.25)])
    assert np.allclose(batch.middle[0, :, 0], [3, 4])
    assert np.allclose(batch.length, 10)
    across, along = batch.sides[0, ..., 0]
    assert np.allclose(along, [0.6, 0.8])
    assert np.allclose(across, [-0.8, 0.6])
    assert batch.noise.tolist() == [0.25]


def test_pictures_are_padded_with_segments_of_no_length() -> None:
    batch = SegmentBatch.create([segments((0, 0, 6, 8)), segments((0, 0, 1, 0), (0, 0, 0, 2))])
    assert batch.length.tolist() == [[10, 0], [1, 2]]
    assert np.isfinite(batch.sides).all()
    assert len(batch) == 2
    assert batch[1:].length.tolist() == [[1, 2]]


def test_one_beside_others_is_padded_further() -> None:
    batch = SegmentBatch.create([segments((0, 0, 6, 8), (0, 0, 0, 2))])
    rounded = batch.padded()
    assert rounded.length.shape == (1, PAD_TO)
    assert rounded.length[0, :3].tolist() == [10, 2, 0]
    assert rounded.longest(2).sides.tolist() == batch.sides.tolist()
    assert rounded.padded().length.shape == (1, PAD_TO)


def test_the_longest_come_first() -> None:
    batch = SegmentBatch.create([segments((0, 0, 6, 8), (0, 0, 0, 2))]).longest(1)
    assert batch.length.tolist() == [[10]]
    assert batch.sides.shape == (1, 2, 2, 1)


ROWS = 3
"""Guesses."""


def layout_of(groups: list[int]) -> Layout:
    """Of images, those of one group by one camera."""
    coupling = couple(len(groups), groups, None)
    cameras = len(coupling.camera_component)
    size = np.tile([640.0, 480.0], (cameras, 1))
    free = Free(True, True, (0,))
    model = get_model("simple_radial")
    return Layout.create(Frame.create(model, size, np.ones(cameras), free), coupling)


def positive(shape: tuple[int, ...], size: int) -> Array:
    """(*shape, size, size) positive definite."""
    root = np.random.default_rng(0).normal(size=(*shape, size, size + 3))
    return np.asarray(root @ np.swapaxes(root, -1, -2))


@pytest.mark.parametrize("groups", [[0], [0, 0, 0]])
def test_the_solution_is_that_of_the_dense_system(groups: list[int]) -> None:
    layout, images = layout_of(groups), len(groups)
    a, own = layout.tangents, layout.intrinsics
    matrix = positive((ROWS, images), a + own)
    vector = np.random.default_rng(1).normal(size=(ROWS, images, a + own))
    arrow, (time, camera) = assemble(matrix, vector, layout)
    x_time, x_camera = arrow.eliminate().solve(time, camera)
    count = images * a + own
    dense, right = np.zeros((ROWS, count, count)), np.zeros((ROWS, count))
    for image in range(images):
        at = [*range(image * a, image * a + a), *range(images * a, count)]
        dense[np.ix_(range(ROWS), at, at)] += matrix[:, image]
        right[np.ix_(range(ROWS), at)] += vector[:, image]
    expected = np.linalg.solve(dense, right[..., None])[..., 0]
    assert np.allclose(np.concatenate([x_time.reshape(ROWS, -1), x_camera], 1), expected)
    if images == 1:
        assert np.array_equal(arrow.dense(), dense)


def test_headings_are_eliminated() -> None:
    hessian = positive((ROWS, 2), 6)
    gradient = np.random.default_rng(1).normal(size=(ROWS, 2, 6))
    small, vector, turns = eliminate_headings(hessian, gradient, 4)
    step = -np.linalg.solve(small, vector[..., None])[..., 0]
    expected = -np.linalg.solve(hessian, gradient[..., None])[..., 0]
    assert np.allclose(step, expected[..., :4])
    assert np.allclose(turns.after(step), expected[..., 4:])


def test_a_heading_that_no_segment_follows_stays() -> None:
    hessian = positive((1, 1), 4)
    hessian[..., 3, :] = hessian[..., :, 3] = 0
    gradient = np.array([[[1.0, -2.0, 0.5, 0.0]]])
    small, vector, turns = eliminate_headings(hessian, gradient, 3)
    assert np.array_equal(small, hessian[..., :3, :3])
    assert np.array_equal(vector, gradient[..., :3])
    assert turns.after(np.ones((1, 1, 3)))[0, 0, 0] == 0
