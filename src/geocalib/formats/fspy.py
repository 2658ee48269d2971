"""fSpy's files, which its importers for Blender and others read.

``fspy``, then three little-endian numbers of 32 bits: the version 1, the length of a JSON text and
that of an image; then both. ``cameraTransform`` goes from a camera that looks along -z with y up to
the world, row by row; the principal point spans -1 to 1 along the longer side of the picture, y
up. Importers refuse files without an image: a photo that is not there cannot be written.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from geocalib.arrays import Array
from geocalib.cameras import Camera
from geocalib.errors import FormatError
from geocalib.files import write_bytes
from geocalib.formats.outputs import files_of_each
from geocalib.formats.scenes import FRAME, SceneCamera, picture_bytes, scene_of
from geocalib.records import dataclass
from geocalib.result.calibration import Outcome
from geocalib.result.record import Frame

SUFFIX = ".fspy"

SIGNATURE, VERSION = b"fspy", 1

UNIT = "Meters"


def write(outcomes: Iterable[Outcome], path: str | Path, frame: Frame = FRAME) -> list[Path]:
    """Write a file per image, with the picture in it. See ``geocalib.formats`` for the path and
    what is returned."""
    files = files_of_each(outcomes, path, SUFFIX, frame)
    contents = {
        file: _content(scene_of(calibration), picture_bytes(calibration))
        for file, calibration in files.items()
    }
    for file, content in contents.items():
        write_bytes(file, content)
    return list(files)


def _content(scene: SceneCamera, image: bytes) -> bytes:
    text = json.dumps(_state(scene)).encode()
    head = struct.pack("<4sIII", SIGNATURE, VERSION, len(text), len(image))
    return head + text + image


def _state(scene: SceneCamera) -> dict[str, Any]:
    half = 0.5 * max(scene.width, scene.height)
    return {
        "calibrationSettingsBase": {
            "referenceDistanceUnit": UNIT,
            "referenceDistanceAxis": None,
            "referenceDistance": 1,
        },
        "cameraParameters": {
            "principalPoint": {
                "x": (scene.cx - 0.5 * scene.width) / half,
                "y": (0.5 * scene.height - scene.cy) / half,
            },
            "horizontalFieldOfView": scene.hfov,
            "verticalFieldOfView": scene.vfov,
            "relativeFocalLength": scene.fx / half,
            "cameraTransform": {"rows": scene.pose.tolist()},
            "viewTransform": {"rows": np.linalg.inv(scene.pose).tolist()},
            "imageWidth": scene.width,
            "imageHeight": scene.height,
        },
    }


@dataclass(frozen=True)
class Project:
    """What a project file of fSpy holds."""

    camera: Camera
    """Pinhole, a batch of 1."""
    pose: Array
    """(4, 4) from a camera that looks along -z with y up, to the world with z up."""
    gravity: Array
    """(3,) in the camera frame (x right, y down, z forward)."""
    image: bytes


def read(path: str | Path) -> Project:
    """A file of ours or of fSpy's own."""
    content = Path(path).read_bytes()
    head = struct.calcsize("<4sIII")
    if len(content) < head or content[:4] != SIGNATURE:
        raise FormatError(f"{path} is no file of fSpy's")
    _, version, text, image = struct.unpack_from("<4sIII", content)
    if version != VERSION:
        raise FormatError(f"{path} has the version {version} of fSpy's files; {VERSION} is read")
    if len(content) != head + text + image:
        raise FormatError(f"{path} is cut short; save it again")
    try:
        state = json.loads(content[head : head + text])
        parameters = state["cameraParameters"]
        width, height = float(parameters["imageWidth"]), float(parameters["imageHeight"])
        hfov = float(parameters["horizontalFieldOfView"])
        x, y = (float(parameters["principalPoint"][axis]) for axis in "xy")
        pose = np.array(parameters["cameraTransform"]["rows"], dtype=np.float64).reshape(4, 4)
    except (KeyError, TypeError, ValueError, RecursionError):
        raise FormatError(
            f"{path} holds no camera that was solved; set its vanishing points in fSpy"
        ) from None
    if not (0 < hfov < math.pi and width > 0 and height > 0 and np.isfinite(pose).all()):
        raise FormatError(f"{path}: its camera has a field of view of {hfov} radians")
    half = 0.5 * max(width, height)
    camera = Camera.create(
        "pinhole",
        f=np.array(0.5 * width / math.tan(0.5 * hfov)),
        size=(width, height),
        c=(0.5 * width + half * x, 0.5 * height - half * y),
    )
    gravity = np.array([1.0, -1, -1]) * (pose[:3, :3].T @ [0, 0, -1])
    return Project(camera, pose, gravity, content[head + text :])
