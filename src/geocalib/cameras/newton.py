"""Newton's method for undistortion and projection: exact, and differentiable."""

from __future__ import annotations

import math
from collections.abc import Callable

from geocalib.arrays import Array, detach, namespace

MAX_STEPS = 60

FLAT = 1e-6
"""Slope below which the last step is not trusted."""

STEP_SHRINKAGE = 0.7
"""A step longer than this part of the step before it gives way to a bisection."""

Error = Callable[[Array], tuple[Array, Array]]
"""A function of x >= 0 that rises through 0 where the answer is, and its slope."""


def tolerance(like: Array) -> float:
    """Relative error that the last step, which squares it, takes below the rounding."""
    return 1e-4 if like.dtype == namespace(like).float32 else 1e-9


def bracketed_newton(error: Error, start: Array, end: Array) -> Array:
    """The root in [0, end], which may be infinite: Newton's method inside a shrinking bracket, with
    a bisection wherever its steps leave it or do not shrink (they may cycle around an inflection).
    """
    xp = namespace(start)
    enough = tolerance(start)
    low = xp.zeros_like(start)
    high = xp.broadcast_to(end, start.shape)
    x = start
    moved = xp.full_like(start, math.inf)
    for _ in range(MAX_STEPS):
        off, slope = error(x)
        low = xp.where(off < 0, x, low)
        high = xp.where(off > 0, x, high)
        step = x - off / slope
        middle = xp.where(xp.isinf(high), 2 * low, 0.5 * (low + high))
        # A step of rounding size ends the search; it need not shrink.
        longest = xp.maximum(STEP_SHRINKAGE * moved, enough * x)
        shrinks = abs(step - x) <= longest
        step = xp.where((step >= low) & (step <= high) & shrinks, step, middle)
        moved = abs(step - x)
        x = step
        if bool((moved <= enough * x).all()):
            break
    return x


def last_step(error: Error, x: Array, end: Array) -> Array:
    """One more step, with gradients: by the implicit function theorem those of the root."""
    xp = namespace(x)
    off, slope = error(x)
    # At the very edge of the domain the slope vanishes and x is already exact.
    x = x - off / slope.clip(FLAT)
    return xp.minimum(x.clip(0), detach(end))
