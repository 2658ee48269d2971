"""kalibr's camchain: cam0, cam1, ... and from each camera to the next a pose T_cn_cnm1."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from geocalib.errors import FormatError
from geocalib.rig.description import RigDescription, parse_rotation, simple_rig

CAMERA = re.compile(r"cam(\d+)")
POSE = "T_cn_cnm1"


def is_camchain(content: Mapping[Any, Any]) -> bool:
    """Whether this is what kalibr writes."""
    return any(CAMERA.fullmatch(str(key)) for key in content)


def read_camchain(content: Mapping[Any, Any], source: str) -> RigDescription:
    """The rig, in the frame of cam0. T_cn_cnm1 takes the frame of the camera before to this one's.

    Keys that are no cameras are passed over.
    """
    numbers = {int(m[1]): str(key) for key in content if (m := CAMERA.fullmatch(str(key)))}
    rotation = np.eye(3)
    cameras = []
    for expected, (number, name) in enumerate(sorted(numbers.items())):
        if number != expected:
            raise FormatError(f"{source}: there is {name} but no cam{expected}; the chain is cut")
        if number:
            entry = content[name]
            if not isinstance(entry, Mapping) or POSE not in entry:
                raise FormatError(
                    f"{source}, {name}: there is no {POSE}; every camera but cam0 has one"
                )
            rotation = parse_rotation(entry[POSE], f"{source}, {name}: {POSE}") @ rotation
        cameras.append((name, rotation))
    return simple_rig(cameras, source)
