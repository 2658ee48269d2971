"""Straight segments of a picture."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Segments:
    """N segments of one picture, the longest first."""

    ends: Tensor
    """(N, 2, 2) float64: both ends, x and y in pixels of the original."""
    noise: float
    """One sigma of an end across its segment, pixels of the original."""

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def length(self) -> Tensor:
        """(N,) pixels."""
        length: Tensor = torch.linalg.vector_norm(self.ends[:, 1] - self.ends[:, 0], dim=-1)
        return length

    def __getitem__(self, index: Tensor | slice) -> Segments:
        """Some of them."""
        return Segments(self.ends[index], self.noise)

    def longest(self, count: int) -> Segments:
        """At most so many, the longest first."""
        return self[self.length.argsort(descending=True, stable=True)[:count]]


@dataclass(frozen=True)
class Bundle:
    """The segments of B pictures, padded to the same number N."""

    middle: Tensor
    """(B, 2, N) pixels."""
    along: Tensor
    """(B, 2, N) unit directions in the picture."""
    length: Tensor
    """(B, N) pixels; 0 for what was padded."""
    noise: Tensor
    """(B,) pixels."""

    @classmethod
    def create(cls, pictures: list[Segments]) -> Bundle:
        """Of the segments of each picture."""
        count = max([1, *(len(segments) for segments in pictures)])
        ends = torch.zeros(len(pictures), 2, 2, count, dtype=torch.float64)
        for row, segments in enumerate(pictures):
            ends[row, ..., : len(segments)] = segments.ends.permute(1, 2, 0)
        across = ends[:, 1] - ends[:, 0]
        length = torch.sqrt((across * across).sum(1))
        along = across / length.clamp(min=torch.finfo(length.dtype).tiny)[:, None]
        noise = torch.tensor([s.noise for s in pictures], dtype=torch.float64)
        return cls(ends.mean(1), along, length, noise)

    def __len__(self) -> int:
        return len(self.middle)

    def __getitem__(self, index: Tensor | slice | list[int]) -> Bundle:
        """Of some pictures, or of one several times."""
        return Bundle(*(value[index] for value in vars(self).values()))

    def longest(self, count: int) -> Bundle:
        """At most so many segments of each picture."""
        middle, along, length = self.middle, self.along, self.length
        return Bundle(middle[..., :count], along[..., :count], length[:, :count], self.noise)
