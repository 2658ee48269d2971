"""Straight segments found in a photo at full resolution (OpenCV's line segment detector)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from geocalib.geometry.segments import Segments
from geocalib.imaging.read import Photo
from geocalib.lines.edges import opencv, profiles, refit_to_edges, trace_edges

Ends = npt.NDArray[np.float64]
"""(N, 2, 2) pixels: both ends, x and y."""

LONGEST_SIDE = 2000
"""Pixels: larger photos are shrunk to it, which also takes their noise away."""
SHORT_SIDE = 500
"""Half the pixels across the shorter side of which at least that many are decoded."""
NOISE = 0.35
"""Pixels: one sigma of an end of a segment, across it."""
SHORTEST = 0.015
"""Of the diagonal: shorter segments say little, and there are many."""
SAG = 1.0
"""Pixels by which a segment may leave its chord."""
ROUGH = 0.15
"""Pixels by which what was measured of an arc may differ from one."""
LEAST_BENT = 40.0
"""Pixels: shorter ones are not looked at for a bend."""
ALONG, REACH = 13, 5
"""Places along a segment, and pixels to either side, where its edge is looked for."""
MOST, SPARE = 500, 100
"""Segments kept, the longest, and how many more are looked at: pieces of bent ones are shorter."""
SCALE, WHOLE = 0.8, 5
"""At which the detector works, inside: it smooths away the stairs of slanted edges. And the fewest
pixels that are whole ones at that scale."""
SMALL = 500_000
"""Pixels below which a picture is looked at whole: to see twice what its halves share costs more
than a second thread gains, which has the network to run meanwhile."""
OVERLAP = 60
"""Pixels that both halves of a larger one have of each other."""
SAME_EDGE = 1.0
"""Pixels by which two segments of one edge may miss each other there."""


def detect(photo: Photo, threads: int = 2) -> Segments:
    """Return the longest straight segments of a photo, in pixels of the original.

    threads: how many may be used; two at most have something to do.
    """
    cv2 = opencv()
    left, top, right, bottom = photo.shown
    per_pixel = photo.size[0] / (right - left), photo.size[1] / (bottom - top)
    grey = cv2.cvtColor(photo.pixels, cv2.COLOR_RGB2GRAY)
    shrink = min(1.0, LONGEST_SIDE / max(grey.shape))
    if shrink < 1:
        size = round(shrink * grey.shape[1]), round(shrink * grey.shape[0])
        scale = np.array([grey.shape[1] / size[0], grey.shape[0] / size[1]])
        grey = cv2.resize(grey, size, interpolation=cv2.INTER_AREA)
    else:
        scale = np.ones(2)
    chords = _detect(grey, threads)
    longest = Segments(chords, NOISE).longest(MOST + SPARE).ends
    found = refit_to_edges(grey, straight_pieces(grey, longest))
    unit = scale * per_pixel
    curves = trace_edges(grey, chords, unit, np.array([left, top]) / scale)
    ends = (found * scale - (left, top)) * per_pixel
    least = SHORTEST * float(np.hypot(*photo.size))
    length = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=-1)
    return Segments(ends[length >= least], NOISE * float(unit.mean()), curves).longest(MOST)


def _detect(grey: npt.NDArray[Any], threads: int) -> Ends:
    """(N, 2, 2) ends of the segments of a grey picture. The halves of a large one are looked at
    side by side, or one after the other where there is one thread."""
    axis = int(grey.shape[1] >= grey.shape[0])
    seam = grey.shape[axis] // 2 // WHOLE * WHOLE
    if grey.size < SMALL:
        return _detect_alone(grey)
    parts = np.split(grey, [seam + OVERLAP], axis)[0], np.split(grey, [seam - OVERLAP], axis)[1]
    one, other = map(np.ascontiguousarray, parts)
    if threads > 1:
        with ThreadPoolExecutor(1) as pool:
            later = pool.submit(_detect_alone, other)
            first, second = _detect_alone(one), later.result()
    else:
        # A thread would have to request its memory again.
        first, second = _detect_alone(one), _detect_alone(other)
    second[..., 1 - axis] += seam - OVERLAP
    return join_halves(first, second, float(seam), 1 - axis)


def join_halves(first: Ends, second: Ends, seam: float, axis: int) -> Ends:
    """Segments of two halves of a picture, which meet where the coordinate of an axis is the seam
    and overlap there. What both see of one edge becomes one segment; the others belong to the half
    where their middle is."""
    first, second = (_ascending(ends, axis) for ends in (first, second))
    crossing = np.flatnonzero(first[:, 1, axis] > seam), np.flatnonzero(second[:, 0, axis] < seam)
    one, two = first[crossing[0]], second[crossing[1]]
    off = np.maximum(_distance(one[:, 1], two), _distance(two[:, 0], one).T)
    pairs = [
        (i, j)
        for i, j in enumerate(off.argmin(1) if off.size else ())
        if off[i, j] < SAME_EDGE and off[:, j].argmin() == i
    ]
    i, j = np.array(pairs, np.int64).reshape(-1, 2).T
    whole = np.stack([one[i, 0], two[j, 1]], 1)
    first, second = np.delete(first, crossing[0][i], 0), np.delete(second, crossing[1][j], 0)
    first = first[first[..., axis].mean(1) < seam]
    second = second[second[..., axis].mean(1) >= seam]
    return np.concatenate([first, second, whole])


def _ascending(ends: Ends, axis: int) -> Ends:
    """Return segments with the end first whose coordinate of an axis is smaller."""
    turn = ends[:, 0, axis] > ends[:, 1, axis]
    return np.where(turn[:, None, None], ends[:, ::-1], ends)


def _distance(points: npt.NDArray[np.float64], ends: Ends) -> npt.NDArray[np.float64]:
    """(P, N) pixels from points (P, 2) to the lines through segments."""
    along = ends[:, 1] - ends[:, 0]
    off = points[:, None] - ends[:, 0]
    area = off[..., 0] * along[:, 1] - off[..., 1] * along[:, 0]
    return np.asarray(np.abs(area) / np.linalg.norm(along, axis=-1).clip(min=1e-9))


def _detect_alone(grey: npt.NDArray[Any]) -> Ends:
    cv2 = opencv()
    lines = cv2.createLineSegmentDetector(scale=SCALE).detect(grey)[0]
    if lines is None:
        return np.zeros((0, 2, 2))
    # The detector counts from the centre of the first pixel of its own, smaller picture.
    return np.asarray(lines.reshape(-1, 2, 2), np.float64) + 0.5 / SCALE


def straight_pieces(grey: npt.NDArray[Any], ends: Ends) -> Ends:
    """Segments (N, 2, 2), those cut in two that leave their chord by more than ``SAG`` in between.

    A lens bends edges. The detector bridges a gentle bend with one segment, whose middle is then
    off the edge.
    """
    first, last = ends[:, :1], ends[:, 1:]
    length = np.linalg.norm(last - first, axis=-1)
    long = length[:, 0] >= LEAST_BENT
    if not long.any():
        return ends
    along = np.linspace(0, 1, ALONG)[1:-1, None]
    places = first[long] + along * (last - first)[long]
    direction = (last - first)[long] / length[long][..., None]
    normal = np.stack([-direction[..., 1], direction[..., 0]], -1)
    across = np.arange(0.5 - REACH, REACH, dtype=np.float32)
    step = np.abs(np.diff(profiles(grey, places, normal, REACH), axis=-1))
    offset = step @ across / step.sum(-1).clip(min=1.0)
    # Of a constant, a slope and an arc, the arc is the bend; what runs beside an edge adds to the
    # other two only.
    bump = 4 * along[:, 0] * (1 - along[:, 0])
    terms = np.stack([np.ones_like(bump), 2 * along[:, 0] - 1, bump], -1)
    constant, slope, sag = found = np.linalg.pinv(terms) @ offset.T
    # Texture beside a straight edge looks bent at times, but not smoothly.
    rough = np.sqrt(np.mean((offset.T - terms @ found) ** 2, 0))
    bent = (np.abs(sag) > SAG) & (rough < ROUGH)
    shifts = np.stack([constant - slope, constant + sag, constant + slope], -1)[bent]
    start, end = ends[long][bent].swapaxes(0, 1)
    path = np.stack([start, 0.5 * (start + end), end], 1) + shifts[..., None] * normal[bent]
    whole = np.delete(ends, np.flatnonzero(long)[bent], 0)
    return np.concatenate([whole, path[:, :2], path[:, 1:]])
