"""All that the sensors say of one photo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from geocalib.errors import FormatError
from geocalib.geometry.orientation import upright
from geocalib.imaging.metadata import Metadata
from geocalib.priors.exif import FocalReading
from geocalib.priors.gravity_reading import AngleReading, GravityReading, combined
from geocalib.priors.held import held_gravity, noted_angle
from geocalib.priors.lens_reading import LensReading
from geocalib.priors.sidecar import read_sidecar, sidecar_path
from geocalib.priors.xmp import gimbal_gravity, pose_gravity
from geocalib.records import dataclass

GIMBAL_SIGMA_DEG = 1.0
"""Gimbals drift, and their angles are those of the horizon that the drone believes in."""

POSE_SIGMA_DEG = 2.0
"""Of angles that a program wrote as those of the whole picture, nobody knows by what."""


@dataclass(frozen=True)
class Readings:
    """What is known of one photo beside its pixels."""

    focal: FocalReading | None = None
    lens: LensReading | None = None
    """Distortion, in the parameters of the camera model that is fitted."""
    gravity: GravityReading | None = None
    """All of them as one, if there are several."""
    instruments: tuple[GravityReading, ...] = ()
    """Each of them."""
    angle: AngleReading | None = None
    """One angle of gravity, where none of them tells both."""
    notes: tuple[str, ...] = ()
    """What could not be used, and why."""


def read_gravity(path: str | None, metadata: Metadata, size: tuple[int, int]) -> Readings:
    """Gravity by the file beside an image of that path, if it has one, and by its metadata. size:
    (width, height) of the upright picture."""
    held, noted = held_gravity(metadata, size) if metadata.held else (None, metadata.damage)
    found = [] if held is None else [held]
    notes = list(noted)
    if metadata.xmp is not None:
        try:
            angles, pose = gimbal_gravity(metadata.xmp), pose_gravity(metadata.xmp)
        except FormatError as error:
            notes.append(f"{error}; it was ignored")
        else:
            if angles is not None:
                turned = upright(angles, metadata.taken)
                found.append(GravityReading(turned, GIMBAL_SIGMA_DEG, "gimbal in XMP"))
            if pose is not None:
                found.append(GravityReading(pose, POSE_SIGMA_DEG, "pose in XMP"))
    if path is not None:
        try:
            beside = read_sidecar(sidecar_path(path), metadata.taken)
        except FormatError as error:
            notes.append(f"{error}; it was ignored")
        else:
            found.extend([beside] if beside is not None else [])
    if not found:
        angle, why_not = noted_angle(metadata.tags, size)
        return Readings(angle=angle, notes=tuple(notes) or why_not)
    gravity, contradictions = combined(found)
    return Readings(gravity=gravity, instruments=tuple(found), notes=(*notes, *contradictions))


def of_both_angles(readings: Sequence[Readings]) -> list[Readings]:
    """Without single angles, which no sigma of a gravity that photos share can express."""
    return [replace(each, angle=None) for each in readings]
