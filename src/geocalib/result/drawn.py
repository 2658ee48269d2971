"""How well lines that a person drew agree with the picture and with the answer."""

from __future__ import annotations

from collections.abc import Sequence

from geocalib.geometry.drawn import DrawnLine, LineKind
from geocalib.records import dataclass
from geocalib.result.prior_check import CONTRADICTION
from geocalib.result.trust import Doubt


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
        """To be asked for again."""
        ends = self.x0, self.y0, self.x1, self.y1
        return DrawnLine(*ends, self.kind, self.to, self.sigma_deg)


def disagreements(checks: Sequence[DrawnCheck]) -> tuple[Doubt, ...]:
    """Which lines most likely say something wrong, or nothing."""
    found = []
    for number, each in enumerate(checks, 1):
        name = f"line {number} ({each.kind})"
        contradicts = f"{name} contradicts the picture by {each.tension:.1f} sigma"
        if not each.used:
            text = (
                f"{contradicts}, or the other lines, and was left out; two that agree are believed"
            )
            found.append(Doubt(text))
        elif each.tension > CONTRADICTION:
            found.append(Doubt(f"{contradicts}; the answer follows it"))
        if each.kind == LineKind.LEVEL and number not in [other.to for other in checks]:
            text = f"{name} has no line parallel to it, and alone tells nothing; draw one"
            found.append(Doubt(text, about=()))
    return tuple(found)
