"""From the frames of instruments to that of the upright picture: x right, y down, z forward.

A picture is stored as its sensor lies in the device; ``geometry.orientation`` turns directions to
the upright one.
"""

from __future__ import annotations

import math

from geocalib.errors import FormatError
from geocalib.geometry.orientation import Vector


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
