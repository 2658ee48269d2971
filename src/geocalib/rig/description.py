"""What is known of a rig: its cameras, and how each of them is turned.

The frame of a rig is any that its cameras are turned against: x right, y down, z ahead where the
angles of ``from_angles`` are used. Where cameras stand does not matter to gravity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from geocalib.arrays import Array
from geocalib.errors import FormatError
from geocalib.geometry.gravity import from_roll_pitch, world_from_camera
from geocalib.localize.rotation import from_quaternion, has_direction

LARGEST_FAULT = 0.01
"""How far the rows of a rotation may be from orthonormal: files round."""


@dataclass(frozen=True, eq=False)
class RigCamera:
    """One of the cameras of a rig."""

    name: str
    camera_from_rig: Array
    """(3, 3) float64 rotation: a direction in the rig's frame to the camera's."""
    images: str
    """The images that it took: the end of their paths, with one * for the time step."""
    intrinsics: str
    """Cameras with the same word here have the same lens, size and settings."""
    rig: str = ""
    """Cameras with the same word here are mounted together."""


@dataclass(frozen=True, eq=False)
class RigDescription:
    """The cameras of one rig, or of several."""

    cameras: tuple[RigCamera, ...]
    source: str
    """The file, or whatever else described them, for messages."""

    def __post_init__(self) -> None:
        if not self.cameras:
            raise FormatError(f"{self.source}: there is no camera; a rig has one or more")
        for what in ("name", "images"):
            words = [getattr(camera, what) for camera in self.cameras]
            if twice := next((word for word in words if words.count(word) > 1), None):
                raise FormatError(f"{self.source}: two cameras have the {what} {twice!r}")
        for camera in self.cameras:
            if camera.images.count("*") != 1 or camera.images.strip("/") == "*":
                raise FormatError(
                    f"{self.source}, camera {camera.name}: images is {camera.images!r}; give the "
                    "end of a path with one * for the time step, as left/* or left_*.png"
                )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all cameras, in order."""
        return tuple(camera.name for camera in self.cameras)

    @property
    def camera_from_rig(self) -> Array:
        """(M, 3, 3) rotations of all cameras."""
        return np.stack([camera.camera_from_rig for camera in self.cameras])


def folder_pattern(name: str) -> str:
    """The pattern of the images in folders of that name."""
    return f"{name}/*"


def from_angles(yaw_deg: float = 0.0, pitch_deg: float = 0.0, roll_deg: float = 0.0) -> Array:
    """(3, 3) camera_from_rig of a camera that is turned to the right by yaw, up by pitch, and
    clockwise by roll, as seen from behind it."""
    yaw, pitch, roll = np.deg2rad([yaw_deg, pitch_deg, roll_deg])
    return np.ascontiguousarray(world_from_camera(from_roll_pitch(roll, pitch), yaw).T)


def parse_rotation(value: object, where: str) -> Array:
    """(3, 3) rotation of what a file has: a quaternion w, x, y, z, or the rows of a rotation, or of
    a pose, whose translation is left out."""
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = np.full(0, np.nan)
    if numbers.shape == (4,):
        if has_direction(numbers):
            return from_quaternion(numbers)
    elif numbers.shape in ((3, 3), (3, 4), (4, 4)) and has_direction(numbers[:3, :3]):
        rows = numbers[:3, :3]
        fault = np.abs(rows @ rows.T - np.eye(3)).max()
        if fault <= LARGEST_FAULT and np.linalg.det(rows) > 0:
            # The nearest rotation makes up for rounding.
            left, _, right = np.linalg.svd(rows)
            return left @ right
    raise FormatError(
        f"{where} is no rotation; give a quaternion w, x, y, z or the rows of a rotation matrix"
    )


def text(value: object, where: str) -> str:
    """A word of a file; numbers count as words."""
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise FormatError(f"{where} is {value!r}, not a name")
    return str(value)


def simple_rig(cameras: Sequence[tuple[str, Array]], source: str) -> RigDescription:
    """The rig of named rotations; each camera has its own folder and its own lens."""
    return RigDescription(
        tuple(RigCamera(name, rotation, folder_pattern(name), name) for name, rotation in cameras),
        source,
    )
