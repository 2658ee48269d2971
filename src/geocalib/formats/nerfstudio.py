"""Nerfstudio's transforms.json: intrinsics, and for each image how its camera is turned.

The world is level, with z up. What a single photograph does not tell is left at zero: where the
camera stands, and where it heads (it looks along y, to be turned about z). Nerfstudio reads pixels
as they are stored, and so are the cameras and how they are turned.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from geocalib.cameras import to_opencv
from geocalib.errors import FormatError
from geocalib.files import write_text
from geocalib.formats.outputs import calibrated, convert, destination, image_names
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.record import Frame

FILE = "transforms.json"
FRAME: Frame = "stored"

MODELS = {
    "pinhole": ("OPENCV", ("k1", "k2", "p1", "p2")),
    "fisheye": ("OPENCV_FISHEYE", ("k1", "k2", "k3", "k4")),
}
"""Nerfstudio's name of OpenCV's modules, and of the distortion values."""


def write(outcomes: Iterable[Outcome], path: str | Path, frame: Frame = FRAME) -> list[Path]:
    """Write transforms.json. See ``geocalib.formats`` for the path and what is returned.

    Nerfstudio looks for the images from the folder of the file, so their paths start there.
    """
    calibrations, file = calibrated(outcomes, frame), destination(path, FILE)
    from_file = [
        replace(c, image=Path(os.path.relpath(name, file.parent)).as_posix())
        for c, name in zip(calibrations, image_names(calibrations), strict=True)
    ]
    write_text(file, dumps(from_file, frame))
    return [file]


def dumps(outcomes: Iterable[Outcome], frame: Frame = FRAME) -> str:
    """The content of transforms.json, with the images' paths as they are."""
    calibrations = calibrated(outcomes, frame)
    cameras = [_camera(calibration) for calibration in calibrations]
    models = {camera.pop("camera_model") for camera in cameras}
    if len(models) > 1:
        raise FormatError(
            "nerfstudio takes ordinary or fisheye cameras, not both at once; calibrate all images "
            "with one camera_model, or write two files"
        )
    frames = [
        {"file_path": image, "transform_matrix": camera_to_world(calibration)}
        for calibration, image in zip(calibrations, image_names(calibrations), strict=True)
    ]
    shared = cameras[0] if all(camera == cameras[0] for camera in cameras) else {}
    if not shared:
        frames = [frame | camera for frame, camera in zip(frames, cameras, strict=True)]
    head = {"camera_model": models.pop(), "pixels": frame, **shared}
    return json.dumps({**head, "frames": frames}, indent=2) + "\n"


def camera_to_world(calibration: Calibration) -> list[list[float]]:
    """4x4 pose of a camera with x right, y up, z back, in the world described above."""
    # Flipping columns takes the camera's axes to ours (x right, y down, z forward).
    rows: list[list[float]] = (calibration.T_WC * np.array([1.0, -1, -1, 1])).tolist()
    return rows


def _camera(calibration: Calibration) -> dict[str, Any]:
    """Model and intrinsics; pixel centres are ours."""
    module, _, distortion = convert(to_opencv, calibration)
    model, names = MODELS[module]
    return {
        "camera_model": model,
        "fl_x": calibration.fx,
        "fl_y": calibration.fy,
        "cx": calibration.cx,
        "cy": calibration.cy,
        "w": calibration.width,
        "h": calibration.height,
        **dict(zip(names, distortion.tolist(), strict=False)),
    }
