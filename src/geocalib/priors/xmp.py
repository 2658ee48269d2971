"""The angles of a drone's gimbal, or those of a photo's pose, out of its XMP packet.

DJI writes them as attributes of one description, other programs rewrite them as elements. Names
are compared with their prefix: newer drones use another namespace under the same one.
"""

from __future__ import annotations

import math
from typing import NoReturn
from xml.parsers import expat

from geocalib.errors import FormatError
from geocalib.geometry.orientation import Vector
from geocalib.priors.frames import from_gimbal

GIMBALS = (
    ("drone-dji:GimbalRollDegree", "drone-dji:GimbalPitchDegree", "drone-dji:GimbalYawDegree"),
    (
        "drone-parrot:CameraRollDegree",
        "drone-parrot:CameraPitchDegree",
        "drone-parrot:CameraYawDegree",
    ),
)
POSE = ("GPano:PoseRollDegrees", "GPano:PosePitchDegrees", "GPano:PoseHeadingDegrees")
"""Roll, pitch and yaw."""
PROJECTION = "GPano:ProjectionType"
NAMES = {PROJECTION, *POSE, *(name for gimbal in GIMBALS for name in gimbal)}

LARGEST_PACKET = 1 << 20
"""Bytes: JPEG has room for 64 kB of XMP, and no camera needs more."""


def gimbal_gravity(packet: bytes) -> Vector | None:
    """Gravity in the stored picture's frame; None if the packet tells of no gimbal."""
    found = _values(packet)
    for names in GIMBALS:
        roll, pitch, yaw = (
            _degrees(name, found[name]) if name in found else None for name in names
        )
        if roll is None or pitch is None:
            continue
        if roll == pitch == yaw == 0:
            # A gimbal is hardly ever level and due north to a hundredth of a degree.
            raise FormatError(
                "the XMP angles of the gimbal are all 0, as of drones that leave them out"
            )
        return from_gimbal(roll, pitch)
    return None


def pose_gravity(packet: bytes) -> Vector | None:
    """Gravity in the upright picture's frame by the pose that Google's panoramas have, of a picture
    that is none; None if the packet tells of no pose, or of a level one, which programs write where
    they know of none."""
    found = _values(packet)
    roll, pitch = (_degrees(name, found[name]) if name in found else 0.0 for name in POSE[:2])
    if roll == pitch == 0 or found.get(PROJECTION, "").strip() not in ("", "rectilinear"):
        return None
    return from_gimbal(roll, pitch)


def _values(packet: bytes) -> dict[str, str]:
    """The texts under the names of interest."""
    if len(packet) > LARGEST_PACKET:
        raise FormatError(f"an XMP packet of {len(packet)} bytes is larger than any camera's")
    found: dict[str, str] = {}
    inside: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        found.update((key, attributes[key]) for key in NAMES if key in attributes)
        inside.append(name)

    def text(data: str) -> None:
        if inside and inside[-1] in NAMES:
            found[inside[-1]] = found.get(inside[-1], "") + data

    def end(name: str) -> None:
        inside.pop()

    def refuse(*_: object) -> NoReturn:
        # XMP has no document type; one that declares entities may expand to gigabytes.
        raise FormatError("an XMP packet must not declare a document type")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.CharacterDataHandler = text
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(packet.strip(b"\0 \t\r\n"), True)
    except expat.ExpatError as error:
        raise FormatError(f"the XMP packet is damaged: {error}") from None
    return found


def _degrees(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not -180 <= value <= 180:
        raise FormatError(f"XMP {name} must be an angle within 180 degrees, got {text!r:.40}")
    return value
