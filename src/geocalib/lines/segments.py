"""Straight segments of a picture."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from geocalib.lines.curves import Curves


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
