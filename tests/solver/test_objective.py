"""The Huber kernel."""

from __future__ import annotations

import pytest
import torch

from geocalib.solver.objective import huber_kernel

NORMS = torch.tensor([0.0, 0.002, 0.00999, 0.01, 0.01001, 0.05, 2.0], dtype=torch.float64)


def test_plain_squares_without_a_threshold() -> None:
    cost, weight = huber_kernel(NORMS**2, None)
    assert cost.equal(NORMS**2)
    assert weight.equal(torch.ones_like(NORMS))


def test_quadratic_within_and_linear_beyond() -> None:
    cost, weight = huber_kernel(NORMS**2, 0.01)
    inside = NORMS <= 0.01
    torch.testing.assert_close(cost[inside], NORMS[inside] ** 2)
    torch.testing.assert_close(weight[inside], torch.ones_like(NORMS[inside]))
    outside = NORMS[~inside]
    torch.testing.assert_close(cost[~inside], 0.02 * outside - 1e-4)
    torch.testing.assert_close(weight[~inside], 0.01 / outside)


def test_value_and_slope_are_continuous_at_the_threshold() -> None:
    close = 0.01 + torch.tensor([-1e-9, 1e-9], dtype=torch.float64)
    cost, weight = huber_kernel(close**2, 0.01)
    assert float(cost.diff()) == pytest.approx(2 * 0.01 * 2e-9, rel=1e-3)
    assert float(weight.diff().abs()) < 1e-6


def test_weight_is_the_slope_of_the_cost() -> None:
    squared = (NORMS[[1, 2, 4, 5, 6]] ** 2).requires_grad_()
    cost, weight = huber_kernel(squared, 0.01)
    (slope,) = torch.autograd.grad(cost.sum(), squared)
    torch.testing.assert_close(slope, weight)


def test_derivatives_at_zero_are_finite() -> None:
    squared = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    cost, weight = huber_kernel(squared, 0.01)
    (slope,) = torch.autograd.grad((cost + weight).sum(), squared)
    assert bool(torch.isfinite(slope).all())
