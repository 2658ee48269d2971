"""How a fit is run. The defaults are the measured ones (docs/solver.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from geocalib.errors import ConfigError
from geocalib.geometry.conventions import HUBER_THRESHOLD

Initial = Literal["trivial", "heuristic", "ransac"]
Gradient = Literal["none", "unrolled", "implicit"]

DAMPING_START = 0.1


@dataclass(frozen=True)
class FitOptions:
    """Options of ``fit`` beyond the problem itself."""

    cells: int | None = 48
    """Pool the fields to at least this many cells along the shorter side; None: every pixel."""
    initial: Initial = "trivial"
    """Where to start."""
    huber: float | None = HUBER_THRESHOLD
    """Residual norm beyond which the cost grows linearly; None: plain squares."""
    max_iterations: int = 30
    damping: float = DAMPING_START
    """The first one, relative to the curvature; later ones follow from how steps turn out."""
    confidence_scale: float | None = None
    """s^2, which turns confidences into information (E / s^2). None: from the residuals."""
    gradient: Gradient = "none"
    """Derivatives in the fields: none, through the iterations, or implicit at the optimum."""

    def __post_init__(self) -> None:
        for name, choices in (("initial", get_args(Initial)), ("gradient", get_args(Gradient))):
            if getattr(self, name) not in choices:
                known = ", ".join(choices)
                raise ConfigError(f"{name} is {getattr(self, name)!r}; known: {known}")
        for name in ("cells", "huber", "max_iterations", "damping", "confidence_scale"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"{name} must be positive, got {value}")
