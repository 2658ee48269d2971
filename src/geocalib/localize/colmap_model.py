"""COLMAP models as folders of cameras, images and points3D, each .bin or .txt.

Only what localisation needs is kept: of an image its pose and which 3D point each keypoint shows,
of a 3D point where it is. What newer versions of COLMAP add (rigs, frames) is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from geocalib.cameras import Camera
from geocalib.errors import FormatError
from geocalib.formats import colmap
from geocalib.localize.rotation import from_quaternion, has_direction

Array = npt.NDArray[np.float64]

NO_POINT = -1
"""In the place of a 3D point for keypoints without one."""


@dataclass(frozen=True, eq=False)
class ModelImage:
    """An image of the model."""

    name: str
    camera_id: int
    rotation: Array
    """(3, 3) from the world to the camera frame."""
    translation: Array
    """(3,)."""
    keypoints: Array
    """(K, 2) pixels."""
    point_ids: npt.NDArray[np.int64]
    """(K,) the 3D point of each keypoint, or NO_POINT."""


@dataclass(frozen=True, eq=False)
class ColmapModel:
    """A reconstruction of COLMAP: cameras, images, points."""

    images: dict[str, ModelImage]
    """Images by their names."""
    points: dict[int, Array]
    """(3,) positions by id."""


def read_model(folder: str | Path) -> ColmapModel:
    """The images and points of a model's folder."""
    images, points = _file(folder, "images"), _file(folder, "points3D")
    read_images = _images_txt if images.suffix == ".txt" else _images_bin
    read_points = _points_txt if points.suffix == ".txt" else _points_bin
    return ColmapModel(
        {image.name: image for image in read_images(images)}, dict(read_points(points))
    )


def read_cameras(folder: str | Path) -> dict[int, Camera]:
    """The cameras of a model's folder, each a batch of 1, by their id."""
    return colmap.read(_file(folder, "cameras"))


def _file(folder: str | Path, part: str) -> Path:
    """The binary file where there is one, else the text."""
    folder = Path(folder)
    for path in (folder / f"{part}.bin", folder / f"{part}.txt"):
        if path.is_file():
            return path
    raise FormatError(f"{folder} holds neither {part}.bin nor {part}.txt; give a COLMAP model")


KEYPOINT = np.dtype([("x", "<f8"), ("y", "<f8"), ("point", "<i8")])
TRACK = np.dtype([("image", "<u4"), ("keypoint", "<u4")])


def _images_bin(path: Path) -> Iterator[ModelImage]:
    reader = colmap.Binary(path)
    for _ in range(reader.integer("Q")):
        reader.integer("I")
        pose = np.array(reader.numbers("7d"))
        camera, name = reader.integer("I"), reader.text()
        rows = reader.table(KEYPOINT, reader.integer("Q"))
        keypoints = np.stack([rows["x"], rows["y"]], -1)
        yield _image(path, name, camera, pose, keypoints, rows["point"].astype(np.int64))


def _points_bin(path: Path) -> Iterator[tuple[int, Array]]:
    reader = colmap.Binary(path)
    for _ in range(reader.integer("Q")):
        key, x, y, z, *_, track = reader.numbers("QdddBBBdQ")
        reader.table(TRACK, int(track))
        yield int(key), np.array([x, y, z])


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are no comments, numbered; an image without keypoints has an empty one."""
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    for number, line in enumerate(text.split("\n"), 1):
        if not line.startswith("#"):
            yield number, line


def _images_txt(path: Path) -> Iterator[ModelImage]:
    lines = _lines(path)
    for number, line in lines:
        if not line.strip():
            continue
        # The name is the rest of the line: it may hold spaces.
        words = line.split(maxsplit=9)
        _, keypoints = next(lines, (number + 1, ""))
        try:
            pose, camera, name = np.array(words[1:8], dtype=np.float64), int(words[8]), words[9]
            cells = keypoints.split()
            table = np.array(cells, dtype=np.float64).reshape(-1, 3)
            points = np.array(cells[2::3], dtype=np.int64)
        except (IndexError, ValueError, OverflowError):
            raise FormatError(
                f"{path}, line {number}: must be IMAGE_ID QW QX QY QZ TX TY TZ CAMERA_ID NAME and "
                "a line of X Y POINT3D_ID for each keypoint"
            ) from None
        yield _image(path, name.rstrip("\r"), camera, pose, table[:, :2], points)


def _points_txt(path: Path) -> Iterator[tuple[int, Array]]:
    for number, line in _lines(path):
        words = line.split(maxsplit=4)
        if not words:
            continue
        try:
            key, position = int(words[0]), np.array(words[1:4], dtype=np.float64)
            x, y, z = position
        except ValueError:
            raise FormatError(
                f"{path}, line {number}: must begin with POINT3D_ID X Y Z, got {line[:60]!r}"
            ) from None
        yield key, np.array([x, y, z])


def _image(
    path: Path,
    name: str,
    camera: int,
    pose: Array,
    keypoints: Array,
    points: npt.NDArray[np.int64],
) -> ModelImage:
    """An image from its pose (7,): quaternion and translation."""
    if not np.isfinite(pose).all() or not has_direction(pose[:4]):
        raise FormatError(f"{path}: image {name} has no sound pose: {pose.tolist()}")
    return ModelImage(name, camera, from_quaternion(pose[:4]), pose[4:], keypoints, points)
