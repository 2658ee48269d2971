"""Straight segments of a picture, and long edges that may be bent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from geocalib.geometry.tensors import map_tensors

STRETCHES = 12
"""Along an edge, in which its points are averaged."""


@dataclass(frozen=True)
class Curves:
    """J edges of one picture."""

    points: Tensor
    """(J, K, 2) float64: K places along each, pixels of the original. The first and the last one
    are always measured."""
    comb: Tensor
    """(J, K) what the deviations of the places from a line, in pixels, are multiplied by to sum up
    to the sagitta; 0 for places that were not measured. Neither a shift nor a turn of the line
    changes the sum."""
    sigma: Tensor
    """(J,) one sigma of the sagitta by how rough the edge is, pixels."""

    def __len__(self) -> int:
        return len(self.points)

    @classmethod
    def none(cls) -> Curves:
        """Of a picture without long edges."""
        points = torch.zeros(0, STRETCHES, 2, dtype=torch.float64)
        return cls(points, points[..., 0], points[:, 0, 0])

    @classmethod
    def joined(cls, parts: Sequence[Curves]) -> Curves:
        """Of several pictures of one camera."""
        return map_tensors(lambda *column: torch.cat(column), *parts)

    def turned(self, width: float) -> Curves:
        """Of the picture, so wide, turned counter-clockwise by a quarter."""
        x, y = self.points.unbind(-1)
        return Curves(torch.stack([y, width - x], -1), self.comb, self.sigma)


@dataclass(frozen=True)
class Segments:
    """N segments of one picture, the longest first."""

    ends: Tensor
    """(N, 2, 2) float64: both ends, x and y in pixels of the original."""
    noise: float
    """One sigma of an end across its segment, pixels of the original."""
    curves: Curves = field(default_factory=Curves.none)
    """Long edges of the picture, which segments are parts of."""

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def length(self) -> Tensor:
        """(N,) pixels."""
        length: Tensor = torch.linalg.vector_norm(self.ends[:, 1] - self.ends[:, 0], dim=-1)
        return length

    def __getitem__(self, index: Tensor | slice) -> Segments:
        """Some of them."""
        return replace(self, ends=self.ends[index])

    def turned(self, width: float) -> Segments:
        """Of the picture, so wide, turned counter-clockwise by a quarter."""
        x, y = self.ends.unbind(-1)
        ends = torch.stack([y, width - x], -1)
        return Segments(ends, self.noise, self.curves.turned(width))

    def longest(self, count: int) -> Segments:
        """At most so many, the longest first."""
        return self[self.length.argsort(descending=True, stable=True)[:count]]
