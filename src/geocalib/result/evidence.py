"""Evidence for and against an answer: the lines of the photo, those that a person drew, the
kinds of lens that were compared, and what was known beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Literal, Protocol

import numpy as np

from geocalib.arrays import Array, cast, namespace
from geocalib.geometry.drawn import DrawnLine
from geocalib.geometry.gravity import to_roll_pitch
from geocalib.geometry.segments import Segments
from geocalib.records import dataclass, replace

CONTRADICTION = 3.0
"""Sigmas: of good sensors and good pictures one pair in 370 is further apart."""


GIVEN = "given"
"""The source of what a caller gave."""
WORDS = {"focal": "focal length"}
"""What a person calls the quantities; the others have their names."""


@dataclass(frozen=True)
class PriorCheck:
    """A prior of a caller, a file or a sensor, beside the estimate of the same without it."""

    quantity: Literal["focal", "gravity", "distortion"]
    source: str
    prior: tuple[float, ...]
    """The focal length (fy) in pixels, three components of gravity, or parameters of the lens."""
    prior_sigma: float
    """Pixels, degrees, or as the parameters (the largest); 0 for what is held fixed."""
    estimate: tuple[float, ...]
    """The same quantity by the picture alone, or by ``against``."""
    estimate_sigma: float
    """Pixels, or degrees along the most uncertain direction; NaN if not known."""
    tension: float
    """How far apart they are, in sigmas of one normal variable; NaN if not known. Of a sensor from
    which lines drew the answer away: how far the answer is off, in sigmas of the sensor."""
    used: bool = True
    """Whether the answer makes use of the prior."""
    against: str | None = None
    """What in the file gives the estimate; None if it is the picture's."""

    @property
    def contradicts(self) -> bool:
        """Whether one of the two is most likely wrong."""
        return self.tension > CONTRADICTION

    @property
    def rival(self) -> str:
        """What the prior is held against, in words."""
        return "the picture" if self.against is None else self.against

    def __str__(self) -> str:
        """What is known, and whether it agrees; if not, what was done."""
        return self.report(followed=True)

    def report(self, followed: bool, vfov_deg: Callable[[float], float] | None = None) -> str:
        """The same. followed: whether the answer is near a prior that was used, not near the
        estimate, which may outweigh a soft one. vfov_deg: the field of view that a focal length in
        pixels gives, to be named as well."""
        what, source = WORDS.get(self.quantity, self.quantity), self.source
        if not self.contradicts:
            return f"{what}: {source}, {self._agreement}"
        done = ("was kept" if followed else "was outweighed") if self.used else "was left out"
        prior, estimate = (
            _shown(self.quantity, of, vfov_deg) for of in (self.prior, self.estimate)
        )
        return (
            f"{what}: {source} ({prior}) contradicts {self.rival} ({estimate}) by "
            f"{self.tension:.1f} sigma and {done}"
        )

    @property
    def _agreement(self) -> str:
        """What became of a prior that contradicts nothing."""
        if not self.used:
            return "was left out"
        return f"agrees with {self.rival}" if self.source == GIVEN else "agrees"


def _shown(
    quantity: str, value: tuple[float, ...], vfov_deg: Callable[[float], float] | None
) -> str:
    """A value for people."""
    if quantity == "gravity":
        angles = np.degrees(to_roll_pitch(np.array(value))).round(1)
        roll, pitch = (angles + 0.0).tolist()  # Adding 0 takes the sign off a rounded -0.
        return f"roll {roll:+.1f}°, pitch {pitch:+.1f}°"
    if quantity == "distortion":
        return ", ".join(f"{one:+.3f}" for one in value)
    view = math.nan if vfov_deg is None else vfov_deg(value[0])
    return f"{value[0]:.0f} px" + ("" if math.isnan(view) else f", vFoV {view:.1f}°")


def agreements(checks: Sequence[PriorCheck]) -> list[str]:
    """What is known and contradicts nothing, in words: one line for each prior, with all that it
    agrees with."""
    lines: dict[tuple[str, str], list[PriorCheck]] = {}
    for check in checks:
        if not check.contradicts:
            lines.setdefault((check.quantity, check.source), []).append(check)
    return [
        " and ".join([str(first), *(other.rival for other in others)])
        for first, *others in lines.values()
    ]


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
    """The model fitted for the family."""
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
        """The model of the most probable family."""
        return self.families[0].camera_model

    @property
    def probability(self) -> float:
        """The probability of the most probable family."""
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


CLUTTER = -1
"""The kind of a segment that belongs to no direction."""


class Verdict(StrEnum):
    """What became of the lines of a photo; its value is the sentence to show."""

    CROSSED = "used as vertical and level edges at right angles"
    TURNED = "used as vertical and level edges, not all at right angles"
    UPRIGHT = "used as vertical edges; what else runs parallel is not believed to be level"
    LEVEL = "used as level edges; none of them is vertical"
    TOO_FEW = "not used: there are too few straight segments"
    NO_DIRECTION = "not used: too few of the segments run parallel in space"
    UNLIKELY = "not used: they fit an upright world worse than the network's answer fits the photo"
    DRAWN = "not used: they contradict the lines that were drawn"
    NOTHING_FREE = "not used: gravity and focal length are given"

    @property
    def used(self) -> bool:
        """Whether lines changed the answer."""
        return not self.value.startswith("not used")


@dataclass(frozen=True)
class Traces:
    """N segments of one photo, and the K directions in space that they follow."""

    segments: Segments
    kind: Array
    """(N,) index of each segment's direction, or ``CLUTTER``."""
    directions: Array
    """(K, 3) unit vectors in the camera frame."""
    vertical: Array
    """(K,) whether a direction is the vertical; the others are level."""
    support: Array
    """(K,) by how much each raises the log likelihood, in independent segments."""

    @classmethod
    def astray(cls, segments: Segments) -> Traces:
        """How many segments follow no direction."""
        xp = namespace(segments.ends)
        nothing = xp.zeros(0, dtype=xp.float64)
        kind = xp.full(len(segments), CLUTTER, dtype=xp.int64)
        return cls(segments, kind, nothing.reshape(0, 3), cast(nothing, xp.bool), nothing)

    def along(self) -> list[int]:
        """(K,) how many segments follow each direction."""
        return [int((self.kind == index).sum()) for index in range(len(self.directions))]


class Angles(Protocol):
    """An answer, as far as lines move it."""

    @property
    def roll_deg(self) -> float: ...
    @property
    def pitch_deg(self) -> float: ...
    @property
    def vfov_deg(self) -> float: ...


@dataclass(frozen=True)
class Lines:
    """What was made of the straight segments of one photo."""

    verdict: Verdict
    vertical: int = 0
    """Segments that are used as vertical ones."""
    level: tuple[int, ...] = ()
    """Segments that are used along each level direction."""
    unused: int = 0
    """Number of all other segments."""
    probability: float = 1.0
    """Probability of the verdict."""
    roll_deg: float = 0.0
    """By how much they moved the answer."""
    pitch_deg: float = 0.0
    vfov_deg: float = 0.0
    focal_sigmas: float = field(default=0.0, compare=False)
    """By how many of the network's sigmas they moved the focal length; not in the record."""
    bend: tuple[float, float] | None = field(default=None, compare=False)
    """k1 of a pinhole, and its sigma, as long edges have it; not in the record."""
    traces: Traces | None = field(default=None, repr=False, compare=False)
    """The segments themselves; not in the record."""

    @classmethod
    def create(
        cls,
        verdict: Verdict,
        traces: Traces,
        probability: float,
        before: Angles,
        after: Angles,
    ) -> Lines:
        """Of answers before and after lines were looked at."""
        upright, counts = traces.vertical.tolist(), traces.along()
        return cls(
            verdict,
            sum(n for n, vertical in zip(counts, upright, strict=True) if vertical),
            tuple(n for n, vertical in zip(counts, upright, strict=True) if not vertical),
            len(traces.segments) - sum(counts),
            probability,
            (after.roll_deg - before.roll_deg + 180) % 360 - 180,
            after.pitch_deg - before.pitch_deg,
            after.vfov_deg - before.vfov_deg,
            traces=traces,
        )

    def turned_back(self, segments: Segments, directions: Array) -> Lines:
        """Of the photo itself, where a turned one was looked at."""
        assert self.traces is not None
        return replace(self, traces=replace(self.traces, segments=segments, directions=directions))

    def __str__(self) -> str:
        """What became of the lines, in one sentence."""
        if not self.verdict.used:
            return f"lines {self.verdict}"
        level = " + ".join(map(str, self.level)) or "no"
        return (
            f"lines {self.verdict} ({self.vertical} vertical, {level} level): "
            f"roll {self.roll_deg:+.2f}°, pitch {self.pitch_deg:+.2f}°, vFoV {self.vfov_deg:+.2f}°"
        )
