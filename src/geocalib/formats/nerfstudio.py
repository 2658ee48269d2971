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

from geocalib.arrays import Array
from geocalib.cameras import Camera, from_opencv
from geocalib.cameras.exchange import Module
from geocalib.errors import CameraError, FormatError
from geocalib.files import write_text
from geocalib.formats.opencv import as_opencv
from geocalib.formats.outputs import calibrated, convert, destination, image_names
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.record import FRAMES, Frame

FILE = "transforms.json"
FRAME: Frame = "stored"

MODELS = {
    "pinhole": ("OPENCV", ("k1", "k2", "p1", "p2")),
    "fisheye": ("OPENCV_FISHEYE", ("k1", "k2", "k3", "k4")),
}
"""Nerfstudio's name of OpenCV's modules, and of the distortion values."""

MODULES: dict[str, Module] = {
    "OPENCV": "pinhole",
    "PINHOLE": "pinhole",
    "SIMPLE_PINHOLE": "pinhole",
    "OPENCV_FISHEYE": "fisheye",
}
"""OpenCV's modules by the names of nerfstudio's models."""

NEEDED = ("fl_x", "cx", "cy", "w", "h")
"""What a file must tell of each camera."""

PIXELS = "pixels"
"""Our own key, of the frame of the pixels; a file with it has a world that is level."""


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
    head = {"camera_model": models.pop(), PIXELS: frame, **shared}
    return json.dumps({**head, "frames": frames}, indent=2) + "\n"


def camera_to_world(calibration: Calibration) -> list[list[float]]:
    """4x4 pose of a camera with x right, y up, z back, in the world described above."""
    # Flipping columns takes the camera's axes to ours (x right, y down, z forward).
    rows: list[list[float]] = (calibration.T_WC * np.array([1.0, -1, -1, 1])).tolist()
    return rows


def _camera(calibration: Calibration) -> dict[str, Any]:
    """Model and intrinsics; pixel centres are ours."""
    module, K, distortion = convert(as_opencv, calibration)
    model, names = MODELS[module]
    return {
        "camera_model": model,
        "fl_x": K[0, 0].item(),
        "fl_y": K[1, 1].item(),
        "cx": calibration.cx,
        "cy": calibration.cy,
        "w": calibration.width,
        "h": calibration.height,
        **dict(zip(names, distortion.tolist(), strict=False)),
    }


def read(path: str | Path) -> list[tuple[str, Camera, Array | None, Frame]]:
    """For each image the path of its file, its camera (a batch of 1), gravity (3,) and the frame of
    both. Gravity is None in the files of others, whose worlds may stand as they like."""
    file = Path(path)
    try:
        values = json.loads(file.read_bytes())
        frames = [{**values, **frame} for frame in values["frames"]]
        return [_read_frame(file, frame) for frame in frames]
    except FormatError:
        raise
    except CameraError as error:
        raise FormatError(f"{file}: {error}") from None
    except (KeyError, TypeError, ValueError, RecursionError, OverflowError):
        raise FormatError(
            f"{file} is no transforms.json with file_path, transform_matrix, {', '.join(NEEDED)} "
            "of each image"
        ) from None


def _read_frame(file: Path, values: dict[str, Any]) -> tuple[str, Camera, Array | None, Frame]:
    """Read a frame; keys that it lacks are those of the file."""
    name = values.get("camera_model", "OPENCV")
    if name not in MODULES:
        raise FormatError(f"{file}: unknown camera_model {name!r:.40}; known: {', '.join(MODULES)}")
    fx, cx, cy, width, height = (float(values[key]) for key in NEEDED)
    fy = float(values.get("fl_y", fx))
    K = np.array([[fx, 0, cx - 0.5], [0, fy, cy - 0.5], [0, 0, 1]])
    fisheye = MODULES[name] == "fisheye"
    names = MODELS["fisheye"][1] if fisheye else (*MODELS["pinhole"][1], "k3", "k4", "k5", "k6")
    bends = [float(values.get(key, 0.0)) for key in names]
    camera = from_opencv(K, bends, (width, height), MODULES[name])
    pose = np.array(values["transform_matrix"], np.float64).reshape(4, 4)
    frame = values.get(PIXELS)
    gravity = None if frame not in FRAMES else -pose[2, :3] * np.array([1.0, -1, -1])
    image = Path(os.path.normpath(file.parent / str(values["file_path"]))).as_posix()
    return image, camera, gravity, FRAME if frame is None else frame
