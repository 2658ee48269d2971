"""What ``geocalib localize`` reads and writes."""

from __future__ import annotations

from enum import StrEnum

from geocalib.records import dataclass


class PoseFormat(StrEnum):
    """What poses are written as."""

    HLOC = "hloc"
    COLMAP = "colmap"


@dataclass(frozen=True)
class Sources:
    """The files to localise from."""

    model: str
    queries: str
    matches: str
    features: str | None
    pairs: str | None
    calibration: str | None
