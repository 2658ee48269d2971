"""Straight segments and long edges of a photo, at full resolution, to a fraction of a pixel.

OpenCV's detector finds segments. Brightness across a segment rises most at its edge; a bell fitted
to the slopes there tells where. Segments that continue each other are chained: the detector breaks
edges where something crosses them, where they are faint and where a lens bends them. Two pieces of
one arc have a chord from middle to middle whose direction is the mean of theirs, whichever way the
arc bends, so the test does not favour straight ones. Along a chain, places are measured every few
pixels and averaged in a few stretches; the arc that they form is the bend, one number, the sagitta.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from geocalib.geometry.segments import STRETCHES, Curves, Segments
from geocalib.imaging.read import Photo
from geocalib.records import dataclass

Ends = npt.NDArray[np.float64]
"""(N, 2, 2) pixels: both ends, x and y."""

LONGEST_SIDE = 2000
"""Pixels: larger photos are shrunk to it, which also takes their noise away."""
SHORT_SIDE = 500
"""Half the pixels across the shorter side of which at least that many are decoded."""
NOISE = 0.35
"""Pixels: one sigma of an end of a segment, across it."""
SHORTEST = 0.015
"""Least length of a segment, as a share of the diagonal: shorter segments say little, and there are
many."""
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


@cache
def opencv() -> Any:
    """Import and return ``cv2``, with one thread: it is slow to import.

    OpenCV's pictures are small here, and a pool of threads beside torch's and ours makes each wait
    for the other: on a busy machine lines then took several times as long.
    """
    import cv2

    cv2.setNumThreads(1)
    return cv2


Array = npt.NDArray[np.float64]
Single = npt.NDArray[np.float32]
"""Brightness has few digits, and edges are measured at thousands of places."""
ROW = 1024
"""Places looked up at once: OpenCV's tables have fewer than 32768 rows."""
FAINTEST = 1.5
"""Grey levels per pixel: less is no edge."""
NEAR = 2.0
"""Pixels, one sigma: how far from the segment its edge is believed to be."""
DARKEST = 1e-3
"""Grey levels per pixel: the least slope whose logarithm is taken."""
MIDDLE, PLACES, ASIDE = 0.7, 9, 3
"""Share of a segment's length that is measured again, places there, and pixels to each side."""
FEWEST, FARTHEST = 6, 1.5
"""Places where the edge must be found, and within how many pixels."""


def profiles(grey: npt.NDArray[Any], places: Array, normals: Array, reach: int) -> Single:
    """(..., 2 reach + 1) brightness at whole pixels across places (..., 2) along normals that
    broadcast with them."""
    cv2 = opencv()
    across = np.arange(-reach, reach + 1, dtype=np.float32)
    shape = *places.shape[:-1], len(across)
    size = math.prod(shape)
    rows = max(1, -(-size // ROW))
    table = np.zeros((2, rows * ROW), np.float32)
    # Coordinate by coordinate: loops over two numbers at a time are slow.
    for i, row in enumerate(table):
        # Pixel centres are at half-integers here, at integers in OpenCV.
        place, normal = (places[..., i] - 0.5).astype(np.float32), normals[..., i, None]
        off = normal.astype(np.float32) * across
        np.add(place[..., None], off, out=row[:size].reshape(shape))
    lookup = table.reshape(2, rows, ROW)
    values = cv2.remap(grey, *lookup, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(values.ravel()[:size].reshape(shape), np.float32)


def steepest(slopes: Single) -> tuple[Single, npt.NDArray[np.bool_]]:
    """(P,) pixels from the middle of profiles to where they rise most, and whether they do.

    slopes: (P, 2 reach) from pixel to pixel. The slope of a blurred step is a bell, and the
    logarithm of a bell a parabola: three values tell its top.
    """
    middle = np.arange(slopes.shape[1], dtype=np.float32) - 0.5 * (slopes.shape[1] - 1)
    near = slopes * np.exp(-0.5 * (middle / NEAR) ** 2)
    top = near[:, 1:-1].argmax(1) + 1
    place = top + np.arange(0, slopes.size, slopes.shape[1])
    around = slopes.ravel()[place + np.array([-1, 0, 1])[:, None]]
    rises = (around[0] > 0) & (around[1] > FAINTEST) & (around[2] > 0)
    before, at, after = np.log(np.maximum(around, DARKEST))
    bend = 2 * at - before - after
    shift = 0.5 * (after - before) / np.maximum(bend, DARKEST)
    return middle[top] + shift, rises & (bend > 0) & (np.abs(shift) <= 1)


def refit_to_edges(grey: npt.NDArray[Any], ends: Array) -> Array:
    """Segments (N, 2, 2) turned and shifted onto the edges that they are seen along.

    The detector follows gradients into the corners at both ends, which turns short segments by
    degrees, and all those of a pattern of tiles the same way. So the edge is measured again on the
    middle part alone. Segments whose edge is not found there stay as they are.
    """
    across = ends[:, 1] - ends[:, 0]
    length = np.sqrt((across * across).sum(-1, keepdims=True)).clip(min=DARKEST)
    normal = np.stack([-across[:, 1], across[:, 0]], -1) / length
    share = MIDDLE * np.linspace(-0.5, 0.5, PLACES)
    places = ends.mean(1)[:, None] + share[:, None] * across[:, None]
    values = profiles(grey, places, normal[:, None], ASIDE + 1)
    # Smoothed across the edge only: along it corners would come in again.
    smooth = 0.5 * values[..., 1:-1] + 0.25 * (values[..., :-2] + values[..., 2:])
    slopes = np.diff(smooth, axis=-1)
    rising = slopes[..., ASIDE - 1 : ASIDE + 1].sum((1, 2)) >= 0
    slopes = np.where(rising[:, None, None], slopes, -slopes)
    offset, there = steepest(slopes.reshape(-1, 2 * ASIDE))
    offset, there = offset.reshape(-1, PLACES), there.reshape(-1, PLACES)
    weight = (there & (np.abs(offset) < FARTHEST)).astype(np.float64)
    count = weight.sum(1)
    sums = [(weight * value).sum(1) / count.clip(min=1) for value in (share, offset)]
    off = share - sums[0][:, None]
    turn = (weight * off * offset).sum(1) / (weight * off * off).sum(1).clip(min=DARKEST)
    found = (count >= FEWEST) & (np.abs(turn) < 2 * FARTHEST)
    shifts = np.stack([sums[1] + turn * (side - sums[0]) for side in (-0.5, 0.5)], -1)
    return np.asarray(ends + np.where(found[:, None], shifts, 0)[..., None] * normal[:, None])


Indices = npt.NDArray[np.intp]
GAP, LONGEST_GAP = 1.5, 60.0
"""Longest gap between two pieces of an edge: in lengths of the shorter one, and in pixels."""
PIECES_OVERLAP, LONGEST_OVERLAP = 0.8, 130.0
"""Likewise, where both show the same part of an edge."""
BEND, BEND_NOISE = 1.2e-3, 0.03
"""Radians per pixel by which a lens may bend an edge, and radians of noise."""
ASTRAY, WOBBLE = 1.0, 0.1
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
    least = np.cos(np.minimum(BEND * distance + BEND_NOISE, 0.5 * math.pi)).astype(np.float32)
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
    fits = (np.abs(offset.imag) < ASTRAY + noise) & (offset.real > 0.1 * (length[i] + length[j]))
    i, j, distance, aside = i[fits], j[fits], offset.real[fits], np.abs(offset.imag[fits])
    shorter = np.minimum(length[i], length[j])
    gap = ((start[j] - end[i]) * along[i].conj()).real
    turn = np.arcsin(np.clip((along[i].conj() * along[j]).imag, -1, 1))
    fits = (
        (np.abs(turn) < BEND * distance + BEND_NOISE)
        & (gap > -np.minimum(PIECES_OVERLAP * shorter, LONGEST_OVERLAP))
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


STEP = 2.5
"""Pixels between points of an edge."""
EDGE_REACH = 4
"""Pixels to either side of a segment where its edge is looked for."""
BLUR = 1.0
"""Pixels, one sigma: what is done to the picture before."""
SHORTEST_PIECE, MOST_PIECES = 14.0, 400
"""Pixels of a segment that may be part of an edge, and how many of them, the longest."""
SHORTEST_EDGE = 70.0
"""Least length of an edge, pixels."""
CUTS = (3.0, 1.5, 0.8)
"""Pixels off a smooth path beyond which points are left out, one time after the other."""
LEAST_KEPT = 0.6
"""Least share of an edge's points that must be kept."""
FEWEST_STRETCHES = 6
MOST_WEIGHT = 5.0
"""Points of a stretch that count as independent."""


def trace_edges(grey: npt.NDArray[Any], ends: Array, scale: Array, corner: Array) -> Curves:
    """Return the long edges of a grey picture in which segments (N, 2, 2) were found.

    A pixel p of the picture is (p - corner) scale of the original.
    """
    cv2 = opencv()
    length = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=-1)
    longest = np.argsort(-length, kind="stable")[:MOST_PIECES]
    ends = ends[longest[length[longest] >= SHORTEST_PIECE]]
    if not len(ends):
        return Curves.none()
    ends, piece, points = _measured(cv2.GaussianBlur(grey.astype(np.float32), (0, 0), BLUR), ends)
    paths = _Paths.create(points, chains(ends)[piece]).long()
    found = _averaged(paths.smooth().long())
    if found is None:
        return Curves.none()
    places, comb, sigma = found
    unit = float(np.mean(scale))
    return Curves((places - corner) * scale, comb, sigma * unit)


def _measured(grey: npt.NDArray[Any], ends: Array) -> tuple[Array, Indices, Array]:
    """Return segments with the brighter side on the same hand, and places (P, 2) of their edges
    with the segment (P,) of each."""
    across = ends[:, 1] - ends[:, 0]
    length = np.linalg.norm(across, axis=-1)
    along = across / length[:, None]
    normal = np.stack([-along[:, 1], along[:, 0]], -1)
    count = (length / STEP).astype(np.intp)
    # Repeated as one array: picked by their index, numbers take several times as long.
    every = np.concatenate([ends[:, 0], across, normal, count[:, None]], 1)
    every = np.repeat(np.concatenate([every, (np.cumsum(count) - count)[:, None]], 1), count, 0)
    start, across, sideways = every[:, :2], every[:, 2:4], every[:, 4:6]
    number = np.arange(len(every)) - every[:, 7]
    base = start + ((number + 0.5) / every[:, 6])[:, None] * across
    values = profiles(grey, base, sideways, EDGE_REACH)
    slopes = values[:, 1:] - values[:, :-1]
    piece = np.repeat(np.arange(len(ends)), count)
    middle = values[:, EDGE_REACH + 2] - values[:, EDGE_REACH - 2]
    sign = np.where(np.bincount(piece, middle, len(ends)) < 0, -1, 1).astype(np.float32)
    slopes *= np.repeat(sign, count)[:, None]
    offset, there = steepest(slopes)
    points = base + offset[:, None] * sideways
    ends = np.where(sign[:, None, None] < 0, ends[:, ::-1], ends)
    return ends, piece[there], points[there]


@dataclass(frozen=True)
class _Paths:
    """P points of J edges, one edge after the other."""

    label: Indices
    """(P,) which edge."""
    along: Array
    """(P,) pixels along the edge's axis, from its middle."""
    aside: Array
    """(P,) pixels off the axis."""
    centre: Array
    """(J, 2) a point of each axis."""
    axis: Array
    """(J, 2) unit vectors."""

    @classmethod
    def create(cls, points: Array, label: Indices) -> _Paths:
        """Sort points (P, 2) by the edge (P,) of each and find the axis of every edge."""
        order = np.argsort(label, kind="stable")
        points = points[order]
        label = np.cumsum(np.diff(label[order], prepend=-1) > 0) - 1
        count = np.bincount(label)
        first = _first(label)
        centre = np.add.reduceat(points, first) / count[:, None]
        x, y = (points - np.repeat(centre, count, 0)).T
        xx, xy, yy = np.add.reduceat([x * x, x * y, y * y], first, 1)
        angle = 0.5 * np.arctan2(2 * xy, xx - yy)
        axis = np.stack([np.cos(angle), np.sin(angle)], -1)
        cos, sin = np.repeat(axis.T, count, 1)
        return cls(label, x * cos + y * sin, y * cos - x * sin, centre, axis)

    @cached_property
    def first(self) -> Indices:
        """The first point (J,) of each edge."""
        return _first(self.label)

    @cached_property
    def ends(self) -> tuple[Array, Array]:
        """Where edges begin and end, (J,) each, along their axes."""
        along, first = self.along, self.first
        return np.minimum.reduceat(along, first), np.maximum.reduceat(along, first)

    def some(self, kept: npt.NDArray[np.bool_]) -> _Paths:
        """Return the paths with some points (P,) only."""
        there = np.bincount(self.label, kept, len(self.axis)) > 0
        label = (np.cumsum(there) - 1)[self.label[kept]]
        return _Paths(
            label, self.along[kept], self.aside[kept], self.centre[there], self.axis[there]
        )

    def long(self) -> _Paths:
        """Return the edges that are at least ``SHORTEST_EDGE`` long."""
        low, high = self.ends
        return self.some((high - low >= SHORTEST_EDGE)[self.label])

    def smooth(self) -> _Paths:
        """Return the paths without points off a smooth curve, and without edges that have many of
        them."""
        low, high = self.ends
        powers = np.empty((7, len(self.along)))
        powers[0], powers[1:] = 1, self.along / np.maximum(high, -low)[self.label]
        np.multiply.accumulate(powers, out=powers)
        count = np.bincount(self.label)
        kept, fitted = np.ones(len(self.along), bool), np.zeros(len(self.along), bool)
        off = self.aside
        for cut in CUTS:
            # Through the same points the path is the same.
            if not np.array_equal(kept, fitted):
                path = (powers[:4] * np.repeat(self._fitted(powers, kept), count, 1)).sum(0)
                off, fitted = np.abs(self.aside - path), kept
            kept = off < cut
        left = np.bincount(self.label, kept, len(self.axis))
        return self.some(kept & (left >= LEAST_KEPT * count)[self.label])

    def _fitted(self, powers: Array, kept: npt.NDArray[np.bool_]) -> Array:
        """(4, J) what the first powers (7, P) must be multiplied by to give how far points are
        aside."""
        weighted = np.concatenate([powers * kept, powers[:4] * (kept * self.aside)])
        sums = np.add.reduceat(weighted, self.first, 1).T
        normal = sums[:, np.add.outer(np.arange(4), np.arange(4))] + 1e-6 * np.eye(4)
        return np.asarray(np.linalg.solve(normal, sums[:, 7:, None])[..., 0].T)


def _first(label: Indices) -> Indices:
    """Return the index (J,) at which each label begins; labels ascend."""
    return np.flatnonzero(np.diff(label, prepend=-1))


def _averaged(paths: _Paths) -> tuple[Array, Array, Array] | None:
    """Places (J, K, 2), combs (J, K) and sigmas (J,) of the edges that are long enough."""
    label, along, aside = paths.label, paths.along, paths.aside
    edges = len(paths.axis)
    low, high = paths.ends
    span = high - low
    unit = 2 * (along - low[label]) / span[label] - 1
    place = np.minimum((STRETCHES * (unit + 1) / 2).astype(np.intp), STRETCHES - 1)
    cell = label * STRETCHES + place
    shape = (edges, STRETCHES)
    count = np.bincount(cell, minlength=edges * STRETCHES).reshape(shape)
    x, y = (
        np.bincount(cell, value, edges * STRETCHES).reshape(shape) / np.maximum(count, 1)
        for value in (unit, aside)
    )
    chosen = np.flatnonzero((count > 0).sum(1) >= FEWEST_STRETCHES)
    if not len(chosen):
        return None
    x, y, count = x[chosen], y[chosen], count[chosen]
    weight = np.minimum(count, MOST_WEIGHT)
    terms = np.stack([np.ones_like(x), x, 1 - x * x, x**3], -1)
    arc = terms[..., :3]
    inverse = np.linalg.inv(_normal(arc, weight))
    comb = (inverse @ (arc * weight[..., None]).swapaxes(1, 2))[:, 2]
    # What is left of a cubic is noise, texture beside the edge for the most part.
    right = (terms * (weight * y)[..., None]).sum(1)
    cubic = np.linalg.solve(_normal(terms, weight) + 1e-9 * np.eye(4), right[..., None])
    off = y - (terms @ cubic)[..., 0]
    measured = (count > 0).sum(1)
    rough = (weight * off**2).sum(1) / weight.sum(1) * measured / (measured - 4)
    sigma = np.sqrt(rough * (comb**2).sum(1))
    axis, centre = paths.axis[chosen, None], paths.centre[chosen, None]
    normal = np.stack([-axis[..., 1], axis[..., 0]], -1)
    lower, half = low[chosen, None], 0.5 * span[chosen, None]
    places = centre + (lower + half * (x + 1))[..., None] * axis + y[..., None] * normal
    places = np.where((count > 0)[..., None], places, places[:, :1])
    return places, comb, sigma


def _normal(terms: Array, weight: Array) -> Array:
    """Return normal matrices (J, n, n) from terms (J, K, n) and weights (J, K)."""
    return np.asarray((terms * weight[..., None]).swapaxes(1, 2) @ terms)
