"""ROS' camera_info YAML, one camera per file.

The principal point is counted as ROS and OpenCV do, from the centre of the first pixel. Pictures
in files come to ROS through ``cv2.imread``, which turns them upright.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from geocalib.formats.opencv import as_opencv
from geocalib.formats.outputs import SAID, convert, write_one_each
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.record import Frame

SUFFIX = ".yaml"
FRAME: Frame = "upright"

MODELS = {"pinhole": "plumb_bob", "fisheye": "equidistant"}
"""What ROS calls the distortion of OpenCV's modules."""


def write(outcomes: Iterable[Outcome], path: str | Path, frame: Frame = FRAME) -> list[Path]:
    """Write a file per image. See ``geocalib.formats`` for the path and what is returned."""
    return write_one_each(outcomes, path, dumps, SUFFIX, frame)


def dumps(calibration: Calibration, frame: Frame = FRAME) -> str:
    """The content of a file."""
    calibration = calibration.in_frame(frame)
    module, K, distortion = convert(as_opencv, calibration)
    # ROS allows letters, digits and underscores in a camera's name.
    name = re.sub(r"\W", "_", Path(calibration.image or "camera").stem, flags=re.ASCII)
    return (
        f"# {SAID[frame]}\n"
        f"image_width: {calibration.width}\n"
        f"image_height: {calibration.height}\n"
        # Quoted, or a name of digits would be a number.
        f'camera_name: "{name}"\n'
        + _matrix("camera_matrix", K)
        + f"distortion_model: {MODELS[module]}\n"
        + _matrix("distortion_coefficients", distortion[None])
        + _matrix("rectification_matrix", np.eye(3))
        + _matrix("projection_matrix", np.hstack([K, np.zeros((3, 1))]))
    )


def _matrix(name: str, values: npt.NDArray[np.float64]) -> str:
    rows, cols = values.shape
    data = ", ".join(_number(value) for value in values.ravel().tolist())
    return f"{name}:\n  rows: {rows}\n  cols: {cols}\n  data: [{data}]\n"


def _number(value: float) -> str:
    """The number as YAML 1.1 has it, in which 1e-05 would be text."""
    mantissa, mark, exponent = repr(value).partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{mark}{exponent}"
