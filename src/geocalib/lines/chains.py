"""Segments that continue each other: pieces of one edge, straight or gently bent.

The detector breaks edges where something crosses them, where they are faint and where a lens bends
them. Two pieces of one arc have a chord from middle to middle whose direction is the mean of
theirs, whichever way the arc bends: the test does not favour straight ones.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

GAP, LONGEST_GAP = 1.5, 60.0
"""Of the shorter piece, and pixels: between the end of one and the start of the next."""
OVERLAP, LONGEST_OVERLAP = 0.8, 130.0
"""Likewise, where both show the same part of an edge."""
BEND, LOOSE = 1.2e-3, 0.03
"""Radians per pixel by which a lens may bend an edge, and radians of noise."""
ASIDE, WOBBLE = 1.0, 0.1
"""Pixels by which pieces may miss their arc, and more of them the longer the lever."""
DEAR = 5.0
"""Pixels of gap that are as bad as one pixel aside."""


def chains(ends: Array) -> Indices:
    """(N,) the number of the chain that each segment belongs to.

    ends: (N, 2, 2), from first to last end so that the brighter side is always on the same hand.
    """
    following = _following(ends)
    label = np.full(len(ends), -1)
    later = np.isin(np.arange(len(ends)), following)
    count = 0
    # Chains from their first segment; what is left are rings.
    for start in (*np.flatnonzero(~later), *np.flatnonzero(later)):
        at = start
        if label[at] >= 0:
            continue
        while at >= 0 and label[at] < 0:
            label[at] = count
            at = following[at]
        count += 1
    return label


def _following(ends: Array) -> Indices:
    """(N,) the segment that continues each one best, where that is mutual; else -1."""
    start, end = ends[:, 0], ends[:, 1]
    length = np.linalg.norm(end - start, axis=-1)
    along, middle = (end - start) / length[:, None], 0.5 * (start + end)
    across, down = (start[:, axis] - end[:, axis, None] for axis in (0, 1))
    farthest = max(LONGEST_GAP, LONGEST_OVERLAP)
    near = (np.abs(across) < farthest) & (np.abs(down) < farthest)
    i, j = np.nonzero(near & (along @ along.T > 0))
    shorter = np.minimum(length[i], length[j])
    gap = ((start[j] - end[i]) * along[i]).sum(-1)
    turn = np.arcsin(np.clip(_cross(along[i], along[j]), -1, 1))
    mean = along[i] + along[j]
    mean /= np.linalg.norm(mean, axis=-1, keepdims=True).clip(min=1e-6)
    apart = middle[j] - middle[i]
    distance = (apart * mean).sum(-1)
    aside = np.abs(_cross(mean, apart))
    noise = WOBBLE * np.hypot(distance / length[i], distance / length[j])
    fits = (
        (np.abs(turn) < BEND * distance + LOOSE)
        & (aside < ASIDE + noise)
        & (gap > -np.minimum(OVERLAP * shorter, LONGEST_OVERLAP))
        & (gap < np.minimum(GAP * shorter, LONGEST_GAP))
        & (distance > 0.1 * (length[i] + length[j]))
    )
    i, j = i[fits], j[fits]
    cost = np.maximum(gap[fits], 0) + DEAR * aside[fits]
    order = np.argsort(cost, kind="stable")
    after, before = np.full(len(ends), -1), np.full(len(ends), -1)
    # The cheapest comes last, and stays.
    after[i[order[::-1]]] = j[order[::-1]]
    before[j[order[::-1]]] = i[order[::-1]]
    mutual = before[after] == np.arange(len(ends))
    return np.where(mutual & (after >= 0), after, -1)


def _cross(a: Array, b: Array) -> Array:
    return np.asarray(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0], np.float64)
