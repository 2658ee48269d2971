"""What sensors say of how a photo was held: in its metadata, and in a file beside it.

Phones write the acceleration that they felt, in g: at rest it points along gravity and has
length 1. Of one in motion it tells less, the further its length is from 1. Cameras with a level
gauge write the angles that they showed. All of it is about the picture as the sensor took it, and
is turned as that was turned to be upright.

What has been done to a picture since, the file does not say, but it leaves traces: the name of an
editor, or the shape of a picture that stands although phones store all of them lying. Such a
picture was turned by a program, and the quarter turn is taken from gravity itself. One of a size
that the camera does not make was written anew, and may have been cut.

XMP has the angles of a drone's gimbal, or those of a photo's pose. DJI writes them as attributes of
one description, other programs rewrite them as elements. Names are compared with their prefix:
newer drones use another namespace under the same one.

A JSON file beside a photo, ``IMG.json`` for ``IMG.jpg``, has one of four layouts, which differ in
their keys (``docs/priors.md``):

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
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn
from xml.parsers import expat

from PIL.ExifTags import Base

from geocalib.errors import FormatError
from geocalib.geometry.orientation import UNDOES, Vector, upright
from geocalib.imaging.metadata import Metadata
from geocalib.priors.exif import FocalReading, number
from geocalib.priors.gravity_reading import (
    AngleReading,
    GravityReading,
    combined,
    from_device,
    from_gimbal,
    from_pose,
    unit,
)
from geocalib.priors.lens_reading import LensReading
from geocalib.records import dataclass

GIMBAL_SIGMA_DEG = 1.0
"""Gimbals drift, and their angles are those of the horizon that the drone believes in."""

POSE_SIGMA_DEG = 2.0
"""One sigma of angles that a program wrote for the whole picture, from an unknown source."""


@dataclass(frozen=True)
class Readings:
    """What is known of one photo beside its pixels."""

    focal: FocalReading | None = None
    lens: LensReading | None = None
    """Distortion, in the parameters of the camera model that is fitted."""
    gravity: GravityReading | None = None
    """All of them as one, if there are several."""
    instruments: tuple[GravityReading, ...] = ()
    """The readings of the single instruments."""
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


PHONE_SIGMA_DEG = 0.9
"""One sigma of a phone at rest: 0.5 degrees of roll, 1.2 of pitch, most of it the bias of each
phone."""
MOTION_DEG_PER_G = 50.0
"""More of it for each g by which the length of the acceleration is off: as much again across
gravity as along it."""
MOST_MOTION_G = 0.2
"""Beyond it, nothing is concluded."""
GAUGE_SIGMA_DEG = 1.5
"""One sigma of cameras' level gauges, a guess: they show half degrees to whole
ones."""
STEEP = 0.35
"""Gravity across the view, in g, below which a picture's quarter turns do not follow from it."""
LYING_SIDES = (2592, 3264, 4032, 5712, 8064)
SQUARE_SIDES = (1936, 2448, 3024, 4284)
"""Pixels on the longer side of an Apple camera's pictures, and of its square ones."""
SMALL, ROUND = 2050, 50
"""Pixels: up to such a longer side, or a multiple of that, a picture of another size was made
smaller as a whole; else it was cut out of a larger one."""
CUT_SIGMA_DEG = 4.5
"""More of it where the middle of the picture is not that of the camera's, and it may have been
straightened as it was cut."""
STITCHED = 2.4
"""Longer to shorter side of pictures of several views."""
NOT_MEASURED = (-1, 0xFFFFFFFF)
"""Denominators that EXIF has for what is unknown."""
UNKNOWN = (math.nan, math.nan)
OF_PHONES = re.compile(r"\d+(\.\d+)*")
"""What phones name as their software: the version of their system."""


@dataclass(frozen=True)
class Noted:
    """A direction as the sensor took the picture, in the frame of the stored picture."""

    down: Vector
    sigma_deg: float
    source: str


def held_gravity(
    metadata: Metadata, size: tuple[int, int]
) -> tuple[GravityReading | None, tuple[str, ...]]:
    """Gravity in a picture of upright (width, height) by what was noted of how its camera was held;
    and notes on what could not be used."""
    if not metadata.held:
        return None, metadata.damage
    if "front" in str(metadata.tags.get(Base.LensModel, "")):
        # Their pictures may or may not be mirrored, and nothing tells.
        return None, ()
    noted = _phone(metadata.held) or _gauge(metadata.held, metadata.taken)
    if noted is None:
        return None, ("how the camera was held makes no sense in the file and was ignored",)
    down = upright(noted.down, metadata.taken)
    width, height = size
    if max(size) > STITCHED * min(size):
        return None, ()
    if metadata.taken == 1 and height > width:
        if math.hypot(down[0], down[1]) < STEEP:
            return None, (
                "was turned since it was taken, and gravity does not tell which way: "
                f"that by {noted.source} was ignored",
            )
        down = max((upright(down, turn) for turn in (6, 8)), key=lambda turned: turned[1])
    cut = CUT_SIGMA_DEG if is_cut(metadata.tags, size) else 0.0
    sigma = math.hypot(noted.sigma_deg, cut)
    return GravityReading(down, sigma, noted.source, is_edited(metadata.tags, size)), ()


def noted_angle(
    tags: Mapping[int, Any], size: tuple[int, int]
) -> tuple[AngleReading | None, tuple[str, ...]]:
    """The elevation of the optical axis above the horizon, among EXIF tags of a picture of (width,
    height): its pitch, however it was turned or mirrored; and a note on one that makes no sense."""
    elevation = number(tags, Base.CameraElevationAngle)
    unknown = getattr(tags.get(Base.CameraElevationAngle), "denominator", 1) in NOT_MEASURED
    if elevation is None or unknown or max(size) > STITCHED * min(size):
        return None, ()
    if not abs(elevation) <= 90:
        return None, ("EXIF CameraElevationAngle makes no sense and was ignored",)
    return AngleReading("pitch", elevation, GAUGE_SIGMA_DEG, "elevation in EXIF"), ()


def is_edited(tags: Mapping[int, Any], size: tuple[int, int]) -> bool:
    """Whether a program other than that of the camera has written the picture of (width, height),
    as far as one can tell."""
    software = str(tags.get(Base.Software, "")).strip("\0 ")
    if "Apple" not in str(tags.get(Base.Make, "")):
        return False
    return OF_PHONES.fullmatch(software) is None or not _as_taken(size)


def is_cut(tags: Mapping[int, Any], size: tuple[int, int]) -> bool:
    """Whether a picture of (width, height) was cut out of that of a phone, as far as one can
    tell."""
    longer = max(size)
    phone = "Apple" in str(tags.get(Base.Make, ""))
    return phone and longer > SMALL and longer % ROUND != 0 and not _as_taken(size)


def _as_taken(size: tuple[int, int]) -> bool:
    """Whether an Apple camera takes pictures of such a size."""
    return max(size) in (SQUARE_SIDES if size[0] == size[1] else LYING_SIDES)


def _phone(held: Mapping[str, tuple[float, ...]]) -> Noted | None:
    """Gravity by the accelerometer of a phone, where it was held still."""
    acceleration = held.get("apple_acceleration")
    if acceleration is None or len(acceleration) != 3:
        return None
    x, y, z = acceleration
    motion = abs(math.hypot(x, y, z) - 1)
    if not motion <= MOST_MOTION_G:
        return None
    source = "accelerometer in EXIF"
    sigma = math.hypot(PHONE_SIGMA_DEG, MOTION_DEG_PER_G * motion)
    return Noted(unit(from_device((x, y, z)), source), sigma, source)


def _gauge(held: Mapping[str, tuple[float, ...]], taken: int) -> Noted | None:
    """By a level gauge: roll clockwise as seen from behind, pitch upwards."""
    roll, pitch = (
        _panasonic(held) or _olympus(held) or _canon(held) or _pentax(held, taken > 4) or UNKNOWN
    )
    if not (abs(roll) <= 180 and abs(pitch) <= 90):
        return None
    down = from_gimbal(roll, pitch)
    if taken > 4 and abs(roll) <= 45:
        # It counts from the side that the camera stood on, so that the picture is upright already.
        down = upright(down, UNDOES.get(taken, taken))
    return Noted(down, GAUGE_SIGMA_DEG, "level gauge in EXIF")


def _panasonic(held: Mapping[str, tuple[float, ...]]) -> tuple[float, float] | None:
    """Tenths of degrees in two bytes with a sign; both 0 where there is no gauge."""
    values = held.get("panasonic_roll", ()) + held.get("panasonic_pitch", ())
    if len(values) != 2 or values == (0, 0):
        return None
    roll, pitch = (value - 0x10000 if value >= 0x8000 else value for value in values)
    return roll / 10, -pitch / 10


def _olympus(held: Mapping[str, tuple[float, ...]]) -> tuple[float, float] | None:
    """Tenths of degrees, each beside a 1 if the gauge is on."""
    values = held.get("olympus_roll", ()) + held.get("olympus_pitch", ())
    if len(values) != 4 or values[1::2] != (1, 1):
        return None
    return -values[0] / 10, values[2] / 10


def _canon(held: Mapping[str, tuple[float, ...]]) -> tuple[float, float] | None:
    """Among numbers of four bytes, of which the first tells how many bytes they are: tenths of
    degrees from 0 to 360; both 0 where there is no gauge."""
    values = held.get("canon_level", ())
    if len(values) < 6 or values[0] != 4 * len(values) or values[4:6] == (0, 0):
        return None
    roll, pitch = (value - 3600 if value > 1800 else value for value in values[4:6])
    return -roll / 10, pitch / 10


PENTAX_SIDES = {1: False, 9: False, 3: True, 4: True, 11: True, 12: True}
PENTAX_NEW_SIDES = {0: False, 1: True, 3: True}
"""Whether the camera stood on one of its sides, by the lower four bits of the number noted; those
that are upside down or look straight up or down are left out."""


def _pentax(held: Mapping[str, tuple[float, ...]], turned: bool) -> tuple[float, float] | None:
    """Half degrees, after the side that the camera stood on, from which roll counts. turned:
    whether the picture was taken so by its orientation in EXIF."""
    sides = PENTAX_SIDES if "pentax_level" in held else PENTAX_NEW_SIDES
    values = held.get("pentax_level", held.get("pentax_new_level", ()))
    if len(values) != 3 or sides.get(int(values[0]) & 15) is not turned or abs(values[1]) > 90:
        return None
    return -values[1] / 2, -values[2] / 2


GIMBALS = (
    ("drone-dji:GimbalRollDegree", "drone-dji:GimbalPitchDegree", "drone-dji:GimbalYawDegree"),
    (
        "drone-parrot:CameraRollDegree",
        "drone-parrot:CameraPitchDegree",
        "drone-parrot:CameraYawDegree",
    ),
)
POSE = ("GPano:PoseRollDegrees", "GPano:PosePitchDegrees", "GPano:PoseHeadingDegrees")
"""XMP's names of roll, pitch and yaw."""
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


ACCELEROMETER_SIGMA_DEG = 1.0
"""One sigma of a phone held by hand: its bias, and its motion while the picture is taken."""
TRACKED_SIGMA_DEG = 0.5
"""One sigma of visual-inertial tracking, which averages the accelerometer over seconds."""

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
        instrument, sigma_deg = "AR pose", TRACKED_SIGMA_DEG
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
