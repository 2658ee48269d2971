"""Gravity out of a JSON file beside a photo, ``IMG.json`` for ``IMG.jpg``.

Four layouts, distinguished by their keys (``docs/priors.md``):

- ``gravity``: three numbers by an accelerometer, pointing down, of any length, with ``frame``:
  "camera" (of the upright picture) or "device" (of the phone).
- ``transform``: the camera's pose by ARKit or ARCore, 4x4, by rows unless ``order`` is "columns".
- ``cameraPoseARFrame``: the same as the 3D Scanner App writes it, 16 numbers by rows.
- ``t_00`` to ``t_23``: the same as Polycam writes it.

``sigma_deg`` and ``orientation`` (EXIF, of the picture as the device stored it) may be added.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Sequence
from typing import Any

from geocalib.errors import FormatError
from geocalib.geometry.orientation import Vector, upright
from geocalib.priors.frames import from_device, from_pose, unit
from geocalib.priors.gravity_reading import GravityReading

ACCELEROMETER_SIGMA_DEG = 1.0
"""Of a phone held by hand: its bias, and how it moves while the picture is taken."""
POSE_SIGMA_DEG = 0.5
"""Of visual-inertial tracking, which averages the accelerometer over seconds."""

LARGEST_FILE = 1 << 20
"""Bytes: what is larger is something else."""
RIGID = 1e-2
"""How far the rows of a rotation may be from unit length and right angles."""
OWN_RECORDS = '{"schema": "geocalib/'
"""Answers of this program may lie beside the photo under the same name."""

Rotation = tuple[Vector, Vector, Vector]


def sidecar_path(image: str) -> str:
    """Where the sidecar of an image lies, if there is one."""
    return os.path.splitext(image)[0] + ".json"


def sidecar_of(image: str) -> str | None:
    """The sidecar of an image; None where no file lies, or one with answers of this program."""
    path = sidecar_path(image)
    try:
        if not os.path.getsize(path) or not os.path.isfile(path):
            return None
        with open(path, encoding="utf-8", errors="replace") as file:
            return None if file.read(len(OWN_RECORDS)) == OWN_RECORDS else path
    except OSError:
        return None


def read_sidecar(path: str, orientation: int) -> GravityReading | None:
    """The reading of a file; None if there is none, or if it is about something else.

    orientation: the picture's own by EXIF, 1 to 8.
    """
    try:
        if os.path.getsize(path) > LARGEST_FILE:
            return None
        if not os.path.isfile(path):
            raise OSError("it is no file")  # Opening a pipe would wait for its writer.
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise FormatError(f"{path} cannot be read: {error}") from None
    if text.startswith(OWN_RECORDS):
        return None
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} is not JSON: {error}") from None
    if not isinstance(values, dict):
        return None
    try:
        return _reading(values, path, orientation)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None


def _reading(values: dict[str, Any], path: str, orientation: int) -> GravityReading | None:
    given = values.get("orientation", orientation)
    if given not in range(1, 9) or isinstance(given, bool):
        raise FormatError(f"orientation must be 1 to 8 as in EXIF, got {given!r:.40}")
    if "gravity" in values:
        gravity = _accelerometer(values, int(given))
        instrument, sigma_deg = "accelerometer", ACCELEROMETER_SIGMA_DEG
    elif (rotation := _rotation(values)) is not None:
        gravity = upright(from_pose(rotation), int(given))
        instrument, sigma_deg = "AR pose", POSE_SIGMA_DEG
    else:
        return None
    stated = values.get("sigma_deg", sigma_deg)
    if not _is_number(stated) or not 0 < stated <= 180:
        raise FormatError(f"sigma_deg must lie between 0 and 180, got {stated!r:.40}")
    source = f"{instrument} in {os.path.basename(path)}"
    return GravityReading(unit(gravity, "gravity"), float(stated), source)


def _accelerometer(values: dict[str, Any], orientation: int) -> Vector:
    x, y, z = _numbers("gravity", values["gravity"], 3)
    frame = values.get("frame")
    if frame == "camera":
        return x, y, z
    if frame == "device":
        return upright(from_device((x, y, z)), orientation)
    raise FormatError(f'frame must be "camera" or "device", got {frame!r:.40}')


def _rotation(values: dict[str, Any]) -> Rotation | None:
    """The rows of the rotation from camera to world, if there is a pose."""
    if "transform" in values:
        rows = _square("transform", values["transform"])
        order = values.get("order", "rows")
        if order not in ("rows", "columns"):
            raise FormatError(f'order must be "rows" or "columns", got {order!r:.40}')
        if order == "columns":
            rows = [list(column) for column in zip(*rows, strict=True)]
        name = "transform"
    elif "cameraPoseARFrame" in values:
        name = "cameraPoseARFrame"
        rows = _square(name, values[name])
    elif "t_00" in values:
        name = "t_00 to t_23"
        every = [values.get(f"t_{row}{column}") for row in range(3) for column in range(4)]
        flat = _numbers(name, every, 12)
        rows = [flat[:4], flat[4:8], flat[8:], [0.0, 0.0, 0.0, 1.0]]
    else:
        return None
    return _rigid(name, rows)


def _square(name: str, value: Any) -> list[list[float]]:
    """Four rows of four, given so or as 16 numbers."""
    if isinstance(value, list) and all(isinstance(row, list) for row in value):
        value = [number for row in value for number in row]
    flat = _numbers(name, value, 16)
    return [flat[start : start + 4] for start in range(0, 16, 4)]


def _rigid(name: str, rows: list[list[float]]) -> Rotation:
    if math.dist(rows[3], (0, 0, 0, 1)) > RIGID:
        raise FormatError(
            f'{name} must end in the row 0 0 0 1; if it is by columns, add "order": "columns"'
        )
    x, y, z = ((row[0], row[1], row[2]) for row in rows[:3])
    cross = (
        x[1] * y[2] - x[2] * y[1],
        x[2] * y[0] - x[0] * y[2],
        x[0] * y[1] - x[1] * y[0],
    )
    # Rows of a rotation: two of unit length at right angles, the third their product.
    lengths = abs(math.hypot(*x) - 1), abs(math.hypot(*y) - 1), math.dist(cross, z)
    if max(lengths) > RIGID:
        raise FormatError(f"{name} must hold a rotation; its rows are no right-handed unit axes")
    return x, y, z


def _numbers(name: str, value: Any, count: int) -> list[float]:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != count:
        raise FormatError(f"{name} must be {count} numbers, got {value!r:.60}")
    if not all(map(_is_number, value)):
        raise FormatError(f"{name} must be {count} numbers, got {value!r:.60}")
    return [float(part) for part in value]


def _is_number(value: Any) -> bool:
    """Whether it is one that a float can hold: integers may be longer."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) <= sys.float_info.max
