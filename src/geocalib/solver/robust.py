"""The Huber kernel on squared residual norms."""

from __future__ import annotations

from geocalib.arrays import Array, clip, namespace


def huber(squared: Array, threshold: float | None) -> tuple[Array, Array]:
    """Cost of each residual and the weight with which it enters the normal equations.

    The cost is ``squared`` up to the threshold and 2 threshold norm - threshold^2 beyond.
    """
    if threshold is None:
        return squared, namespace(squared).ones_like(squared)
    xp = namespace(squared)
    norm = xp.sqrt(clip(squared, threshold**2))
    return xp.minimum(squared, 2 * threshold * norm - threshold**2), threshold / norm
