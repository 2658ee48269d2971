"""Newton's method for undistortion and projection: exact, and differentiable."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

MAX_STEPS = 60

FLAT = 1e-6
"""Slope below which the last step is not trusted."""

STEP_SHRINKAGE = 0.7
"""A step longer than this part of the step before it gives way to a bisection."""

Error = Callable[[Tensor], tuple[Tensor, Tensor]]
"""A function of x >= 0 that rises through 0 where the answer is, and its slope."""


def tolerance(like: Tensor) -> float:
    """Relative error that the last step, which squares it, takes below the rounding."""
    return 1e-4 if like.dtype == torch.float32 else 1e-9


def bracketed_newton(error: Error, start: Tensor, end: Tensor) -> Tensor:
    """The root in [0, end], which may be infinite: Newton's method inside a shrinking bracket, with
    a bisection wherever its steps leave it or do not shrink (they may cycle around an inflection).
    """
    enough = tolerance(start)
    low = torch.zeros_like(start)
    high = end.expand_as(start)
    x = start
    moved = torch.full_like(start, torch.inf)
    for _ in range(MAX_STEPS):
        off, slope = error(x)
        low = torch.where(off < 0, x, low)
        high = torch.where(off > 0, x, high)
        step = x - off / slope
        middle = torch.where(torch.isinf(high), 2 * low, 0.5 * (low + high))
        # A step of rounding size ends the search; it need not shrink.
        longest = torch.maximum(STEP_SHRINKAGE * moved, enough * x)
        shrinks = (step - x).abs() <= longest
        step = torch.where((step >= low) & (step <= high) & shrinks, step, middle)
        moved = (step - x).abs()
        x = step
        if bool((moved <= enough * x).all()):
            break
    return x


def last_step(error: Error, x: Tensor, end: Tensor) -> Tensor:
    """One more step, with gradients: by the implicit function theorem those of the root."""
    off, slope = error(x)
    # At the very edge of the domain the slope vanishes and x is already exact.
    x = x - off / slope.clamp(min=FLAT)
    return torch.minimum(x.clamp(min=0), end.detach())
