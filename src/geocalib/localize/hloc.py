"""Files as the hloc toolbox writes them: query lists, pairs, features, matches, results.

queries     text: NAME MODEL WIDTH HEIGHT PARAMS[], in COLMAP's words; or NAME alone
pairs       text: QUERY DATABASE_IMAGE
features    HDF5: group NAME with the dataset keypoints (K, 2), counted from pixel centres
matches     HDF5: group QUERY/DATABASE_IMAGE, slashes within a name turned to dashes, with the
            dataset matches0 (K,): for each keypoint of the first image that of the second, or -1.
            The names may also come the other way round, or joined by an underscore.
results     text: NAME QW QX QY QZ TX TY TZ
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from geocalib.cameras import Camera, from_colmap, to_colmap
from geocalib.errors import CameraError, FormatError, MissingPackageError
from geocalib.localize.colmap_model import NO_POINT, ColmapModel
from geocalib.localize.pose import Pose

Array = npt.NDArray[np.float64]

Report = Callable[[str], None]
"""Takes one line for each thing that is left out."""

Row = TypeVar("Row")

LARGEST_DATASET = 1 << 28
"""Bytes: a hundred times the keypoints of the largest photos."""

FIRST_PIXEL = 0.5
"""Added to hloc's keypoints, which count from the centre of the first pixel."""


def read_queries(path: str | Path, report: Report) -> dict[str, Camera | None]:
    """The camera of each query, a batch of 1; None for a name alone."""

    def parse(words: list[str]) -> tuple[str, Camera | None]:
        if len(words) == 1:
            return words[0], None
        size = int(words[2]), int(words[3])
        parameters = [float(word) for word in words[4:]]
        return words[0], from_colmap(words[1], parameters, size)

    return dict(_rows(path, parse, "NAME or NAME MODEL WIDTH HEIGHT PARAMS[]", report))


def read_pairs(path: str | Path, report: Report) -> dict[str, list[str]]:
    """The database images of each query, in order."""

    def parse(words: list[str]) -> tuple[str, str]:
        query, image = words
        return query, image

    pairs: dict[str, list[str]] = {}
    for query, image in _rows(path, parse, "QUERY DATABASE_IMAGE", report):
        pairs.setdefault(query, []).append(image)
    return pairs


def read_text_matches(
    path: str | Path, model: ColmapModel, report: Report
) -> dict[str, tuple[Array, Array]]:
    """Pixels (N, 2) and world points (N, 3) of each query, from lines NAME X Y POINT3D_ID."""

    def parse(words: list[str]) -> tuple[str, Array, Array]:
        name, x, y, key = words
        pixel = np.array([x, y], dtype=np.float64)
        if not np.isfinite(pixel).all():
            raise ValueError
        if int(key) not in model.points:
            raise FormatError(f"the model has no 3D point {key}")
        return name, pixel, model.points[int(key)]

    matches: dict[str, list[tuple[Array, Array]]] = {}
    for name, pixel, point in _rows(path, parse, "NAME X Y POINT3D_ID", report):
        matches.setdefault(name, []).append((pixel, point))
    return {
        name: (np.array([m[0] for m in rows]), np.array([m[1] for m in rows]))
        for name, rows in matches.items()
    }


def _rows(
    path: str | Path, parse: Callable[[list[str]], Row], layout: str, report: Report
) -> Iterator[Row]:
    """What the lines of a file say; bad ones are reported and left out."""
    text = Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    if "\0" in text:
        raise FormatError(f"{path} is no text; it must hold lines {layout}")
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            yield parse(words)
        except (CameraError, FormatError) as error:
            report(f"{path}, line {number}: {error}")
        except (IndexError, ValueError):
            report(f"{path}, line {number}: must be {layout}, got {line[:60]!r}")


@contextmanager
def open_hdf5(path: str | Path) -> Iterator[Mapping[str, Any]]:
    """An HDF5 file to read; h5py is an extra."""
    try:
        h5py = import_module("h5py")
    except ImportError:
        raise MissingPackageError(f"{path}: HDF5 files need h5py; pip install h5py") from None
    Path(path).stat()  # Its message for a missing file is one line.
    try:
        file = h5py.File(path, "r")
    except OSError:
        raise FormatError(f"{path} is damaged or is no HDF5 file") from None
    with file:
        yield file


def find_matches(
    query: str,
    database: list[str],
    model: ColmapModel,
    features: Mapping[str, Any],
    matches: Mapping[str, Any],
    report: Report,
) -> tuple[Array, Array]:
    """Pixels (N, 2) and world points (N, 3) of a query, each pair of the two once.

    Database images without matches or outside the model are reported and left out.
    """
    try:
        keypoints = _dataset(features, query, "keypoints")
    except FormatError as error:
        report(f"{query}: {error}")
        keypoints = None
    if keypoints is None or keypoints.ndim != 2 or keypoints.shape[1] < 2:
        report(f"{query}: the features hold no keypoints (K, 2) for it")
        return np.empty((0, 2)), np.empty((0, 3))
    found: dict[tuple[int, int], None] = {}
    for name in database:
        try:
            pairs = _pairs(matches, query, name)
        except FormatError as error:
            report(f"{query}: {error}")
            continue
        if name not in model.images:
            report(f"{query}: the model has no image {name}")
        elif pairs is None:
            report(f"{query}: there are no matches with {name}")
        else:
            ids = model.images[name].point_ids
            if ((pairs < 0) | (pairs >= (len(keypoints), len(ids)))).any():
                report(f"{query}: the matches with {name} are those of other keypoints")
                continue
            shown = ids[pairs[:, 1]]
            for keypoint, point in zip(pairs[:, 0].tolist(), shown.tolist(), strict=True):
                if point != NO_POINT and point in model.points:
                    found[keypoint, point] = None
    pixels = keypoints[[keypoint for keypoint, _ in found], :2].astype(np.float64) + FIRST_PIXEL
    points = np.array([model.points[point] for _, point in found]).reshape(-1, 3)
    return pixels, points


def _pairs(matches: Mapping[str, Any], query: str, name: str) -> npt.NDArray[np.int64] | None:
    """(M, 2) keypoints of the query and of the database image that match."""
    first, second = query.replace("/", "-"), name.replace("/", "-")
    for joint in "/_":
        for ends, order in (((first, second), 1), ((second, first), -1)):
            table = _dataset(matches, joint.join(ends), "matches0")
            if table is not None and table.ndim == 1 and table.dtype.kind in "iu":
                matched = np.flatnonzero(table >= 0)
                return np.stack([matched, table[matched].astype(np.int64)][::order], -1)
    return None


def _dataset(file: Mapping[str, Any], group: str, name: str) -> npt.NDArray[Any] | None:
    """The numbers of a dataset; None if there is none of that name."""
    key = f"{group}/{name}"
    try:
        found = file.get(key)
        # What a file says of its size need not be true.
        if found is None or getattr(found, "nbytes", 0) > LARGEST_DATASET:
            return None
        values = np.asarray(found)
    except Exception:  # HDF5 fails on damaged files in ways of its own.
        raise FormatError(f"the HDF5 file is damaged at {key}; write it again") from None
    return values if values.dtype.kind in "iuf" else None


def format_results(poses: Mapping[str, Pose]) -> str:
    """The content of the file of results."""
    return "".join(f"{name} {pose_numbers(pose)}\n" for name, pose in poses.items())


def format_model(poses: Mapping[str, Pose], cameras: Mapping[str, Camera]) -> tuple[str, str]:
    """COLMAP's cameras.txt and images.txt, without keypoints."""
    ids: dict[str, int] = {}
    images = ["# IMAGE_ID QW QX QY QZ TX TY TZ CAMERA_ID NAME, and a line of keypoints\n"]
    for number, (name, pose) in enumerate(poses.items(), 1):
        model, parameters = to_colmap(cameras[name])[0]
        width, height = (round(side) for side in cameras[name].size[0].tolist())
        camera = " ".join(map(str, (model, width, height, *parameters)))
        key = ids.setdefault(camera, len(ids) + 1)
        images.append(f"{number} {pose_numbers(pose)} {key} {name}\n\n")
    lines = [f"{key} {camera}\n" for camera, key in ids.items()]
    return "".join(["# CAMERA_ID MODEL WIDTH HEIGHT PARAMS[]\n", *lines]), "".join(images)


def pose_numbers(pose: Pose) -> str:
    """QW QX QY QZ TX TY TZ."""
    return " ".join(repr(float(v)) for v in (*pose.quaternion, *pose.translation))
