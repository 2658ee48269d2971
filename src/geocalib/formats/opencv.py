"""OpenCV's YAML, one camera per file, as ``cv2.FileStorage`` writes it.

The principal point is counted as OpenCV does, from the centre of the first pixel. ``cv2.imread``
turns pixels as EXIF orientation says, and the cameras are of upright pictures.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geocalib.cameras import Camera, from_opencv, to_opencv
from geocalib.cameras.exchange import OPENCV_MODULES, Module, OpenCVCamera
from geocalib.cameras.nearest import nearest
from geocalib.errors import CameraError, FormatError
from geocalib.formats.outputs import SAID, convert, write_one_each
from geocalib.formats.yaml_text import load_yaml
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.record import Frame

SUFFIX = ".yaml"
FRAME: Frame = "upright"

KEYS = ("image_width", "image_height", "camera_matrix", "distortion_coefficients")
"""What a file must hold to be read."""

MODELS: dict[str, Module] = {"plumb_bob": "pinhole", "fisheye": "fisheye"}
"""Names of the distortion models, and the functions of OpenCV that take them."""

READ: dict[str, Module] = {
    **MODELS,
    "equidistant": "fisheye",
    "rational_polynomial": "pinhole",
}
"""With ROS' names: its camera_info has the same keys."""


def write(outcomes: Iterable[Outcome], path: str | Path, frame: Frame = FRAME) -> list[Path]:
    """Write a file per image. See ``geocalib.formats`` for the path and what is returned."""
    return write_one_each(outcomes, path, dumps, SUFFIX, frame)


def dumps(calibration: Calibration, frame: Frame = FRAME) -> str:
    """The content of a file."""
    import cv2

    calibration = calibration.in_frame(frame)
    module, K, distortion = convert(as_opencv, calibration)
    name = next(name for name, known in MODELS.items() if known == module)
    storage = cv2.FileStorage(SUFFIX, cv2.FILE_STORAGE_WRITE | cv2.FILE_STORAGE_MEMORY)
    storage.writeComment(SAID[frame], False)
    storage.write("image_width", calibration.width)
    storage.write("image_height", calibration.height)
    storage.write("camera_matrix", K)
    storage.write("distortion_model", name)
    storage.write("distortion_coefficients", distortion[None])
    return storage.releaseAndGetString()


def as_opencv(camera: Camera) -> list[OpenCVCamera]:
    """Each camera of the batch for OpenCV, which has one model of wide lenses and no odd powers:
    other wide lenses and ptlens are written as the nearest of what it has."""
    if camera.model.wide and camera.model.name not in OPENCV_MODULES:
        camera = nearest(camera, "kannala_brandt")
    if camera.model.name == "ptlens":
        camera = nearest(camera, "radial3")
    return to_opencv(camera)


def read(path: str | Path, model: str | None = None) -> Camera:
    """The camera, a batch of 1, of a file of OpenCV's or ROS'. Where the file names no
    distortion_model it is plumb_bob.

    model: the camera model to read it as, as in ``from_opencv``.
    """
    try:
        values = load_yaml(Path(path).read_text(encoding="utf-8"), path)
    except UnicodeDecodeError:
        raise FormatError(f"{path}: this is not YAML that OpenCV can read") from None
    if not isinstance(values, dict):
        raise FormatError(f"{path}: this is not YAML that OpenCV can read")
    if missing := [key for key in KEYS if key not in values]:
        raise FormatError(f"{path}: lacks {', '.join(missing)}")
    name = values.get("distortion_model", "plumb_bob")
    if name not in READ:
        raise FormatError(
            f"{path}: unknown distortion_model {name!r:.40}; known: {', '.join(READ)}"
        )
    width, height, K, distortion = (values[key] for key in KEYS)
    try:
        size = (float(width), float(height))
        matrices = (_matrix(K), _matrix(distortion))
    except (KeyError, TypeError, ValueError, OverflowError):
        raise FormatError(f"{path}: a size or a matrix is not of the form that it states") from None
    try:
        return from_opencv(*matrices, size, READ[name], model)
    except CameraError as error:
        raise FormatError(f"{path}: {error}") from None


def _matrix(value: dict[str, Any]) -> NDArray[np.float64]:
    """Rows and columns of one of OpenCV's matrices."""
    return np.array(value["data"], dtype=np.float64).reshape(value["rows"], value["cols"])
