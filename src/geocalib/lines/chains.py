"""Segments that continue each other: pieces of one edge, straight or gently bent.

The detector breaks edges where something crosses them, where they are faint and where a lens bends
them. Two pieces of one arc have a chord from middle to middle whose direction is the mean of
theirs, whichever way the arc bends: the test does not favour straight ones.
"""

from __future__ import annotations

import math

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
    after = _following(ends)
    later = np.zeros(len(ends), np.bool_)
    later[after[after >= 0]] = True
    # In lists: Python's loops over arrays are slow.
    following, label = after.tolist(), [-1] * len(ends)
    count = 0
    # Chains from their first segment; what is left are rings.
    for at in (*np.flatnonzero(~later).tolist(), *np.flatnonzero(later).tolist()):
        if label[at] >= 0:
            continue
        while at >= 0 and label[at] < 0:
            label[at] = count
            at = following[at]
        count += 1
    return np.array(label, np.intp)


def _following(ends: Array) -> Indices:
    """(N,) the segment that continues each one best, where that is mutual; else -1."""
    # Places and directions as complex numbers: conj(a) b has their product and their cross product.
    start, end = np.ascontiguousarray(ends).view(np.complex128)[..., 0].T
    length = np.abs(end - start)
    along, middle = (end - start) / length, 0.5 * (start + end)
    farthest = max(LONGEST_GAP, LONGEST_OVERLAP)
    # In single precision: of all pairs, only those that turn too much for any distance that they
    # may have, or are far apart, are left out here.
    distance = math.sqrt(2) * farthest + 0.5 * (length + length.max())
    least = np.cos(np.minimum(BEND * distance + LOOSE, 0.5 * math.pi)).astype(np.float32)
    flat = along.view(np.float64).reshape(-1, 2).astype(np.float32)
    near = flat @ flat.T > least
    for first, last in ((start.real, end.real), (start.imag, end.imag)):
        off = np.subtract.outer(last.astype(np.float32), first.astype(np.float32))
        near &= np.abs(off, out=off) < farthest
    place = np.flatnonzero(near)
    i = place // len(ends)
    j = place - i * len(ends)
    mean = along[i] + along[j]
    offset = (mean / np.abs(mean)).conj() * (middle[j] - middle[i])
    short = 1 / (length * length)
    noise = WOBBLE * np.abs(offset.real) * np.sqrt(short[i] + short[j])
    # Most are not in line, which is seen first.
    fits = (np.abs(offset.imag) < ASIDE + noise) & (offset.real > 0.1 * (length[i] + length[j]))
    i, j, distance, aside = i[fits], j[fits], offset.real[fits], np.abs(offset.imag[fits])
    shorter = np.minimum(length[i], length[j])
    gap = ((start[j] - end[i]) * along[i].conj()).real
    turn = np.arcsin(np.clip((along[i].conj() * along[j]).imag, -1, 1))
    fits = (
        (np.abs(turn) < BEND * distance + LOOSE)
        & (gap > -np.minimum(OVERLAP * shorter, LONGEST_OVERLAP))
        & (gap < np.minimum(GAP * shorter, LONGEST_GAP))
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
