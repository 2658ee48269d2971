"""Odd polynomials against numpy's root finder."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from geocalib.cameras import polynomial

# The third and fourth make plain Newton steps cycle around an inflection for ever.
POLYNOMIALS = [
    [-0.2],
    [0.4, 0.1],
    [18.668789631869558, -263.7488684285472],
    [1.1994971751582626, 1.0006302469898576, -0.5951466615753738, -1.2344267975741574],
    [0.05, -0.01, 0.003, -0.001],
]


def tensors(k: list[float]) -> list[torch.Tensor]:
    return [torch.tensor([value], dtype=torch.float64) for value in k]


def end_of(k: list[float]) -> float:
    """Where the polynomial stops growing, from the roots of its derivative in x^2; at most 2."""
    slope = [1.0, *((2 * i + 3) * value for i, value in enumerate(k))]
    roots = np.roots(slope[::-1])
    real = roots[np.isreal(roots)].real
    return min([2.0, *np.sqrt(real[real > 0])])


@pytest.mark.parametrize("k", POLYNOMIALS)
def test_inverse_against_numpy(k: list[float]) -> None:
    end = end_of(k)
    x_end = torch.tensor([end], dtype=torch.float64)
    rho_end = x_end * polynomial.value(x_end**2, tensors(k))
    rho = torch.linspace(0, 0.999, 1000, dtype=torch.float64) * rho_end
    x = polynomial.invert(rho, tensors(k), x_end)
    # x + k1 x^3 + k2 x^5 + ... - rho, highest power first.
    odd = [1.0, *k]
    for found, radius in zip(x.tolist(), rho.tolist(), strict=True):
        coefficients = [c for value in reversed(odd) for c in (value, 0.0)]
        coefficients[-1] = -radius
        roots = np.roots(coefficients)
        roots = roots[np.isreal(roots)].real
        expected = min(roots[roots >= 0])
        assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("k", POLYNOMIALS)
def test_factor_against_autograd(k: list[float]) -> None:
    X = torch.linspace(0, 3, 7, dtype=torch.float64, requires_grad=True)
    p = polynomial.factor(X, tensors(k))
    torch.testing.assert_close(p.d, polynomial.value(X, tensors(k)))
    torch.testing.assert_close(p.e, polynomial.slope(X, tensors(k)))
    x = torch.sqrt(X.detach()[1:]).requires_grad_()
    (slope,) = torch.autograd.grad((x * polynomial.value(x * x, tensors(k))).sum(), x)
    torch.testing.assert_close(p.e[1:], slope)
    (d1,) = torch.autograd.grad(p.d.sum(), X, retain_graph=True)
    torch.testing.assert_close(p.d1.expand_as(d1), d1)
    (e1,) = torch.autograd.grad(p.e.sum(), X, retain_graph=True)
    torch.testing.assert_close(p.e1.expand_as(e1), e1)
    if len(k) == 1:
        assert p.d2 is None
    else:
        assert p.d2 is not None
        (d2,) = torch.autograd.grad(p.d1.sum(), X)
        torch.testing.assert_close(p.d2.expand_as(d2), d2)


def test_inverse_of_far_points_in_single_precision() -> None:
    k = [torch.tensor([0.3]), torch.tensor([0.02])]
    x = torch.logspace(-6, 2, 50)
    rho = x * polynomial.value(x * x, k)
    found = polynomial.invert(rho, k, torch.tensor([torch.inf]))
    torch.testing.assert_close(found, x, rtol=1e-5, atol=0)
