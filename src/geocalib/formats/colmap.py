"""COLMAP's cameras.txt: one line per distinct camera; which image has which in comments.

COLMAP reads pixels as they are stored, and so are the cameras: one for each size and turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from geocalib.cameras import Camera, from_colmap, to_colmap
from geocalib.errors import CameraError, FormatError
from geocalib.files import write_text
from geocalib.formats.outputs import SAID, calibrated, convert, destination, image_names
from geocalib.result.calibration import Outcome
from geocalib.result.record import Frame

FILE = "cameras.txt"
FRAME: Frame = "stored"


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
        model, parameters = convert(to_colmap, calibration)
        numbers = " ".join(map(repr, parameters))
        camera = f"{model} {calibration.width} {calibration.height} {numbers}"
        images.append(f"{ids.setdefault(camera, len(ids) + 1)} {image}")
    lines = [
        "# CAMERA_ID MODEL WIDTH HEIGHT PARAMS[], one line per camera",
        f"# {SAID[frame]}",
        *(f"{number} {camera}" for camera, number in ids.items()),
        "# CAMERA_ID IMAGE, one comment per image",
        # A name with a line break must not end its comment.
        *(f"# {' '.join(line.splitlines())}" for line in images),
    ]
    return "\n".join(lines) + "\n"


def read(path: str | Path) -> dict[int, Camera]:
    """The cameras, each a batch of 1, by their id. The path may be that of the folder."""
    path = Path(path)
    path = path / FILE if path.is_dir() else path
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
