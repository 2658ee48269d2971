"""What the two libraries of arrays do not have in common does the same in both."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from geocalib import arrays
from libraries import assert_same, numpy_of

VALUES = torch.arange(12, dtype=torch.float64).reshape(4, 3) - 5
INDEX = torch.tensor([2, 0, 2, 4])
MATRICES = torch.tensor([[[2.0, 1.0], [1.0, 3.0]], [[1.0, 2.0], [2.0, 4.0]]]).double()
"""The second one is singular."""


@pytest.mark.parametrize(
    "function",
    [
        lambda x, index: arrays.sum_rows(x, index, 5),
        lambda x, index: arrays.sum_rows(x[:, 0], index, 5),
        lambda x, index: arrays.max_rows(x[0, :1] + 0 * x[:, 0], index[:1], x[3, 2:]),
        lambda x, index: arrays.min_rows(0 * index, index[:1], index[1:2] - 3),
        lambda x, index: arrays.replace_rows(x, index[:2], x[:2] + 1),
        lambda x, index: arrays.unstack(x),
        lambda x, index: arrays.unstack(x, 0),
        lambda x, index: x.clip(-1, 2),
        lambda x, index: x.clip(max=0),
        lambda x, index: arrays.inverse_root(abs(x) + 1),
        lambda x, index: arrays.row_max(x),
        lambda x, index: arrays.row_max(x[:, :0]),
        lambda x, index: arrays.diagonal_matrices(x / 0.0),
        lambda x, index: arrays.diagonal(arrays.diagonal_matrices(x)),
        lambda x, index: arrays.counting(3, x, x.dtype),
        lambda x, index: arrays.degrees(x),
    ],
)
def test_alike(function: Callable[..., Any]) -> None:
    with np.errstate(all="ignore"):
        assert_same(function(VALUES, INDEX), function(*numpy_of([VALUES, INDEX])))


def test_means_of_rows() -> None:
    mean = arrays.mean_rows(VALUES.numpy(), np.array([1, 0, 1, 1]), 2)
    assert mean.tolist() == [[-2, -1, 0], [0, 1, 2]]


@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_a_singular_matrix_leaves_the_others_alone(library: str) -> None:
    matrices = MATRICES if library == "torch" else MATRICES.numpy()
    inverse = arrays.inverse(matrices)
    np.testing.assert_allclose(inverse[0] @ matrices[0], np.eye(2), atol=1e-12)
    assert not np.isfinite(np.asarray(inverse[1])).all()
    solution = arrays.solve(matrices, matrices[:, :, :1])
    np.testing.assert_allclose(solution[0, :, 0], [1, 0], atol=1e-12)
    assert not np.isfinite(np.asarray(solution[1])).all()


class TestLibraries:
    def test_of_things(self) -> None:
        for thing in (VALUES, VALUES.dtype, VALUES.device, torch.nn.Parameter(VALUES)):
            assert arrays.is_tensor(thing)
        for thing in (VALUES.numpy(), np.float64(1), VALUES.numpy().dtype, "cpu", 1.0):
            assert not arrays.is_tensor(thing)

    def test_tensors_outweigh_arrays_and_arrays_numbers(self) -> None:
        array = VALUES.numpy()
        assert arrays.common_namespace(1.0, array, VALUES) is arrays.namespace(VALUES)
        assert arrays.common_namespace(1.0, array) is arrays.namespace(array)
        assert arrays.common_namespace(1.0, np.float32) is arrays.namespace(array)
        assert arrays.common_namespace(1.0, None) is arrays.namespace(array)


class TestDerivatives:
    def test_are_kept_on_the_way(self) -> None:
        leaf = VALUES.clone().requires_grad_()
        assert arrays.as_array(leaf, VALUES.float()).requires_grad
        assert not arrays.detach(leaf).requires_grad
        with arrays.no_gradients():
            assert not (2 * leaf).requires_grad
        with arrays.inference():
            assert (2 * VALUES).is_inference()

    def test_numpy_has_none(self) -> None:
        array = VALUES.numpy()
        assert arrays.detach(array) is array


def test_rounding_is_that_of_the_numbers() -> None:
    single = np.zeros(1, np.float32)
    assert math.isclose(arrays.eps(single), 2**-23)
    assert arrays.eps(VALUES) == arrays.eps(VALUES.numpy()) == 2**-52
    assert arrays.tiny(single) == torch.finfo(torch.float32).tiny
