"""How to search for a pose."""

from __future__ import annotations

import math
from dataclasses import dataclass

from geocalib.errors import ConfigError
from geocalib.localize.minimal import Solver


@dataclass(frozen=True)
class LocalizeOptions:
    """The defaults suit photos of 1 to 2 megapixels matched to a model from photos."""

    threshold: float = 12.0
    """Pixels: matches with a smaller error are inliers."""
    max_iterations: int = 20_000
    """Largest number of minimal samples."""
    min_iterations: int = 1000
    """Least number of minimal samples."""
    confidence: float = 0.9999
    """Stop when a better sample exists with a smaller chance than 1 less this."""
    min_inliers: int = 4
    """A pose with fewer is none."""
    gravity_reward: float = 1.5
    """Factor on the score of poses whose gravity is within 2 sigma of the estimate; 1: none."""
    gravity_weight: float = 0.2
    """Weight of the squared gravity error, in sigmas, for each inlier; 0: none."""
    seed: int = 0
    """Seed of the samples: the same seed gives the same pose."""
    solver: Solver | None = None
    """What finds the poses of a sample; None: PoseLib where it is installed, else OpenCV."""

    def __post_init__(self) -> None:
        bounds = {
            "threshold": (0, math.inf, False),
            "max_iterations": (1, math.inf, True),
            "min_iterations": (0, math.inf, True),
            "confidence": (0, 1, False),
            "min_inliers": (4, math.inf, True),
            "gravity_reward": (1, math.inf, True),
            "gravity_weight": (0, math.inf, True),
        }
        for name, (low, high, closed) in bounds.items():
            value = getattr(self, name)
            if not (low < value < high or (closed and value == low)):
                least = f"{'at least' if closed else 'above'} {low}"
                below = "" if high == math.inf else f" and below {high}"
                raise ConfigError(f"{name} must be {least}{below}, got {value}")
