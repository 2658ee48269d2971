"""Lines that a person draws on a photograph where evidence is thin: what each is, with a sigma.

Light on purpose: options hold them, and are checked before anything is loaded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from geocalib.errors import ConfigError

END = 0.002
"""One sigma of where a person puts an end, of the picture's longer side."""
SIGMA_DEG = 0.3
"""One sigma by which edges of the world miss their direction, beside that."""
MOST = 100
"""Most lines on one photograph."""


class LineKind(StrEnum):
    """What a drawn line is in the world."""

    UP = "up"
    """An edge that stands upright."""
    LEVEL = "level"
    """A level edge of any heading: it takes another that is parallel to it to tell anything."""
    PARALLEL = "parallel"
    """An edge that is parallel to another drawn line in the world."""
    HORIZON = "horizon"
    """The horizon itself, of which a pinhole camera shows a straight line."""


@dataclass(frozen=True)
class DrawnLine:
    """One line on a photograph from (x0, y0) to (x1, y1), pixels of the upright picture, whose
    first pixel has its centre at (0.5, 0.5)."""

    x0: float
    y0: float
    x1: float
    y1: float
    kind: str = "up"
    """A value of ``LineKind``."""
    to: int | None = None
    """For `parallel`: the number, from 1, of the line that it is parallel to."""
    sigma_deg: float = SIGMA_DEG
    """One sigma by which the edge misses its direction, beside the error of its ends."""

    @property
    def values(self) -> tuple[float, float, float, float, str, int | None, float]:
        """All of it, in order, as plain numbers."""
        ends = float(self.x0), float(self.y0), float(self.x1), float(self.y1)
        return *ends, str(self.kind), self.to, float(self.sigma_deg)

    @property
    def ends(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """(2, 2) both ends, pixels."""
        return (self.x0, self.y0), (self.x1, self.y1)


def checked_lines(lines: Sequence[DrawnLine]) -> tuple[DrawnLine, ...]:
    """The lines, if each of them is one; an error names the first that is not."""
    if len(lines) > MOST:
        raise ConfigError(f"{len(lines)} lines are drawn; at most {MOST} are taken")
    for number, line in enumerate(lines, 1):
        if not isinstance(line, DrawnLine):
            raise ConfigError(f"line {number} must be a DrawnLine, got {line!r:.60}")
        if (wrong := _fault(line, number, lines)) is not None:
            raise ConfigError(f"line {number} {wrong}")
    return tuple(lines)


def _fault(line: DrawnLine, number: int, lines: Sequence[DrawnLine]) -> str | None:
    """What is wrong with a line, if anything."""
    numbers = (line.x0, line.y0, line.x1, line.y1, line.sigma_deg)
    if not all(isinstance(x, int | float) and math.isfinite(x) for x in numbers):
        return f"must have finite numbers, got {', '.join(map(str, numbers))}"
    if math.hypot(line.x1 - line.x0, line.y1 - line.y0) < 1:
        return f"is shorter than a pixel, from {line.ends[0]} to {line.ends[1]}"
    if not 0 < line.sigma_deg <= 45:
        return f"must have a sigma above 0 and up to 45 degrees, got {line.sigma_deg:g}"
    if line.kind not in list(LineKind):
        return f"is {line.kind!r}; known: {', '.join(LineKind)}"
    if line.kind != LineKind.PARALLEL:
        return None if line.to is None else f"is {line.kind}, and parallel to none; drop to"
    if line.to is None or not 1 <= line.to < number:
        return f"must be parallel to a line before it, by its number from 1; got {line.to}"
    if lines[line.to - 1].kind == LineKind.HORIZON:
        return f"cannot be parallel to line {line.to}, the horizon; make it level"
    return None


def outside(lines: Sequence[DrawnLine], size: tuple[int, int]) -> str | None:
    """Say which line ends outside a picture of (width, height), if one does."""
    for number, line in enumerate(lines, 1):
        for x, y in line.ends:
            if not (0 <= x <= size[0] and 0 <= y <= size[1]):
                return (
                    f"line {number} ends at ({x:g}, {y:g}), outside the upright picture of "
                    f"{size[0]}x{size[1]} pixels"
                )
    return None


def root(lines: Sequence[DrawnLine], index: int) -> int:
    """Where the line stands whose direction another has: its own place unless it is a parallel."""
    while (to := lines[index].to) is not None:
        index = to - 1
    return index


def parse_line(text: str) -> DrawnLine:
    """The line that ``x0,y0,x1,y1,kind`` says, or ``x0,y0,x1,y1,parallel,number``."""
    parts = [part.strip() for part in text.split(",")]
    wanted = "x0,y0,x1,y1,kind in pixels; a parallel ends in ,parallel,NUMBER of the other line"
    try:
        x0, y0, x1, y1 = map(float, parts[:4])
        kind = parts[4].lower()
        to = int(parts[5]) if len(parts) == 6 else None
    except (ValueError, IndexError):
        raise ConfigError(f"line must be {wanted}; got {text!r:.80}") from None
    if len(parts) > 6:
        raise ConfigError(f"line must be {wanted}; got {text!r:.80}")
    return DrawnLine(x0, y0, x1, y1, kind, to)
