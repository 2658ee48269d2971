"""Files of cameras, ours or other programs', read as calibrations: what ``geocalib convert`` turns
into any other format.

A file is known by its content. Most hold a camera and nothing else: sigmas are then unknown, and
where a file does not say which way is down, the camera counts as level, its gravity is not
trusted, and its status is ``NO_GRAVITY``, at which formats that show how a camera is turned refuse.
A photo that is there tells its EXIF orientation, which leads from one frame to the other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL.ExifTags import Base

from geocalib.arrays import Array
from geocalib.cameras import Camera
from geocalib.cameras.exchange import LONGEST_SIDE
from geocalib.errors import FormatError, GeoCalibError
from geocalib.formats import (
    colmap,
    colmap_database,
    csv_table,
    fspy,
    hugin,
    json_lines,
    nerfstudio,
    opencv,
    scenes,
)
from geocalib.formats.outputs import NO_GRAVITY
from geocalib.geometry.fields import ALONG_PITCH, ALONG_ROLL, CX, CY, LOG_ASPECT, LOG_F
from geocalib.imaging.read import read_header
from geocalib.records import dataclass
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.record import FOCAL_RANGE, Frame
from geocalib.result.uncertainty import Trust, Uncertainty

CONVERTED = "converted"
"""The status of a camera that another program's file holds, gravity and all."""

LEVEL = np.array([0.0, 1.0, 0.0])


@dataclass(frozen=True)
class Cameras:
    """The cameras that a file holds, by the names of their photos."""

    format: str
    """Its name among ``geocalib.formats.FORMATS``; ROS' files are read as OpenCV's."""
    outcomes: list[Outcome]
    files: tuple[Path, ...]


def read(path: str | Path) -> Cameras:
    """The cameras of a file, of a COLMAP model's folder, or of a folder of files with one camera
    each (all of one format; pictures and other files in it are passed over)."""
    path = Path(path)
    if not path.exists():
        raise FormatError(f"{path} does not exist")
    if path.is_dir() and not any((path / name).is_file() for name in COLMAP_FILES):
        return _folder(path)
    format = "colmap" if path.is_dir() else _format_of(path)
    return Cameras(format, READERS[format](path), (path,))


def _folder(folder: Path) -> Cameras:
    files = sorted(file for file in folder.rglob("*") if file.suffix in ONE_EACH and file.is_file())
    formats = {_format_of(file) for file in files}
    if len(formats) != 1:
        held = f"files of {' and '.join(sorted(formats))}" if formats else "no file of cameras"
        raise FormatError(f"{folder} holds {held}; give one file, or a folder of one format")
    (format,) = formats
    outcomes = [outcome for file in files for outcome in READERS[format](file)]
    return Cameras(format, outcomes, tuple(files))


def _format_of(file: Path) -> str:
    """By what the file begins with, or what its text holds."""
    with file.open("rb") as stream:
        head = stream.read(64)
    if head.startswith(colmap_database.SIGNATURE):
        return "colmap-database"
    if head.startswith(fspy.SIGNATURE):
        return "fspy"
    if file.suffix in ONE_EACH:
        return ONE_EACH[file.suffix]
    if file.name in COLMAP_FILES or file.suffix == ".txt":
        return "colmap"
    if csv_table.is_ours(file):
        return "csv"
    if json_lines.is_ours(file) and head:
        return "json"
    values = _json_of(file)
    if "frames" in values:
        return "nerfstudio"
    raise FormatError(f"{file} holds no cameras that are read here; read are {', '.join(READERS)}")


def _json_of(file: Path) -> dict[str, Any]:
    """The object of a JSON file; an empty one for any other file."""
    try:
        values = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def _known(camera: Camera, gravity: Array | None, image: str | None, frame: Frame) -> Calibration:
    """A calibration with unknown sigmas. gravity: (3,), None where it is unknown."""
    _check(camera, image)
    free = (ALONG_ROLL, ALONG_PITCH, LOG_F, *camera.model.parameters, CX, CY, LOG_ASPECT)
    said = [] if gravity is not None else ["the file does not say which way is down"]
    return Calibration(
        image=image,
        cameras=camera,
        gravity=LEVEL if gravity is None else gravity / np.linalg.norm(gravity),
        sigma=Uncertainty.unknown(camera),
        covariance=np.full((len(free), len(free)), np.nan),
        parameters=free,
        status=NO_GRAVITY if gravity is None else CONVERTED,
        warnings=tuple(said),
        trust=Trust(gravity=gravity is not None),
        frame=frame,
        orientation=orientation_of(image),
    )


def _check(camera: Camera, image: str | None) -> None:
    """Refuse what no record could hold."""
    longest, focal = float(camera.size.max()), camera.focal[0]
    low, high = (share * longest for share in FOCAL_RANGE)
    if not (longest <= LONGEST_SIDE and low <= float(focal.min()) <= float(focal.max()) <= high):
        width, height = camera.size[0].tolist()
        raise FormatError(
            f"the camera of {image or 'no photo'} has {width:g} x {height:g} pixels and focal "
            f"lengths of {focal[0]:g} and {focal[1]:g}; no camera is like that"
        )


def orientation_of(image: str | None) -> int:
    """By EXIF of the photo, 1 to 8; 1 where there is no photo."""
    if image is None or not os.path.isfile(image):
        return 1
    try:
        _, tags = read_header(image)
    except GeoCalibError:
        return 1
    found = tags.get(Base.Orientation, 1)
    return int(found) if found in range(1, 9) else 1


def _image_beside(file: Path, suffix: str) -> str:
    """The photo of a file of one camera: photo.jpg of photo.jpg.yaml."""
    return str(file).removesuffix(suffix)


def _colmap(path: Path) -> list[Outcome]:
    return [_known(c, None, image, colmap.FRAME) for image, c in colmap.read_images(path)]


def _database(path: Path) -> list[Outcome]:
    return [
        _known(camera, gravity, image, colmap_database.FRAME)
        for image, camera, gravity in colmap_database.read(path)
    ]


def _opencv(path: Path) -> list[Outcome]:
    return [_known(opencv.read(path), None, _image_beside(path, path.suffix), opencv.FRAME)]


def _nerfstudio(path: Path) -> list[Outcome]:
    return [
        _known(camera, gravity, image, frame)
        for image, camera, gravity, frame in nerfstudio.read(path)
    ]


def _fspy(path: Path) -> list[Outcome]:
    project = fspy.read(path)
    image = _image_beside(path, fspy.SUFFIX)
    return [_known(project.camera, project.gravity, image, scenes.FRAME)]


def _hugin(path: Path) -> list[Outcome]:
    return [
        _known(camera, gravity, image, hugin.FRAME) for image, camera, gravity in hugin.read(path)
    ]


READERS: dict[str, Callable[[Path], list[Outcome]]] = {
    "json": json_lines.read,
    "csv": csv_table.read,
    "colmap": _colmap,
    "colmap-database": _database,
    "opencv": _opencv,
    "nerfstudio": _nerfstudio,
    "fspy": _fspy,
    "hugin": _hugin,
}
"""By the names of formats. OpenCV's reader takes ROS' files as well."""

COLMAP_FILES = ("cameras.bin", "cameras.txt")

ONE_EACH = {
    ".yaml": "opencv",
    ".yml": "opencv",
    fspy.SUFFIX: "fspy",
    hugin.SUFFIX: "hugin",
}
"""What the names of files of one camera end in."""
