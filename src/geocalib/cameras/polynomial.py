"""Odd polynomials rho = x d(x^2), d(X) = 1 + k1 X + k2 X^2 + ...: value, slope, exact inverse.

Shared by the models whose distortion is such a polynomial, in x = tan(theta) (simple_radial,
radial) or in x = theta (kannala_brandt).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from geocalib.cameras.base import Parameters

MAX_NEWTON_STEPS = 60

EDGE = 1 - 1e-5
"""Where a radius outside the domain is held, relative to the domain's end."""

FLAT = 1e-6
"""Slope below which the last Newton step is not trusted."""

STEP_SHRINKAGE = 0.7
"""A Newton step longer than this part of the step before it gives way to a bisection."""


@dataclass(frozen=True)
class Factor:
    """d(X) with its first two derivatives, and the slope e = d rho / dx with its first."""

    d: Tensor
    d1: Tensor
    d2: Tensor | None
    """None where it vanishes."""
    e: Tensor
    e1: Tensor


def value(X: Tensor, k: Parameters) -> Tensor:
    """d(X), by Horner's rule."""
    return _horner(X, k) * X + 1


def slope(X: Tensor, k: Parameters) -> Tensor:
    """e(X) = d rho / dx = 1 + 3 k1 X + 5 k2 X^2 + ..."""
    return value(X, [(2 * i + 3) * coefficient for i, coefficient in enumerate(k)])


def factor(X: Tensor, k: Parameters) -> Factor:
    """Everything a jet needs of the polynomial at X = x^2."""
    d = value(X, k)
    d1 = _horner(X, [i * coefficient for i, coefficient in enumerate(k, start=1)])
    twice_X = X + X
    e, e1 = d + twice_X * d1, 3 * d1
    if len(k) == 1:
        return Factor(d, d1, None, e, e1)
    d2 = _horner(X, [i * (i + 1) * coefficient for i, coefficient in enumerate(k[1:], start=1)])
    return Factor(d, d1, d2, e, e1 + twice_X * d2)


def _horner(X: Tensor, coefficients: Parameters) -> Tensor:
    total = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = total * X + coefficient
    return total


def invert(rho: Tensor, k: Parameters, x_end: Tensor) -> Tensor:
    """The x in [0, x_end] with x d(x^2) = rho, for rho in the image of that interval.

    The polynomial must increase on the interval. Differentiable: the last Newton step is taken
    with gradients, which is the implicit function theorem.
    """
    with torch.no_grad():
        tolerance = 1e-4 if rho.dtype == torch.float32 else 1e-9
        x = _newton(rho, k, x_end, tolerance)
        if x is None:
            x = _bracketed_newton(rho, k, x_end, tolerance)
    X = x * x
    # At the very edge of the domain the slope vanishes and the iterate is already exact.
    steepness = slope(X, k).clamp(min=FLAT)
    x = x - (x * value(X, k) - rho) / steepness
    return torch.minimum(x.clamp(min=0), x_end.detach())


def _newton(rho: Tensor, k: Parameters, x_end: Tensor, tolerance: float) -> Tensor | None:
    """Plain Newton steps, which nearly always suffice; None where they do not settle."""
    # Exact at rho = 0 and at the end of the domain of a polynomial with k1 < 0 alone.
    x = 3 * rho / (2 + torch.sqrt((1 + 6.75 * k[0] * rho * rho).clamp(min=0)))
    x = torch.minimum(x, 0.999 * x_end)
    for count in range(8):
        X = x * x
        step = x - (x * value(X, k) - rho) / slope(X, k)
        moved, x = (step - x).abs(), step
        if count >= 2 and bool(((moved <= tolerance * x) & (x <= x_end)).all()):
            return x
    return None


def _bracketed_newton(rho: Tensor, k: Parameters, x_end: Tensor, tolerance: float) -> Tensor:
    """Newton's method inside a shrinking bracket, with a bisection wherever its steps leave it
    or do not shrink (they may cycle around an inflection)."""
    low = torch.zeros_like(rho)
    high = x_end.expand_as(rho)
    x = torch.minimum(rho, 0.99 * high)
    moved = torch.full_like(rho, torch.inf)
    for _ in range(MAX_NEWTON_STEPS):
        X = x * x
        error = x * value(X, k) - rho
        low = torch.where(error < 0, x, low)
        high = torch.where(error > 0, x, high)
        step = x - error / slope(X, k)
        middle = torch.where(torch.isinf(high), 2 * low, 0.5 * (low + high))
        # A step of rounding size ends the search; it need not shrink.
        longest = torch.maximum(STEP_SHRINKAGE * moved, tolerance * x)
        shrinks = (step - x).abs() <= longest
        step = torch.where((step >= low) & (step <= high) & shrinks, step, middle)
        moved = (step - x).abs()
        x = step
        if bool((moved <= tolerance * x).all()):
            break
    return x


def invert_squared(
    s: Tensor, k: Parameters, rho_end: Tensor, x_end: Tensor
) -> tuple[Tensor, Tensor]:
    """``invert`` at rho = sqrt(s), held at the domain's end rho_end = x_end d(x_end^2) outside
    it, and where s lies inside."""
    valid = s < rho_end * rho_end
    # The square root has no derivative at 0; nothing depends on it there.
    rho = torch.sqrt(s.clamp(min=torch.finfo(s.dtype).tiny))
    if not bool(valid.all()):
        # A hair inside, where the polynomial still grows.
        rho = torch.where(valid, rho, EDGE * rho_end.detach())
    return invert(rho, k, x_end), valid
