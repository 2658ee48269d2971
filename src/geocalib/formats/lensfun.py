"""Lensfun's XML: the profile of a lens that its database lacks, from one or many photos.

A lens has an entry for each of its focal lengths; of several photos the one counts whose focal
length is surest (those that share their camera are one anyway). Models of distortion are ``poly3``
and ``ptlens``, which every version reads: ``acm`` is refused by all that are released as 0.3.

A lens that EXIF names fits any camera (Lensfun's mount "Generic"). The lens of a photo that names
none belongs to its camera, which gets a mount of its own, as Lensfun does it for compact cameras.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from PIL.ExifTags import Base

from geocalib.files import write_text
from geocalib.formats.outputs import STRAIGHTEN, calibrated, convert, destination
from geocalib.formats.photo_tags import photo_tags
from geocalib.formats.ptlens import RECTILINEAR, to_ptlens
from geocalib.formats.scenes import CENTRED
from geocalib.geometry.conventions import FULL_FRAME_DIAGONAL
from geocalib.imaging.read import read_header
from geocalib.priors.sizes import sensor_size
from geocalib.records import dataclass
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.record import Frame

FILE = "lens.xml"
FRAME: Frame = "stored"

UNKNOWN = "unknown"


@dataclass(frozen=True)
class CameraAndLens:
    """The names of the camera and the lens that took a photo."""

    maker: str
    camera: str
    lens: str | None
    shape: tuple[int, int]
    """Longer and shorter side of the picture, shortened."""
    ideal: str
    """Lensfun's name of the lens that it is but for the distortion."""


@dataclass(frozen=True)
class Entry:
    """A focal length of a lens, with what one photo tells of it."""

    focal_mm: float
    crop: float
    """How many times smaller than 36 x 24 mm the sensor is, by diagonals."""
    calibration: Calibration
    abc: tuple[float, float, float]

    @property
    def doubt(self) -> float:
        """One sigma of the focal length, relative."""
        relative = self.calibration.sigma.focal / self.calibration.fy
        return math.inf if math.isnan(relative) else relative


def write(outcomes: Iterable[Outcome], path: str | Path, frame: Frame = FRAME) -> list[Path]:
    """Write lens.xml. See ``geocalib.formats`` for the path and what is returned."""
    file = destination(path, FILE)
    write_text(file, dumps(outcomes, frame))
    return [file]


def dumps(outcomes: Iterable[Outcome], frame: Frame = FRAME) -> str:
    """Return the content of lens.xml, a lens with its calibrations."""
    lenses: dict[CameraAndLens, dict[float, Entry]] = {}
    for calibration in calibrated(outcomes, frame):
        optics, entry = _described(calibration)
        entries = lenses.setdefault(optics, {})
        other = entries.get(entry.focal_mm)
        if other is None or entry.doubt < other.doubt:
            entries[entry.focal_mm] = entry
    parts = [_lens(optics, list(entries.values())) for optics, entries in lenses.items()]
    return '<lensdatabase version="1">\n' + "".join(parts) + "</lensdatabase>\n"


def _described(calibration: Calibration) -> tuple[CameraAndLens, Entry]:
    lens = convert(to_ptlens, calibration, STRAIGHTEN)
    known: Mapping[int, Any] = {}
    if calibration.image is not None and os.path.exists(calibration.image):
        _, known = read_header(calibration.image)
    tags = photo_tags(calibration)
    sides = calibration.width, calibration.height
    # For lenses that are no fisheyes Lensfun goes by the distortion alone: a sensor that is known
    # stays what it is. Fisheyes it maps by their focal length on the sensor.
    sensor = sensor_size(known.get(Base.Model)) if lens.ideal == RECTILINEAR else None
    diagonal = math.hypot(*sensor) if sensor else math.hypot(*sides) * tags.focal_mm / lens.focal
    shared = math.gcd(*sides)
    optics = CameraAndLens(
        _text(known.get(Base.Make)) or UNKNOWN,
        _text(known.get(Base.Model)) or f"{UNKNOWN} camera",
        _text(known.get(Base.LensModel)),
        (max(sides) // shared, min(sides) // shared),
        lens.ideal,
    )
    crop = FULL_FRAME_DIAGONAL / diagonal
    return optics, Entry(round(tags.focal_mm, 2), crop, calibration, lens.abc)


def _text(value: Any) -> str | None:
    """A tag's text without what XML cannot hold."""
    if not isinstance(value, str):
        return None
    return "".join(sign for sign in value if sign.isprintable()).strip() or None


def _lens(optics: CameraAndLens, entries: list[Entry]) -> str:
    best = min(entries, key=lambda entry: entry.doubt)
    mount = "Generic" if optics.lens else f"of {optics.maker} {optics.camera}".lower()
    owner = "" if optics.lens else _camera(optics, mount, best.crop)
    rows = "".join(f"            {_distortion(entry)}\n" for entry in entries)
    return (
        f"{owner}    <lens>\n"
        f"        <maker>{escape(optics.maker)}</maker>\n"
        f"        <model>{escape(optics.lens or f'{optics.camera} lens')}</model>\n"
        f"        <mount>{escape(mount)}</mount>\n"
        f"        <cropfactor>{best.crop:.4f}</cropfactor>\n"
        f"        <aspect-ratio>{optics.shape[0]}:{optics.shape[1]}</aspect-ratio>\n"
        f"        <type>{optics.ideal}</type>\n"
        f"{_centre(best.calibration)}"
        f"        <calibration>\n{rows}        </calibration>\n"
        "    </lens>\n"
    )


def _camera(optics: CameraAndLens, mount: str, crop: float) -> str:
    return (
        f"    <mount>\n        <name>{escape(mount)}</name>\n    </mount>\n"
        "    <camera>\n"
        f"        <maker>{escape(optics.maker)}</maker>\n"
        f"        <model>{escape(optics.camera)}</model>\n"
        f"        <mount>{escape(mount)}</mount>\n"
        f"        <cropfactor>{crop:.4f}</cropfactor>\n"
        "    </camera>\n"
    )


def _centre(calibration: Calibration) -> str:
    """The centre of the distortion, in halves of the shorter side from the middle."""
    size, c = calibration.cameras.size[0], calibration.cameras.c[0]
    aside = c - 0.5 * size
    if abs(aside).max() <= CENTRED:
        return ""
    x, y = (2 * aside / size.min()).tolist()
    return f'        <center x="{x:.6f}" y="{y:.6f}"/>\n'


def _distortion(entry: Entry) -> str:
    a, b, c = entry.abc
    head = f'focal="{entry.focal_mm:g}"'
    if a == c == 0:
        return f'<distortion model="poly3" {head} k1="{b!r}"/>'
    return f'<distortion model="ptlens" {head} a="{a!r}" b="{b!r}" c="{c!r}"/>'
