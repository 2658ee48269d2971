"""The segments of several pictures as arrays."""

from __future__ import annotations

import numpy as np

from geocalib.geometry.segments import Segments
from geocalib.geometry.tensors import map_tensors
from geocalib.lines.unknowns import Array
from geocalib.records import dataclass

ROUND = 250
"""Segments: a picture that is looked at beside others has a multiple of them. Sums are the same to
the last bit only where as many numbers are summed up."""


@dataclass(frozen=True)
class Bundle:
    """The segments of B pictures padded to the same number N. Each row of guesses may have its own
    (``geocalib.lines.together``): then the arrays begin with R."""

    middle: Array
    """(B, 2, N) pixels."""
    sides: Array
    """(B, 2, 2, N) unit vectors across and along each segment."""
    length: Array
    """(B, N) pixels; 0 for what was padded."""
    noise: Array
    """(B,) pixels."""

    @classmethod
    def create(cls, pictures: list[Segments]) -> Bundle:
        """Of the segments of each picture."""
        count = max([1, *(len(segments) for segments in pictures)])
        ends = np.zeros((len(pictures), 2, 2, count))
        for row, segments in enumerate(pictures):
            ends[row, ..., : len(segments)] = segments.ends.transpose(1, 2, 0)
        across = ends[:, 1] - ends[:, 0]
        length = np.sqrt((across * across).sum(1))
        along = across / length.clip(min=np.finfo(length.dtype).tiny)[:, None]
        sides = np.stack([np.stack([-along[:, 1], along[:, 0]], 1), along], 1)
        return cls(ends.mean(1), sides, length, np.array([s.noise for s in pictures]))

    def __len__(self) -> int:
        return len(self.middle)

    def __getitem__(self, index: slice) -> Bundle:
        """Of some pictures."""
        return map_tensors(lambda value: value[index], self)

    def rounded(self) -> Bundle:
        """Padded to a multiple of ``ROUND`` segments."""
        more = np.zeros((len(self), 2, 2, -self.length.shape[1] % ROUND))
        return Bundle(
            np.concatenate([self.middle, more[:, 0]], -1),
            np.concatenate([self.sides, more], -1),
            np.concatenate([self.length, more[:, 0, 0]], -1),
            self.noise,
        )

    def longest(self, count: int) -> Bundle:
        """At most so many segments of each picture."""
        middle, sides, length = self.middle, self.sides, self.length
        return Bundle(middle[..., :count], sides[..., :count], length[:, :count], self.noise)
