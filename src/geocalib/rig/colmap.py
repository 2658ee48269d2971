"""COLMAP's rigs: the rig_config.json that it is given, and the rigs.txt of its models.

Rotations are those of cam_from_rig, quaternions w, x, y, z; rel_qvec is its name before COLMAP 3.9.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from geocalib.arrays import Array
from geocalib.errors import FormatError
from geocalib.rig.description import (
    RigCamera,
    RigDescription,
    folder_pattern,
    parse_rotation,
    text,
)

ROTATIONS = ("cam_from_rig_rotation", "rel_qvec")
"""Names of the rotation in a configuration, the newer first."""

FILE, IMAGES = "rigs.txt", "images.txt"
"""In the folder of a model."""

CAMERA = "CAMERA"
"""The kind of sensor that takes images."""


def read_config(content: Sequence[Any], source: str) -> RigDescription:
    """The rigs of a configuration: a list of rigs, each with its cameras.

    A camera's images are those whose path, or the end of it, begins with image_prefix.
    """
    cameras = []
    for number, rig in enumerate(content, 1):
        where = f"{source}, rig {number}"
        entries = rig.get("cameras") if isinstance(rig, Mapping) else None
        if not isinstance(entries, Sequence) or isinstance(entries, str) or not entries:
            raise FormatError(f"{where}: there is no list of cameras")
        for place, entry in enumerate(entries, 1):
            here = f"{where}, camera {place}"
            if not isinstance(entry, Mapping) or "image_prefix" not in entry:
                raise FormatError(f"{here}: there is no image_prefix")
            prefix = text(entry["image_prefix"], f"{here}: image_prefix")
            name = prefix.rstrip("/")
            rotation = _config_rotation(entry, rig, here)
            cameras.append(RigCamera(name, rotation, f"{prefix}*", name, str(number)))
    return RigDescription(tuple(cameras), source)


def _config_rotation(entry: Mapping[Any, Any], rig: Mapping[Any, Any], where: str) -> Array:
    if key := next((key for key in ROTATIONS if key in entry), None):
        return parse_rotation(entry[key], f"{where}: {key}")
    camera_id = entry.get("camera_id")
    if entry.get("ref_sensor") or (camera_id is not None and camera_id == rig.get("ref_camera_id")):
        return np.eye(3)
    raise FormatError(
        f"{where}: there is no {ROTATIONS[0]}, and it is not the reference; COLMAP can estimate it"
    )


def read_model_rigs(file: Path) -> RigDescription:
    """The rigs of a model, in the frames of their reference sensors.

    A camera is called by its folder where images.txt beside the file tells one, else by its id.
    Sensors that are no cameras are left out.
    """
    folders = _folders(file.with_name(IMAGES))
    cameras = []
    for where, line in _lines(file):
        words = line.split()
        for camera_id, rotation in _sensors(words, where):
            name = folders.get(camera_id, camera_id)
            cameras.append(RigCamera(name, rotation, folder_pattern(name), camera_id, words[0]))
    return RigDescription(tuple(cameras), str(file))


def _lines(file: Path) -> Iterator[tuple[str, str]]:
    """The lines of a text file but for comments, with where they are."""
    try:
        content = file.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise FormatError(f"{file} cannot be read: {error.strerror}") from None
    for number, line in enumerate(content.split("\n"), 1):
        if line.strip() and not line.startswith("#"):
            yield f"{file}, line {number}", line


def _sensors(words: Sequence[str], where: str) -> Iterator[tuple[str, Array]]:
    """The ids and rotations of the cameras of a line."""
    try:
        sensors = list(_split(words))
    except (IndexError, ValueError):
        raise FormatError(
            f"{where}: must be RIG_ID NUM_SENSORS REF_TYPE REF_ID and, for every other sensor, "
            "TYPE ID HAS_POSE [QW QX QY QZ TX TY TZ]"
        ) from None
    for kind, sensor_id, pose in sensors:
        if kind == CAMERA and pose is None:
            raise FormatError(f"{where}: camera {sensor_id} has no pose in its rig")
        if kind == CAMERA and pose is not None:
            yield str(sensor_id), parse_rotation(pose[:4], f"{where}: the pose of {sensor_id}")


def _split(words: Sequence[str]) -> Iterator[tuple[str, int, list[float] | None]]:
    """Kind, id and pose of every sensor of a line."""
    yield words[2], int(words[3]), [1.0, 0.0, 0.0, 0.0]
    rest = words[4:]
    for _ in range(int(words[1]) - 1):
        kind, sensor_id, has_pose = rest[0], int(rest[1]), int(rest[2])
        end = 10 if has_pose else 3
        pose = [float(word) for word in rest[3:end]]
        if len(rest) < end:
            raise IndexError
        yield kind, sensor_id, pose or None
        rest = rest[end:]
    if rest:
        raise ValueError


def _folders(file: Path) -> dict[str, str]:
    """The folder of each camera's images, where each has one and shares it with no other."""
    if not file.exists():
        return {}
    found: dict[str, set[str]] = {}
    content = file.read_text(encoding="utf-8", errors="surrogateescape")
    lines = [line for line in content.split("\n") if not line.startswith("#")]
    # Every image has a second line, of its keypoints, which may be empty.
    for line in lines[::2]:
        words = line.split(maxsplit=9)
        if len(words) == 10:
            found.setdefault(words[8], set()).add(words[9].strip().rpartition("/")[0])
    single = {key: next(iter(folders)) for key, folders in found.items() if len(folders) == 1}
    names = list(single.values())
    return {key: name for key, name in single.items() if name and names.count(name) == 1}
