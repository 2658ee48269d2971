"""Long edges of a picture, point by point: what is straight in the world tells how a lens bends.

An edge is a chain of segments. Its places are measured every few pixels and averaged in a few
stretches along it. The arc that they form is the bend: one number, the sagitta.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from geocalib.geometry.segments import STRETCHES, Curves
from geocalib.lines.chains import Indices, chains
from geocalib.lines.edges import Array, profiles, steepest
from geocalib.lines.opencv import opencv
from geocalib.records import dataclass

STEP = 2.5
"""Pixels between points."""
REACH = 4
"""Pixels to either side of a segment where its edge is looked for."""
BLUR = 1.0
"""Pixels, one sigma: what is done to the picture before."""
SHORTEST_PIECE, MOST_PIECES = 14.0, 400
"""Pixels of a segment that may be part of an edge, and how many of them, the longest."""
SHORTEST = 70.0
"""Pixels of an edge."""
CUTS = (3.0, 1.5, 0.8)
"""Pixels off a smooth path beyond which points are left out, one time after the other."""
LEAST_KEPT = 0.6
"""Of the points of an edge."""
FEWEST_STRETCHES = 6
MOST_WEIGHT = 5.0
"""Points of a stretch that count as independent."""


def trace(grey: npt.NDArray[Any], ends: Array, scale: Array, corner: Array) -> Curves:
    """The long edges of a grey picture in which segments (N, 2, 2) were found.

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
    """Segments with the brighter side on the same hand, and places (P, 2) of their edges with the
    segment (P,) of each."""
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
    values = profiles(grey, base, sideways, REACH)
    slopes = values[:, 1:] - values[:, :-1]
    piece = np.repeat(np.arange(len(ends)), count)
    middle = values[:, REACH + 2] - values[:, REACH - 2]
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
        """From points (P, 2) and the edge (P,) of each."""
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
        """(J,) the first point of each."""
        return _first(self.label)

    @cached_property
    def ends(self) -> tuple[Array, Array]:
        """(J,) where they begin and end, along the axis."""
        along, first = self.along, self.first
        return np.minimum.reduceat(along, first), np.maximum.reduceat(along, first)

    def some(self, kept: npt.NDArray[np.bool_]) -> _Paths:
        """Of some points (P,)."""
        there = np.bincount(self.label, kept, len(self.axis)) > 0
        label = (np.cumsum(there) - 1)[self.label[kept]]
        return _Paths(
            label, self.along[kept], self.aside[kept], self.centre[there], self.axis[there]
        )

    def long(self) -> _Paths:
        """Those that are long."""
        low, high = self.ends
        return self.some((high - low >= SHORTEST)[self.label])

    def smooth(self) -> _Paths:
        """Without points off a smooth path, and without edges that have many of them."""
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
    """(J,) where each label begins; they ascend."""
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
    """(J, n, n) from terms (J, K, n) and weights (J, K)."""
    return np.asarray((terms * weight[..., None]).swapaxes(1, 2) @ terms)
