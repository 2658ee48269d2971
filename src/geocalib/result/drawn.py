"""How well lines that a person drew agree with the picture and with the answer."""

from __future__ import annotations

from geocalib.geometry.drawn import DrawnLine
from geocalib.records import dataclass


@dataclass(frozen=True)
class DrawnCheck:
    """A drawn line, beside the answer that follows it and what the picture alone says."""

    x0: float
    y0: float
    x1: float
    y1: float
    """Pixels, in the frame of the record."""
    kind: str
    to: int | None
    """The number, from 1, of the line that it is parallel to."""
    sigma_deg: float
    off_deg: float
    """By how much the answer misses it."""
    tension: float
    """How far it is from what the network alone says, in sigmas of both."""
    used: bool = True
    """Whether the answer follows it."""

    @property
    def line(self) -> DrawnLine:
        """The line as it was drawn, to be used in another fit."""
        ends = self.x0, self.y0, self.x1, self.y1
        return DrawnLine(*ends, self.kind, self.to, self.sigma_deg)
