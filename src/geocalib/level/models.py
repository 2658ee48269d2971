"""Finished reconstructions as files: how their photos are turned, and the same files of a world
that was turned.

Read are COLMAP's sparse models (text and binary), nerfstudio's transforms.json, Bundler's
bundle.out with its list.txt, and plain poses. Whatever a turn of the world does not concern stays
as it is, number by number. Nothing is written here: turned files are bytes, so that a file which is
found to be damaged costs no other.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from geocalib.arrays import Array
from geocalib.errors import FormatError
from geocalib.localize.rotation import from_quaternion, has_direction, to_quaternion
from geocalib.records import dataclass

Turned = Callable[[Array, Path], dict[Path, bytes]]
"""The files of a model whose world was turned by a rotation (3, 3), to be written to a path."""

FLIP = np.diag([1.0, -1.0, -1.0])
"""From a camera with y up and z back to ours, and back."""

RIGID = 1e-3
"""How far from a rotation a matrix in a file may be."""

PARTS = ("cameras", "images", "points3D", "rigs", "frames")
"""The files of COLMAP's models, each .bin or .txt."""


@dataclass(frozen=True)
class Model:
    """A reconstruction as files hold it."""

    rotations: dict[str, Array]
    """(3, 3) from the world to the camera frame (x right, y down, z forward), by the image."""
    files: tuple[Path, ...]
    """The files that were read."""
    turned: Turned
    clouds: tuple[Path, ...] = ()
    """Point clouds that belong to it."""


def read_model(path: str | Path) -> Model:
    """The model of a path: a folder of COLMAP's, transforms.json, bundle.out, or a list of poses.

    Poses are camera-to-world matrices of cameras with x right, y down, z forward: a text of lines
    NAME and 12 or 16 numbers, row by row, or a JSON object of such matrices by the images' names.
    """
    path = Path(path)
    if path.is_dir():
        return _colmap(path)
    if not path.is_file():
        raise FormatError(f"{path} does not exist; give a model's folder or file")
    if path.suffix == ".ply":
        raise FormatError(f"{path} holds points and no photos; give the model, and --ply {path}")
    if path.suffix == ".json":
        return _json(path)
    if path.suffix == ".out":
        return _bundler(path)
    if path.suffix == ".txt":
        return _plain(path)
    raise FormatError(
        f"{path} is no model that is read here; give a folder of COLMAP's, transforms.json, "
        "bundle.out, or poses as .txt or .json"
    )


# COLMAP -----------------------------------------------------------------------------------------


def _colmap(folder: Path) -> Model:
    files = [
        folder / f"{part}{suffix}"
        for part in PARTS
        for suffix in (".bin", ".txt")
        if (folder / f"{part}{suffix}").is_file()
    ]
    images = next((file for file in files if file.stem == "images"), None)
    if images is None:
        raise FormatError(
            f"{folder} holds neither images.bin nor images.txt; give a COLMAP model's folder, "
            "as sparse/0"
        )
    poses = _binary_images(images) if images.suffix == ".bin" else _text_images(images)
    rotations = {name: from_quaternion(quaternion) for name, quaternion in poses}

    def turned(rotation: Array, output: Path) -> dict[Path, bytes]:
        return {output / file.name: _turned_part(file, rotation) for file in files}

    return Model(rotations, tuple(files), turned)


def _turned_part(file: Path, rotation: Array) -> bytes:
    if file.stem in ("cameras", "rigs"):
        return file.read_bytes()
    if file.suffix == ".txt":
        return _turned_text(file, rotation)
    content = bytearray(file.read_bytes())
    if file.stem == "points3D":
        for at in _binary_points(file, content):
            point = rotation @ np.array(struct.unpack_from("<3d", content, at))
            struct.pack_into("<3d", content, at, *point.tolist())
        return bytes(content)
    places = _binary_frames if file.stem == "frames" else _binary_poses
    for _, at in places(file, content):
        quaternion = np.array(struct.unpack_from("<4d", content, at))
        new = to_quaternion(_sound(quaternion, file) @ rotation.T)
        struct.pack_into("<4d", content, at, *new.tolist())
    return bytes(content)


def _sound(quaternion: Array, file: Path) -> Array:
    """The (3, 3) rotation of a quaternion, or an error that names the file."""
    if not np.isfinite(quaternion).all() or not has_direction(quaternion):
        raise FormatError(f"{file} is damaged: a rotation is {quaternion.tolist()}")
    return from_quaternion(quaternion)


class _Walk:
    """The places in a binary file, one after the other."""

    def __init__(self, file: Path, content: bytes | bytearray) -> None:
        self.file, self.content, self.at = file, content, 0

    def number(self, kind: str) -> int:
        try:
            (value,) = struct.unpack_from(f"<{kind}", self.content, self.at)
        except struct.error:
            raise self.cut_short() from None
        self.at += struct.calcsize(f"<{kind}")
        return int(value)

    def skip(self, count: int) -> int:
        """Where what is passed over begins."""
        begin, self.at = self.at, self.at + count
        if self.at > len(self.content):
            raise self.cut_short()
        return begin

    def text(self) -> str:
        end = self.content.find(b"\0", self.at)
        if end < 0:
            raise self.cut_short()
        text = bytes(self.content[self.at : end]).decode("utf-8", "surrogateescape")
        self.at = end + 1
        return text

    def finish(self) -> None:
        if self.at != len(self.content):
            raise self.cut_short()

    def cut_short(self) -> FormatError:
        return FormatError(f"{self.file} is damaged or is no COLMAP file; export it again")


def _binary_poses(file: Path, content: bytes | bytearray) -> Iterator[tuple[str, int]]:
    """The name of each image, and where its pose is."""
    walk = _Walk(file, content)
    for _ in range(walk.number("Q")):
        walk.number("I")
        pose = walk.skip(7 * 8)
        walk.number("I")
        name = walk.text()
        walk.skip(24 * walk.number("Q"))
        yield name, pose
    walk.finish()


def _binary_frames(file: Path, content: bytes | bytearray) -> Iterator[tuple[str, int]]:
    """The id of each frame of a rig, and where its pose is."""
    walk = _Walk(file, content)
    for _ in range(walk.number("Q")):
        frame, _ = walk.number("I"), walk.number("I")
        pose = walk.skip(7 * 8)
        walk.skip(16 * walk.number("I"))
        yield str(frame), pose
    walk.finish()


def _binary_points(file: Path, content: bytes | bytearray) -> Iterator[int]:
    """Where in the content each position of a point lies, in bytes."""
    walk = _Walk(file, content)
    for _ in range(walk.number("Q")):
        walk.number("Q")
        yield walk.skip(3 * 8)
        walk.skip(3 + 8)
        walk.skip(8 * walk.number("Q"))
    walk.finish()


def _binary_images(file: Path) -> Iterator[tuple[str, Array]]:
    content = file.read_bytes()
    for name, at in _binary_poses(file, content):
        quaternion = np.array(struct.unpack_from("<4d", content, at))
        _sound(quaternion, file)
        yield name, quaternion


def _text_lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="surrogateescape").split("\n")


def _numbers(words: list[str], count: int, file: Path, line: int) -> Array:
    try:
        values = np.array(words, dtype=np.float64)
    except ValueError:
        values = np.empty(0)
    if len(values) != count or not np.isfinite(values).all():
        raise FormatError(f"{file}, line {line}: {count} numbers are missing where they should be")
    return values


def _headers(file: Path, lines: list[str]) -> Iterator[int]:
    """The lines of images: every other one that is no comment is of keypoints, or empty."""
    places = iter(i for i, line in enumerate(lines) if not line.startswith("#"))
    for place in places:
        if lines[place].strip():
            yield place
            next(places, None)


def _text_images(file: Path) -> Iterator[tuple[str, Array]]:
    lines = _text_lines(file)
    for place in _headers(file, lines):
        words = lines[place].split(maxsplit=9)
        quaternion = _numbers(words[1:5], 4, file, place + 1)
        _numbers(words[5:8], 3, file, place + 1)
        if len(words) < 10:
            raise FormatError(f"{file}, line {place + 1}: the name of the image is missing")
        _sound(quaternion, file)
        yield words[9].rstrip("\r"), quaternion


def _turned_text(file: Path, rotation: Array) -> bytes:
    lines = _text_lines(file)
    if file.stem == "points3D":
        for place, line in enumerate(lines):
            if not line.strip() or line.startswith("#"):
                continue
            words = line.split(maxsplit=4)
            point = rotation @ _numbers(words[1:4], 3, file, place + 1)
            lines[place] = " ".join([words[0], *map(repr, point.tolist()), *words[4:]])
    else:
        # Of an image ID QW QX QY QZ ..., of a frame ID RIG_ID QW QX QY QZ ...
        first = 1 if file.stem == "images" else 2
        places: Iterator[int] = iter(
            i for i, line in enumerate(lines) if line.strip() and not line.startswith("#")
        )
        for place in _headers(file, lines) if file.stem == "images" else places:
            words = lines[place].split(maxsplit=first + 4)
            quaternion = _numbers(words[first : first + 4], 4, file, place + 1)
            new = to_quaternion(_sound(quaternion, file) @ rotation.T)
            middle = map(repr, new.tolist())
            lines[place] = " ".join([*words[:first], *middle, *words[first + 4 :]])
    return "\n".join(lines).encode("utf-8", "surrogateescape")


# Camera-to-world matrices ------------------------------------------------------------------------


def _matrix(value: Any, where: str) -> Array:
    """(3, 4) or (4, 4) pose, checked."""
    try:
        pose = np.array(value, dtype=np.float64)
    except (ValueError, TypeError):
        pose = np.empty(0)
    if pose.shape not in ((3, 4), (4, 4)) or not np.isfinite(pose).all():
        raise FormatError(f"{where}: a pose is a matrix of 3 or 4 rows of 4 numbers")
    return pose


def _rotation(pose: Array, where: str) -> Array:
    """(3, 3) of a pose, which may hold a scale."""
    matrix = pose[:3, :3]
    scale = abs(float(np.linalg.det(matrix))) ** (1 / 3)
    matrix = matrix / scale if scale > 0 else matrix
    if np.abs(matrix @ matrix.T - np.eye(3)).max() > RIGID or np.linalg.det(matrix) < 0:
        raise FormatError(f"{where}: the pose is no rotation and translation")
    return matrix


def _turn_pose(pose: Array, rotation: Array) -> list[list[float]]:
    turned = pose.copy()
    turned[:3] = rotation @ pose[:3]
    rows: list[list[float]] = turned.tolist()
    return rows


def _json(file: Path) -> Model:
    try:
        content = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{file} is not JSON: {error}") from None
    if isinstance(content, dict) and isinstance(content.get("frames"), list):
        return _nerfstudio(file, content)
    if not isinstance(content, dict) or not content:
        raise FormatError(f"{file} is neither a transforms.json nor an object of poses by image")
    poses = {name: _matrix(value, f"{file}, {name}") for name, value in content.items()}

    def turned(rotation: Array, output: Path) -> dict[Path, bytes]:
        result = {name: _turn_pose(pose, rotation) for name, pose in poses.items()}
        return {output: json.dumps(result, indent=1).encode()}

    return Model(
        {name: _rotation(pose, f"{file}, {name}").T for name, pose in poses.items()},
        (file,),
        turned,
    )


def _nerfstudio(file: Path, content: dict[str, Any]) -> Model:
    rotations, poses = {}, []
    for number, frame in enumerate(content["frames"], 1):
        where = f"{file}, frame {number}"
        if not isinstance(frame, dict) or not isinstance(frame.get("file_path"), str):
            raise FormatError(f"{where}: there is no file_path")
        poses.append(_matrix(frame.get("transform_matrix"), where))
        rotations[frame["file_path"]] = FLIP @ _rotation(poses[-1], where).T
    applied = content.get("applied_transform")
    applied = None if applied is None else _matrix(applied, f"{file}, applied_transform")
    cloud = content.get("ply_file_path")

    def turned(rotation: Array, output: Path) -> dict[Path, bytes]:
        frames = [
            {
                **_moved(frame, file.parent, output.parent),
                "transform_matrix": _turn_pose(pose, rotation),
            }
            for frame, pose in zip(content["frames"], poses, strict=True)
        ]
        result = {**content, "frames": frames}
        if applied is not None:
            result["applied_transform"] = _turn_pose(applied, rotation)
        if isinstance(cloud, str):
            result["ply_file_path"] = Path(cloud).name
        return {output: (json.dumps(result, indent=2) + "\n").encode()}

    clouds = (file.parent / cloud,) if isinstance(cloud, str) else ()
    return Model(rotations, (file,), turned, clouds)


def _moved(frame: dict[str, Any], old: Path, new: Path) -> dict[str, Any]:
    """A frame whose paths start at another folder."""
    paths = {
        key: Path(os.path.relpath(old / value, new)).as_posix()
        for key, value in frame.items()
        if key.endswith("_path") and isinstance(value, str)
    }
    return {**frame, **paths}


def _plain(file: Path) -> Model:
    lines = _text_lines(file)
    poses: dict[int, tuple[str, Array]] = {}
    for place, line in enumerate(lines):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split()
        count = 16 if len(words) > 16 else 12
        values = _numbers(words[-count:], count, file, place + 1)
        name = line.rsplit(maxsplit=count)[0].strip()
        if len(words) <= count:
            raise FormatError(f"{file}, line {place + 1}: must be NAME and 12 or 16 numbers")
        poses[place] = name, values.reshape(-1, 4)
    if not poses:
        raise FormatError(f"{file} holds no pose; give lines NAME and 12 or 16 numbers")

    def turned(rotation: Array, output: Path) -> dict[Path, bytes]:
        result = list(lines)
        for place, (name, pose) in poses.items():
            numbers = np.array(_turn_pose(pose, rotation)).ravel().tolist()
            result[place] = " ".join([name, *map(repr, numbers)])
        return {output: "\n".join(result).encode("utf-8", "surrogateescape")}

    return Model(
        {name: _rotation(pose, f"{file}, {name}").T for name, pose in poses.values()},
        (file,),
        turned,
    )


# Bundler ------------------------------------------------------------------------------------------


def _bundler(file: Path) -> Model:
    """Cameras have y up and look along -z; names stand in list.txt beside the file."""
    lines = _text_lines(file)
    listed = file.with_name("list.txt")
    if not lines[0].startswith("# Bundle file"):
        raise FormatError(f"{file} does not begin with '# Bundle file'; give Bundler's own")
    if not listed.is_file():
        raise FormatError(f"{listed} is missing: Bundler's list of the photos of {file}")
    names = [line.split()[0] for line in _text_lines(listed) if line.strip()]
    counts = _numbers(lines[1].split(), 2, file, 2) if len(lines) > 1 else np.zeros(2)
    cameras, points = int(counts[0]), int(counts[1])
    if len(lines) < 2 + 5 * cameras + 3 * points or cameras > len(names):
        raise FormatError(f"{file} is cut short, or {listed} does not belong to it")

    def rows(first: int) -> Array:
        return np.array(
            [_numbers(lines[i].split(), 3, file, i + 1) for i in range(first, first + 3)]
        )

    rotations: dict[str, Array] = {}
    places: list[int] = []
    for camera in range(cameras):
        first = 2 + 5 * camera
        focal, *_ = _numbers(lines[first].split(), 3, file, first + 1)
        matrix = rows(first + 1)
        # A photo that Bundler could not place has zeros.
        if math.isclose(focal, 0) or not matrix.any():
            continue
        places.append(first + 1)
        rotations[names[camera]] = FLIP @ _rotation(matrix, f"{file}, line {first + 2}")
    spots = range(2 + 5 * cameras, 2 + 5 * cameras + 3 * points, 3)

    def turned(rotation: Array, output: Path) -> dict[Path, bytes]:
        result = list(lines)
        for place in places:
            for row, values in enumerate((rows(place) @ rotation.T).tolist()):
                result[place + row] = " ".join(map(repr, values))
        for place in spots:
            point = rotation @ _numbers(lines[place].split(), 3, file, place + 1)
            result[place] = " ".join(map(repr, point.tolist()))
        content = "\n".join(result).encode("utf-8", "surrogateescape")
        return {output: content, output.with_name("list.txt"): listed.read_bytes()}

    return Model(rotations, (file, listed), turned)
