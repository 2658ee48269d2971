"""COLMAP's cameras.txt: one line per distinct camera; which image has which in comments.

COLMAP reads pixels as they are stored, and so are the cameras: one for each size and turn. Its
cameras.bin is read as well.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from geocalib.cameras import Camera, ColmapCamera, from_colmap, to_colmap
from geocalib.cameras.exchange import COLMAP_IDS
from geocalib.cameras.nearest import nearest
from geocalib.errors import CameraError, FormatError
from geocalib.files import write_text
from geocalib.formats.outputs import SAID, calibrated, convert, destination, image_names
from geocalib.result.calibration import Outcome
from geocalib.result.record import Frame

FILE = "cameras.txt"
BINARY = "cameras.bin"
FRAME: Frame = "stored"

IMAGES = "# CAMERA_ID IMAGE, one comment per image"
"""What stands above the comments that say which image has which camera."""


def write(outcomes: Iterable[Outcome], path: str | Path, frame: Frame = FRAME) -> list[Path]:
    """Write cameras.txt. See ``geocalib.formats`` for the path and what is returned."""
    file = destination(path, FILE)
    write_text(file, dumps(outcomes, frame))
    return [file]


def dumps(outcomes: Iterable[Outcome], frame: Frame = FRAME) -> str:
    """The content of a file cameras.txt."""
    calibrations = calibrated(outcomes, frame)
    ids: dict[str, int] = {}
    images = []
    for calibration, image in zip(calibrations, image_names(calibrations), strict=True):
        model, parameters = convert(as_colmap, calibration)
        numbers = " ".join(map(repr, parameters))
        camera = f"{model} {calibration.width} {calibration.height} {numbers}"
        images.append(f"{ids.setdefault(camera, len(ids) + 1)} {image}")
    lines = [
        "# CAMERA_ID MODEL WIDTH HEIGHT PARAMS[], one line per camera",
        f"# {SAID[frame]}",
        *(f"{number} {camera}" for camera, number in ids.items()),
        IMAGES,
        # A name with a line break must not end its comment.
        *(f"# {' '.join(line.splitlines())}" for line in images),
    ]
    return "\n".join(lines) + "\n"


def as_colmap(camera: Camera) -> list[ColmapCamera]:
    """Each camera of the batch for COLMAP, which has no odd powers: ptlens is written as the
    nearest radial3."""
    return to_colmap(nearest(camera, "radial3") if camera.model.name == "ptlens" else camera)


def read(path: str | Path) -> dict[int, Camera]:
    """The cameras, each a batch of 1, by their id. The path is that of cameras.txt or cameras.bin,
    or of a folder that holds one; of both, the binary one counts."""
    path = Path(path)
    if path.is_dir():
        path = next((file for file in (path / BINARY, path / FILE) if file.is_file()), path / FILE)
    return dict(_binary(path)) if path.suffix == ".bin" else _text(path)


def read_images(path: str | Path) -> list[tuple[str | None, Camera]]:
    """Each image with its camera, as the comments in a cameras.txt of ours tell; of other files
    each camera once, without an image."""
    path, cameras = Path(path), read(path)
    file = path / FILE if path.is_dir() else path
    text = file.read_text(encoding="utf-8", errors="surrogateescape") if file.is_file() else ""
    _, _, comments = text.partition(IMAGES) if file.suffix == ".txt" else ("", "", "")
    found = re.findall(r"^# (\d+) (.+)$", comments, re.MULTILINE)
    named = [(image, cameras[int(key)]) for key, image in found if int(key) in cameras]
    return [*named] or [(None, camera) for camera in cameras.values()]


def _text(path: Path) -> dict[int, Camera]:
    cameras = {}
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        source = f"{path}, line {number}"
        try:
            key, width, height = int(words[0]), int(words[2]), int(words[3])
            parameters = [float(word) for word in words[4:]]
        except (IndexError, ValueError):
            raise FormatError(
                f"{source}: must be CAMERA_ID MODEL WIDTH HEIGHT PARAMS[], got {line!r}"
            ) from None
        if key in cameras:
            raise FormatError(f"{source}: camera {key} is given twice")
        try:
            cameras[key] = from_colmap(words[1], parameters, (width, height))
        except CameraError as error:
            raise FormatError(f"{source}: {error}") from None
    return cameras


def _binary(path: Path) -> Iterator[tuple[int, Camera]]:
    numbers = Binary(path)
    for _ in range(numbers.integer("Q")):
        key, model, width, height = (int(v) for v in numbers.numbers("IiQQ"))
        if model not in COLMAP_IDS:
            raise FormatError(f"{path}: camera {key} has the unknown model {model}")
        name, count = COLMAP_IDS[model]
        parameters = [float(v) for v in numbers.numbers(f"{count}d")]
        try:
            yield key, from_colmap(name, parameters, (width, height))
        except CameraError as error:
            raise FormatError(f"{path}, camera {key}: {error}") from None


class Binary:
    """Numbers from one of COLMAP's binary files, one after the other."""

    def __init__(self, path: Path) -> None:
        self.path, self.data, self.at = path, path.read_bytes(), 0

    def numbers(self, layout: str) -> tuple[int | float, ...]:
        """The numbers of a ``struct`` layout without padding."""
        try:
            values = struct.unpack_from(f"<{layout}", self.data, self.at)
        except struct.error:
            raise self.cut_short() from None
        self.at += struct.calcsize(f"<{layout}")
        return values

    def integer(self, layout: str) -> int:
        return int(self.numbers(layout)[0])

    def text(self) -> str:
        """Up to the next 0."""
        end = self.data.find(b"\0", self.at)
        if end < 0:
            raise self.cut_short()
        text = self.data[self.at : end].decode("utf-8", "surrogateescape")
        self.at = end + 1
        return text

    def table(self, kind: npt.DTypeLike, count: int) -> npt.NDArray[np.void]:
        """That many rows of a structured kind."""
        row = np.dtype(kind)
        if count > (len(self.data) - self.at) // row.itemsize:
            raise self.cut_short()
        table: npt.NDArray[np.void] = np.frombuffer(self.data, row, count, self.at)
        self.at += count * row.itemsize
        return table

    def cut_short(self) -> FormatError:
        return FormatError(f"{self.path} is cut short or is no COLMAP file; export it again")
