"""Helpers by the names of the published package, for programs that were written for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from geocalib.arrays import Array, to_numpy
from geocalib.published_api import load_image, need_torch

__all__ = ["deg2rad", "get_device", "load_image", "numpy_image_to_torch", "print_calibration"]
__all__ += ["rad2deg", "torch_image_to_numpy"]


def numpy_image_to_torch(image: npt.NDArray[Any]) -> Array:
    """A tensor (3, H, W) in [0, 1] of 8-bit pixels (H, W, 3), or (1, H, W) of grey ones (H, W)."""
    planes = image[None] if image.ndim == 2 else np.moveaxis(image, -1, 0)
    return need_torch().from_numpy(np.ascontiguousarray(planes, np.float32) / 255)


def torch_image_to_numpy(image: Array) -> npt.NDArray[np.uint8]:
    """8-bit pixels (H, W, 3) of a tensor or an array (3, H, W) in [0, 1]."""
    pixels = np.moveaxis(to_numpy(image), 0, -1)
    return np.rint(255 * pixels.clip(0, 1)).astype(np.uint8)


def rad2deg(radians: Array) -> Array:
    """Angles in degrees, of radians."""
    return radians * (180 / math.pi)


def deg2rad(degrees: Array) -> Array:
    """Angles in radians, of degrees."""
    return degrees * (math.pi / 180)


def get_device() -> str:
    """The name of the best device there is: "cuda", "mps" or "cpu"; this one without torch."""
    if find_spec("torch") is None:
        return "cpu"
    torch = need_torch()
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def print_calibration(results: Mapping[str, Any]) -> None:
    """What ``GeoCalib.calibrate`` found, a line for each number, each with one sigma."""
    camera, gravity = results["camera"], results["gravity"]
    for index in range(len(camera)):
        roll, pitch = (rad2deg(angle) for angle in gravity.rp[index].tolist())
        numbers = (
            ("roll", roll, "roll_uncertainty", "°"),
            ("pitch", pitch, "pitch_uncertainty", "°"),
            ("vFoV", rad2deg(camera.vfov[index].item()), "vfov_uncertainty", "°"),
            ("focal", camera.f[index, 1].item(), "focal_uncertainty", " px"),
        )
        for name, value, key, unit in numbers:
            sigma = results[key][index].item()
            sigma = rad2deg(sigma) if unit == "°" else sigma
            print(f"{name + ':':<7}{value:.1f}{unit} ± {sigma:.1f}")
        if camera.camera.model.parameters:
            print(f"k1:    {camera.k1[index].item():.3f}")
