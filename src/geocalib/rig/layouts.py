"""Rigs that need no file: the faces of a cube around a panorama, and two cameras side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from geocalib.rig.description import RigDescription, from_angles, simple_rig

FACES = {
    "front": (0.0, 0.0),
    "right": (90.0, 0.0),
    "back": (180.0, 0.0),
    "left": (-90.0, 0.0),
    "up": (0.0, 90.0),
    "down": (0.0, -90.0),
}
"""Where the faces of a cube look: yaw and pitch, degrees. The up and the down face are turned such
that they join the front face."""

LENS = "lens"
"""What all faces have in common."""


def cube_faces() -> RigDescription:
    """The six faces of a panorama as one camera sees them, in folders front, right, back, left, up
    and down."""
    turned = [(name, from_angles(yaw, pitch)) for name, (yaw, pitch) in FACES.items()]
    rig = simple_rig(turned, "cube")
    return replace(rig, cameras=tuple(replace(camera, intrinsics=LENS) for camera in rig.cameras))


def stereo_pair(apart_deg: float = 0.0) -> RigDescription:
    """Two cameras in folders left and right, turned away from each other."""
    half = 0.5 * apart_deg
    return simple_rig([("left", from_angles(-half)), ("right", from_angles(half))], "stereo")


LAYOUTS: dict[str, Callable[[], RigDescription]] = {"cube": cube_faces, "stereo": stereo_pair}
"""Rigs by their names on the command line."""
