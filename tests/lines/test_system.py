"""Arrow-shaped systems against dense ones."""

from __future__ import annotations

import numpy as np
import pytest

from geocalib.cameras import get_model
from geocalib.geometry.fields import Free
from geocalib.lines.system import assemble, eliminate_headings
from geocalib.lines.unknowns import Array, Layout
from geocalib.solver.coupling import couple
from geocalib.solver.state import Frame

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
