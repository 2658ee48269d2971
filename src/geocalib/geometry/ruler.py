"""A known length that a person marks on a photograph: it tells how high the camera stood.

Light on purpose: options hold it, and it is checked before anything is loaded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from geocalib.errors import ConfigError


class RulerKind(StrEnum):
    """What a known length lies along."""

    GROUND = "ground"
    """Both ends are on the level ground below the camera."""
    UP = "up"
    """An upright edge that stands on that ground: a door, a person, a post."""


@dataclass(frozen=True)
class Ruler:
    """A length on a photograph from (x0, y0) to (x1, y1), pixels of the upright picture, whose
    first pixel has its centre at (0.5, 0.5)."""

    x0: float
    y0: float
    x1: float
    y1: float
    metres: float
    kind: str = "ground"
    """A value of ``RulerKind``; of "up" either end may be the foot."""

    @property
    def ends(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """(2, 2) both ends, pixels."""
        return (self.x0, self.y0), (self.x1, self.y1)


def checked_ruler(ruler: Ruler) -> Ruler:
    """The same, if it can be a ruler; an error says what is wrong."""
    if not isinstance(ruler, Ruler):
        raise ConfigError(f"ruler must be a Ruler, got {ruler!r:.60}")
    numbers = (ruler.x0, ruler.y0, ruler.x1, ruler.y1, ruler.metres)
    if not all(isinstance(x, int | float) and math.isfinite(x) for x in numbers):
        raise ConfigError(f"ruler must have finite numbers, got {', '.join(map(str, numbers))}")
    if ruler.metres <= 0:
        raise ConfigError(f"ruler must be longer than 0 metres, got {ruler.metres:g}")
    if math.hypot(ruler.x1 - ruler.x0, ruler.y1 - ruler.y0) < 1:
        raise ConfigError(f"ruler is shorter than a pixel, from {ruler.ends[0]} to {ruler.ends[1]}")
    if ruler.kind not in list(RulerKind):
        raise ConfigError(f"ruler lies along {ruler.kind!r}; known: {', '.join(RulerKind)}")
    return ruler


def parse_ruler(text: str) -> Ruler:
    """The ruler that ``x0,y0,x1,y1,metres`` says, or ``x0,y0,x1,y1,metres,up``."""
    parts = [part.strip() for part in text.split(",")]
    try:
        x0, y0, x1, y1, metres = map(float, parts[:5])
        (kind,) = parts[5:] or [RulerKind.GROUND]
    except ValueError:
        raise ConfigError(
            "ruler must be x0,y0,x1,y1,metres with both ends on the ground, or "
            f"x0,y0,x1,y1,metres,up of what stands on it; got {text!r:.80}"
        ) from None
    return Ruler(x0, y0, x1, y1, metres, kind.lower())
