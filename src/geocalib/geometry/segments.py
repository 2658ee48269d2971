"""Straight segments of a picture, and long edges that may be bent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

import numpy as np

from geocalib.arrays import Array, namespace, unstack
from geocalib.records import dataclass, map_tensors

STRETCHES = 12
"""Along an edge, in which its points are averaged."""


@dataclass(frozen=True)
class Curves:
    """J edges of one picture."""

    points: Array
    """(J, K, 2) float64: K places along each, pixels of the original. The first and the last one
    are always measured."""
    comb: Array
    """(J, K) what the deviations of the places from a line, in pixels, are multiplied by to sum up
    to the sagitta; 0 for places that were not measured. Neither a shift nor a turn of the line
    changes the sum."""
    sigma: Array
    """(J,) one sigma of the sagitta by how rough the edge is, pixels."""

    def __len__(self) -> int:
        return len(self.points)

    @classmethod
    def none(cls) -> Curves:
        """The edges of a picture that has none."""
        points = np.zeros((0, STRETCHES, 2))
        return cls(points, points[..., 0], points[:, 0, 0])

    @classmethod
    def joined(cls, parts: Sequence[Curves]) -> Curves:
        """The edges of several pictures of one camera, as one."""
        return map_tensors(lambda *column: namespace(column[0]).concat(column), *parts)

    def turned(self, width: float) -> Curves:
        """The edges after the picture, ``width`` wide, is turned counter-clockwise by a quarter."""
        xp = namespace(self.points)
        x, y = unstack(self.points)
        return Curves(xp.stack([y, width - x], axis=-1), self.comb, self.sigma)


@dataclass(frozen=True)
class Segments:
    """N segments of one picture, the longest first."""

    ends: Array
    """(N, 2, 2) float64: both ends, x and y in pixels of the original."""
    noise: float
    """One sigma of an end across its segment, pixels of the original."""
    curves: Curves = field(default_factory=Curves.none)
    """Long edges of the picture, which segments are parts of."""

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def length(self) -> Array:
        """The lengths of the segments, (N,) in pixels."""
        along = self.ends[:, 1] - self.ends[:, 0]
        return namespace(along).linalg.vector_norm(along, axis=-1)

    def __getitem__(self, index: Array | slice) -> Segments:
        """Some of the segments or curves."""
        return replace(self, ends=self.ends[index])

    def turned(self, width: float) -> Segments:
        """The segments after the picture, ``width`` wide, is turned counter-clockwise by a
        quarter."""
        xp = namespace(self.ends)
        x, y = unstack(self.ends)
        ends = xp.stack([y, width - x], axis=-1)
        return Segments(ends, self.noise, self.curves.turned(width))

    def longest(self, count: int) -> Segments:
        """At most so many, the longest first."""
        order = namespace(self.ends).argsort(-self.length, stable=True)
        return self[order[:count]]
