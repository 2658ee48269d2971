"""Which kind of lens took a picture: what was compared, how probable each is, and its answer."""

from __future__ import annotations

import math
from collections.abc import Iterator

from geocalib.records import dataclass, replace

KINDS = {
    "pinhole": "one that bends nothing",
    "simple_radial": "one that bends a little",
    "ucm": "a wide one or a fisheye",
}
"""What a person calls the families."""


@dataclass(frozen=True)
class LensFamily:
    """What a picture shows if its lens is of one family."""

    camera_model: str
    """The model that stands for it."""
    probability: float
    """By the picture, what its file says, and how common such lenses are."""
    vfov_deg: float
    """Between border rays, by the network's fields alone; NaN where a border has no ray."""
    hfov_deg: float
    roll_deg: float
    pitch_deg: float

    @property
    def as_doubt(self) -> str:
        """What to say of an answer that another family gave."""
        seen = "" if math.isnan(self.vfov_deg) else f"; the view is then {self.vfov_deg:.0f}° high"
        kind = KINDS.get(self.camera_model, self.camera_model)
        return f"the lens may also be {kind} ({100 * self.probability:.0f}% likely{seen})"


@dataclass(frozen=True)
class Lens:
    """The families that were compared, the most probable one first."""

    families: tuple[LensFamily, ...]

    def __iter__(self) -> Iterator[LensFamily]:
        return iter(self.families)

    @property
    def camera_model(self) -> str:
        """Of the most probable family."""
        return self.families[0].camera_model

    @property
    def probability(self) -> float:
        """Of the most probable family."""
        return self.families[0].probability

    @property
    def rivals(self) -> tuple[LensFamily, ...]:
        """The families that were not chosen."""
        return self.families[1:]

    @property
    def of_any_picture(self) -> Lens:
        """The same for every picture that the lens takes: gravity, which differs, is left out."""
        each = (replace(family, roll_deg=math.nan, pitch_deg=math.nan) for family in self.families)
        return Lens(tuple(each))

    def __str__(self) -> str:
        """The comparison in one sentence."""
        shares = (f"{each.camera_model} {100 * each.probability:.0f}%" for each in self.families)
        return f"lens: {', '.join(shares)}"
