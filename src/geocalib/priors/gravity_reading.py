"""What sensors say of gravity, one or several, in the upright picture's frame: x right, y down, z
forward. ``priors.exif.FocalReading`` is the other half.

A picture is stored as its sensor lies in the device; ``geometry.orientation`` turns directions to
the upright one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from geocalib.errors import FormatError
from geocalib.geometry.orientation import Vector
from geocalib.records import dataclass
from geocalib.result.evidence import CONTRADICTION
from geocalib.solver.known import VAGUE_DEG


@dataclass(frozen=True)
class GravityReading:
    """A direction of gravity, with what is known of its error."""

    gravity: Vector
    """Unit vector in the frame of the upright picture, pointing down."""
    sigma_deg: float
    """One sigma in each direction."""
    source: str
    """The instrument, and where its reading was found."""
    edited: bool = False
    """Whether a program may have turned the picture since."""


@dataclass(frozen=True)
class AngleReading:
    """One of the two angles of gravity, where nothing is known of the other."""

    angle: Literal["roll", "pitch"]
    degrees: float
    """In the upright picture: roll clockwise as seen from behind the camera, pitch upwards."""
    sigma_deg: float
    source: str

    @property
    def gravity(self) -> Vector:
        """Gravity by the known angle, with the other one 0."""
        roll, pitch = (self.degrees, 0.0) if self.angle == "roll" else (0.0, self.degrees)
        return from_gimbal(roll, pitch)

    @property
    def sigmas_deg(self) -> tuple[float, float]:
        """Sigmas of roll and pitch, degrees; that of an unknown angle is practically infinite."""
        known = self.sigma_deg
        return (known, VAGUE_DEG) if self.angle == "roll" else (VAGUE_DEG, known)


def combined(
    readings: Sequence[GravityReading],
) -> tuple[GravityReading | None, tuple[str, ...]]:
    """All of them as one, weighed by their information (1 / sigma^2), and notes: one that
    contradicts a surer one is left out."""
    kept: list[GravityReading] = []
    notes = []
    for reading in sorted(readings, key=lambda reading: reading.sigma_deg):
        if kept and (apart := _sigmas_apart(kept[0], reading)) > CONTRADICTION:
            notes.append(
                f"gravity by {reading.source} is {apart:.1f} sigma off that by {kept[0].source}; "
                "it was ignored"
            )
        else:
            kept.append(reading)
    if len(kept) < 2:
        return (kept[0] if kept else None), tuple(notes)
    weights = [reading.sigma_deg**-2 for reading in kept]
    x, y, z = (
        sum(weight * value for weight, value in zip(weights, values, strict=True))
        for values in zip(*(reading.gravity for reading in kept), strict=True)
    )
    source = " and ".join(reading.source for reading in kept)
    edited = any(reading.edited for reading in kept)
    return GravityReading(unit((x, y, z), source), sum(weights) ** -0.5, source, edited), tuple(
        notes
    )


def _sigmas_apart(one: GravityReading, other: GravityReading) -> float:
    cosine = sum(a * b for a, b in zip(one.gravity, other.gravity, strict=True))
    angle = math.degrees(math.acos(max(-1.0, min(1.0, cosine))))
    return angle / math.hypot(one.sigma_deg, other.sigma_deg)


def from_device(device: Vector) -> Vector:
    """A direction of a phone's frame in that of the picture its back camera stores.

    As phones have it: x to the right and y to the top of the upright screen, z out of it. Stored
    pictures are wide, with their top at the right side of the upright phone.
    """
    x, y, z = device
    return -y, -x, -z


def from_pose(rotation: tuple[Vector, Vector, Vector]) -> Vector:
    """Gravity in the stored picture's frame, of the rows of a rotation from camera to world.

    As ARKit and ARCore have it: the camera's x is to the right, y up and z backwards in the stored
    picture, and gravity is along -y of the world.
    """
    x, y, z = rotation[1]
    return -x, y, z


def from_gimbal(roll_deg: float, pitch_deg: float) -> Vector:
    """Gravity in the stored picture's frame, of a gimbal's angles: roll clockwise as seen from
    behind, pitch upwards. Yaw turns about gravity."""
    roll, pitch = math.radians(roll_deg), math.radians(pitch_deg)
    return (
        math.sin(roll) * math.cos(pitch),
        math.cos(roll) * math.cos(pitch),
        -math.sin(pitch),
    )


def unit(vector: Vector, name: str) -> Vector:
    """The vector with length 1."""
    length = math.hypot(*vector)
    if length < 1e-6:
        raise FormatError(f"{name} must be a direction, got a vector of length {length:g}")
    x, y, z = vector
    return x / length, y / length, z / length
