"""Lensfun's database of cameras and lenses, where lensfunpy is installed (``geocalib[lensfun]``).

It knows how large the sensors of cameras are, as crop factors, and how lenses bend at each of their
focal lengths, as people measured it in raw pictures. What Lensfun makes of its polynomials is taken
of Lensfun itself, so that every model, sensor and unit of its database is read as it is meant.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from geocalib.arrays import Array
from geocalib.errors import how_to_get
from geocalib.geometry.conventions import FULL_FRAME_DIAGONAL
from geocalib.records import dataclass

GET_LENSFUN = how_to_get("lensfun")

STRAIGHTENED = re.compile(
    r"[a-z]|Micro 4/3|Sony E\b|Fujifilm|Canon (EF-M|RF)|Nikon (Z|CX)|Samsung NX|Leica L\b|Pentax Q"
)
"""Mounts of cameras that straighten what their lenses bend before they write a file: mirrorless
ones, and those of one camera with a fixed lens, whose names begin small."""
FOUR_THIRDS = re.compile(r"(Micro )?4/3|[a-z]")
"""Mounts of cameras whose sensors are 4:3; others are 3:2."""
CONVERTER = re.compile(r"extender|converter|\btc\b|\d(\.\d)?x\b", re.IGNORECASE)
SURE_SCORE = 45
"""What Lensfun gives to a lens whose name is found but for its maker; 100 at most. A focal length
and nothing else has 36."""
WITHIN = 0.02
"""Relative: how far a focal length may be outside the range of its lens, by rounding."""
SAMPLES = 48
BEHIND = 3.0
"""Radians to the axis beyond which no fisheye is looked at."""


@dataclass(frozen=True)
class Body:
    """A camera body in the database."""

    crop: float
    """How many times smaller than 36 x 24 mm its sensor is, by diagonals."""
    aspect: float
    """Longer to shorter side of the sensor."""
    straightens: bool
    """Whether its files are corrected already."""


@dataclass(frozen=True)
class Profile:
    """How a lens bends at one focal length, in a picture of one size."""

    name: str
    straight: tuple[float, ...]
    """Radii in the picture of the lens if it bent nothing, or of an equidistant one in place of a
    fisheye, pixels, out to the corner."""
    bent: tuple[float, ...]
    """Where they are in the photo."""
    focal_px: float
    """Of that picture, as the database counts it."""
    fisheye: bool


def installed() -> bool:
    """Whether there is a database."""
    return find_spec("lensfunpy") is not None


@cache
def database() -> Any:
    import lensfunpy

    return lensfunpy.Database()


@lru_cache(256)
def find_body(make: str, model: str) -> Body | None:
    """The camera of that name; None if it is unknown. Phones with several lenses, which
    have several sensors, are not among them."""
    cameras = database().find_cameras(make, model) if installed() and make and model else []
    if len({(camera.mount, camera.crop_factor) for camera in cameras}) != 1:
        return None
    (camera, *_) = cameras
    if camera.crop_factor <= 0:
        return None
    aspect = 4 / 3 if FOUR_THIRDS.match(camera.mount) else 3 / 2
    return Body(camera.crop_factor, aspect, STRAIGHTENED.match(camera.mount) is not None)


@lru_cache(256)
def find_profile(
    make: str, model: str, lens: str, millimetres: float, crop: float, size: tuple[int, int]
) -> Profile | None:
    """The distortion of a lens by name, camera and focal length; None if it is unknown, or
    several go by that name.

    crop: of the picture of (width, height), where it is a part of the sensor.
    """
    known_lenses = database()
    (camera, *_) = known_lenses.find_cameras(make, model)
    found = [
        each
        for each in known_lenses.find_lenses(camera, None, lens)
        if each.score >= SURE_SCORE
        and each.min_focal * (1 - WITHIN) <= millimetres <= each.max_focal * (1 + WITHIN)
        and bool(CONVERTER.search(each.model)) == bool(CONVERTER.search(lens))
    ]
    if not found:
        return None
    best, *others = found
    if any(each.score == best.score and each.model != best.model for each in others):
        return None
    known = {each.model for each in best.calib_distortion}
    kind = best.type.name
    usable = (kind == "RECTILINEAR" or is_fisheye(best)) and len(known) == 1
    return sampled(best, millimetres, crop, size) if usable else None


def is_fisheye(lens: Any) -> bool:
    """Equidistant, or of the other kinds."""
    return str(lens.type.name).startswith("FISHEYE")


def sampled(lens: Any, millimetres: float, crop: float, size: tuple[int, int]) -> Profile:
    """A profile along the diagonal of a picture, by Lensfun."""
    import lensfunpy

    modifier = lensfunpy.Modifier(lens, crop, *size)
    flags = lensfunpy.ModifyFlags.DISTORTION
    fisheye, ideal = is_fisheye(lens), lens.type
    if fisheye:
        flags, ideal = flags | lensfunpy.ModifyFlags.GEOMETRY, lensfunpy.LensType.FISHEYE
    modifier.initialize(millimetres, 8.0, 1000.0, 1.0, ideal, flags=flags)
    # It counts from the middle of the first pixel. Close to the corner there are more samples, as
    # the best polynomials have them.
    middle = 0.5 * (np.array(size) - 1)
    corner = float(np.linalg.norm(middle))
    focal_px = millimetres * crop * corner / (0.5 * FULL_FRAME_DIAGONAL)
    reach = min(1.0, BEHIND * focal_px / corner) if fisheye else 1.0
    points = middle * (1 + reach * np.sin(np.linspace(0, 0.5 * np.pi, SAMPLES + 1)[1:, None]))
    moved: Array = np.array(
        [modifier.apply_geometry_distortion(x, y, 1, 1)[0, 0] for x, y in points.tolist()]
    )
    straight, bent = (np.linalg.norm(each - middle, axis=-1) for each in (points, moved))
    radii = tuple(straight.tolist()), tuple(bent.tolist())
    return Profile(lens.model, *radii, focal_px, fisheye)
