"""What was known beforehand beside what the picture alone shows."""

from __future__ import annotations

from typing import Literal

from geocalib.records import dataclass

CONTRADICTION = 3.0
"""Sigmas: of good sensors and good pictures one pair in 370 is further apart."""


@dataclass(frozen=True)
class PriorCheck:
    """What a caller, a file or a sensor said, beside the estimate of the same without it."""

    quantity: Literal["focal", "gravity", "distortion"]
    source: str
    prior: tuple[float, ...]
    """The focal length (fy) in pixels, three components of gravity, or parameters of the lens."""
    prior_sigma: float
    """Pixels, degrees, or as the parameters (the largest); 0 for what is held fixed."""
    estimate: tuple[float, ...]
    """As the prior."""
    estimate_sigma: float
    """Pixels, or degrees along the most uncertain direction; NaN if not known."""
    tension: float
    """How far apart they are, in sigmas of one normal variable; NaN if not known. Of a sensor from
    which lines drew the answer away: how far the answer is off, in sigmas of the sensor."""
    used: bool = True
    """Whether the answer makes use of the prior."""

    @property
    def contradicts(self) -> bool:
        """Whether one of the two is most likely wrong."""
        return self.tension > CONTRADICTION

    def __str__(self) -> str:
        """What is known, and whether it agrees; if not, what was done."""
        return self.report(followed=True)

    def report(self, followed: bool) -> str:
        """The same. followed: whether the answer is near a prior that was used, not near the
        picture, which may outweigh a soft one."""
        what = "focal length" if self.quantity == "focal" else self.quantity
        said = f"{what}: {self.source}"
        if not self.contradicts:
            return f"{said}, agrees" if self.used else f"{said}, was left out"
        done = ("was kept" if followed else "was outweighed") if self.used else "was left out"
        return f"{said}, contradicts the picture by {self.tension:.1f} sigma and {done}"
