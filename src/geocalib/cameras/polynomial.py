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

STEP_SHRINKAGE = 0.7
"""A Newton step longer than this part of the step before it gives way to a bisection."""


@dataclass(frozen=True)
class Factor:
    """d(X) with its first two derivatives, and the slope e = d rho / dx with its first."""

    d: Tensor
    d1: Tensor
    d2: Tensor
    e: Tensor
    e1: Tensor


def value(X: Tensor, k: Parameters) -> Tensor:
    """d(X), by Horner's rule."""
    total = k[-1] * X
    for coefficient in reversed(k[:-1]):
        total = (total + coefficient) * X
    return total + 1


def slope(X: Tensor, k: Parameters) -> Tensor:
    """e(X) = d rho / dx = 1 + 3 k1 X + 5 k2 X^2 + ..."""
    return value(X, [(2 * i + 3) * coefficient for i, coefficient in enumerate(k)])


def factor(X: Tensor, k: Parameters) -> Factor:
    """Everything a jet needs of the polynomial at X = x^2."""
    d, d1, d2 = torch.ones_like(X), torch.zeros_like(X), torch.zeros_like(X)
    power = [torch.ones_like(X)]
    for _ in k:
        power.append(power[-1] * X)
    for i, coefficient in enumerate(k, start=1):
        d = d + coefficient * power[i]
        d1 = d1 + i * coefficient * power[i - 1]
        if i > 1:
            d2 = d2 + i * (i - 1) * coefficient * power[i - 2]
    return Factor(d, d1, d2, d + 2 * X * d1, 3 * d1 + 2 * X * d2)


def invert(rho: Tensor, k: Parameters, x_end: Tensor) -> Tensor:
    """The x in [0, x_end] with x d(x^2) = rho, for rho in the image of that interval.

    Newton's method, kept inside a shrinking bracket, with a bisection wherever its steps do not
    shrink (they may cycle around an inflection); the polynomial must increase on the interval.
    Differentiable: the last Newton step is taken with gradients, which is the implicit function
    theorem.
    """
    with torch.no_grad():
        tolerance = 1e-4 if rho.dtype == torch.float32 else 1e-9
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
    X = x * x
    steepness = slope(X, k)
    # At the very edge of the domain the slope vanishes and the iterate is already exact.
    safe = torch.where(steepness > 0, steepness, torch.ones_like(steepness))
    correction = (x * value(X, k) - rho) / safe
    x = x - torch.where(steepness > 0, correction, torch.zeros_like(x))
    return torch.minimum(x.clamp(min=0), x_end.detach())


def invert_squared(
    s: Tensor, k: Parameters, rho_end: Tensor, x_end: Tensor
) -> tuple[Tensor, Tensor]:
    """``invert`` at rho = sqrt(s), held at the domain's end rho_end = x_end d(x_end^2) outside
    it, and where s lies inside."""
    valid = s < rho_end**2
    # The square root has no derivative at 0; nothing depends on it there.
    inside = valid & (s > 0)
    rho = torch.sqrt(torch.where(inside, s, torch.ones_like(s)))
    # A hair inside, where the polynomial still grows.
    held = torch.where(valid, torch.zeros_like(s), EDGE * rho_end.detach())
    return invert(torch.where(inside, rho, held), k, x_end), valid
