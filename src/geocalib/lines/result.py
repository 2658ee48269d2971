"""What the lines of one photo told."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from geocalib.lines.segments import Segments

CLUTTER = -1
"""The kind of a segment that belongs to no direction."""


@dataclass(frozen=True)
class Lines:
    """N segments of one photo, and the K directions in space that they follow."""

    segments: Segments
    kind: Tensor
    """(N,) index of each segment's direction, or ``CLUTTER``."""
    directions: Tensor
    """(K, 3) unit vectors in the camera frame."""
    vertical: Tensor
    """(K,) whether a direction is the vertical; the others are level."""
    support: Tensor
    """(K,) by how much each raises the log likelihood, in independent segments."""
