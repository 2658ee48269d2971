"""What the lines of one photo showed, and why if they showed nothing."""

from __future__ import annotations

from dataclasses import field, replace
from enum import StrEnum
from typing import Protocol

from geocalib.arrays import Array, cast, namespace
from geocalib.geometry.segments import Segments
from geocalib.records import dataclass

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
    """All others."""
    probability: float = 1.0
    """Of the verdict, among all that the segments may mean."""
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
