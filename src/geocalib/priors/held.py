"""Gravity by what a phone or a camera noted of how it was held, as its picture was taken.

Phones write the acceleration that they felt, in g: at rest it points along gravity and has
length 1. Of one in motion it tells less, the further its length is from 1. Cameras with a level
gauge write the angles that they showed. All of it is about the picture as the sensor took it, and
is turned as that was turned to be upright.

What has been done to a picture since, the file does not say, but it leaves traces: the name of an
editor, or the shape of a picture that stands although phones store all of them lying. Such a
picture was turned by a program, and the quarter turn is taken from gravity itself. One of a size
that the camera does not make was written anew, and may have been cut.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from PIL.ExifTags import Base

from geocalib.geometry.orientation import UNDOES, Vector, upright
from geocalib.imaging.metadata import Metadata
from geocalib.priors.exif import number
from geocalib.priors.frames import from_device, from_gimbal, unit
from geocalib.priors.gravity_reading import AngleReading, GravityReading
from geocalib.records import dataclass

PHONE_SIGMA_DEG = 0.9
"""Of a phone at rest: 0.5 degrees of roll, 1.2 of pitch, most of it the bias of each phone."""
MOTION_DEG_PER_G = 50.0
"""More of it for each g by which the length of the acceleration is off: as much again across
gravity as along it."""
MOST_MOTION_G = 0.2
"""Beyond it, nothing is concluded."""
GAUGE_SIGMA_DEG = 1.5
"""Of the level gauges of cameras, which nobody has measured here: they show half degrees to whole
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
