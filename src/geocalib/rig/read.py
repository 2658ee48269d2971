"""Rigs from files: our own layout, kalibr's and COLMAP's, recognised by their content.

Our own layout, as JSON or YAML, is a mapping ``cameras`` of names to what is known of each:

    cameras:
      left: {yaw_deg: -30, pitch_deg: 5}
      right: {camera_from_rig: [0.966, 0, -0.259, 0], images: right_*.png, intrinsics: left}

A camera's turn is given by ``yaw_deg``, ``pitch_deg`` and ``roll_deg`` (0 where not given) or by
``camera_from_rig``: a quaternion w, x, y, z, or the rows of a matrix.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from geocalib.arrays import Array
from geocalib.errors import FormatError
from geocalib.formats.yaml_text import UNREADABLE, load_yaml
from geocalib.rig import colmap
from geocalib.rig.description import (
    RigCamera,
    RigDescription,
    folder_pattern,
    from_angles,
    parse_rotation,
    simple_rig,
    text,
)
from geocalib.rig.layouts import LAYOUTS

CAMERA = re.compile(r"cam(\d+)")
POSE = "T_cn_cnm1"


ANGLES = ("yaw_deg", "pitch_deg", "roll_deg")
ROTATION = "camera_from_rig"
KEYS = (*ANGLES, ROTATION, "images", "intrinsics")
"""What may be said of a camera."""

KINDS = "a mapping of cameras, kalibr's camchain, or the list of rigs of COLMAP's rig_config"


def read_rig(path: str | Path) -> RigDescription:
    """The rig of a file (.json, .yaml, .yml, or rigs.txt of COLMAP), of the folder of a COLMAP
    model, or of a word: cube or stereo."""
    file = Path(path)
    if file.is_dir():
        return colmap.read_model_rigs(_in_model(file))
    if not file.exists() and str(path) in LAYOUTS:
        return LAYOUTS[str(path)]()
    if file.suffix.lower() == ".txt":
        return colmap.read_model_rigs(file)
    content = _load(file)
    source = str(file)
    if isinstance(content, list) and content:
        return colmap.read_config(content, source)
    if isinstance(content, Mapping):
        if isinstance(content.get("cameras"), Mapping):
            return _read_own(content["cameras"], source)
        if is_camchain(content):
            return read_camchain(content, source)
    raise FormatError(f"{file}: holds no rig; a rig is {KINDS}")


def _in_model(folder: Path) -> Path:
    file = folder / colmap.FILE
    if file.exists():
        return file
    if file.with_suffix(".bin").exists():
        raise FormatError(
            f"{file.with_suffix('.bin')}: rigs are read from text; convert the model with colmap "
            "model_converter --output_type TXT"
        )
    raise FormatError(f"{folder}: holds no {colmap.FILE}; name the file of the rig")


def _load(file: Path) -> Any:
    """The values of a JSON or YAML file."""
    suffix = file.suffix.lower()
    if suffix not in (".json", ".yaml", ".yml"):
        known = f".json, .yaml or .txt, or one of the words {', '.join(LAYOUTS)}"
        raise FormatError(f"{file}: rigs are read from {known}")
    try:
        content = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FormatError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FormatError(f"{file} is no text, so no rig either") from None
    if suffix == ".json":
        try:
            return json.loads(content)
        except json.JSONDecodeError as error:
            raise FormatError(f"{file}, line {error.lineno}: is no JSON: {error.msg}") from None
        except (ValueError, RecursionError):
            raise FormatError(f"{file}: cannot be read: it holds {UNREADABLE}") from None
    return load_yaml(content, file)


def _read_own(cameras: Mapping[Any, Any], source: str) -> RigDescription:
    found = []
    for key, entry in cameras.items():
        name = text(key, f"{source}: a camera's name")
        where = f"{source}, camera {name}"
        entry = {} if entry is None else entry
        if not isinstance(entry, Mapping):
            raise FormatError(f"{where}: is {entry!r}, not a mapping of {', '.join(KEYS)}")
        if unknown := next((word for word in entry if word not in KEYS), None):
            raise FormatError(f"{where}: {unknown!r} is not known; known: {', '.join(KEYS)}")
        images = text(entry.get("images", folder_pattern(name)), f"{where}: images")
        intrinsics = text(entry.get("intrinsics", name), f"{where}: intrinsics")
        found.append(RigCamera(name, _own_rotation(entry, where), images, intrinsics))
    return RigDescription(tuple(found), source)


def _own_rotation(entry: Mapping[Any, Any], where: str) -> Array:
    given = [name for name in ANGLES if name in entry]
    if ROTATION not in entry:
        return from_angles(**{name: _degrees(entry[name], f"{where}: {name}") for name in given})
    if given:
        raise FormatError(f"{where}: {ROTATION} and {given[0]} say the same; give one of them")
    return parse_rotation(entry[ROTATION], f"{where}: {ROTATION}")


def _degrees(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 360:
        raise FormatError(f"{where} is {value!r:.40}, not a number of degrees up to 360")
    return float(value)


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
