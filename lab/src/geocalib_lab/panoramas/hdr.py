"""Light probes (.hdr, .exr) as pictures: linear light of any range to 8 bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from geocalib.errors import PanoramaError, how_to_get

HDR_SUFFIXES = (".hdr", ".exr")

MIDDLE_GREY = 0.18
"""What the geometric mean of the light becomes."""

WHITE_QUANTILE = 0.998
"""Share of the pixels that stay below white: lamps and the sun may exceed it."""

LUMINANCE = (0.2126, 0.7152, 0.0722)
"""Of red, green and blue light."""

DARKEST = 1e-6
"""Light below this, relative to the mean, counts as this much: black has no logarithm."""

Light = NDArray[np.float32]


def read_hdr(path: Path) -> NDArray[np.uint8]:
    """(H, W, 3) RGB of a file of linear light, tone-mapped."""
    light = _read_exr(path) if path.suffix.lower() == ".exr" else _read_radiance(path)
    if light.ndim == 2:
        light = np.repeat(light[..., None], 3, -1)
    return tone_map(np.ascontiguousarray(light[..., :3], dtype=np.float32))


def _read_radiance(path: Path) -> Light:
    try:
        import cv2
    except ImportError:
        raise PanoramaError(
            f"{path} needs OpenCV to be read: pip install opencv-python-headless"
        ) from None
    try:
        light = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    except cv2.error as error:
        raise PanoramaError(f"cannot read panorama {path}: {error.err}") from error
    if light is None:
        raise PanoramaError(f"cannot read panorama {path}: it is missing or damaged")
    return np.asarray(light[..., ::-1] if light.ndim == 3 else light, dtype=np.float32)


def _read_exr(path: Path) -> Light:
    try:
        import OpenEXR
    except ImportError:
        raise PanoramaError(f"{path} needs OpenEXR to be read: {how_to_get('exr')}") from None
    try:
        with OpenEXR.File(str(path)) as file:
            channels = {name: channel.pixels for name, channel in file.channels().items()}
    except (RuntimeError, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise PanoramaError(f"cannot read panorama {path}: {reason}") from error
    for name in ("RGB", "RGBA", "Y"):
        if name in channels:
            return np.asarray(channels[name], dtype=np.float32)
    raise PanoramaError(
        f"{path} has the channels {', '.join(channels)}, and none of RGB, RGBA and Y"
    )


def tone_map(light: Light) -> NDArray[np.uint8]:
    """(H, W, 3) sRGB of linear light (H, W, 3) in any unit.

    Exposed such that the geometric mean of the luminance is middle grey. Bright parts are
    compressed by the curve of Reinhard, L (1 + L / white^2) / (1 + L), which hardly touches dark
    ones; colours keep their ratios.
    """
    light = np.nan_to_num(light, nan=0.0, posinf=float(np.finfo(np.float32).max), neginf=0.0)
    light = np.maximum(light, 0).astype(np.float64)
    luminance = light @ np.array(LUMINANCE)
    mean = luminance.mean()
    if mean == 0:
        return np.zeros(light.shape, np.uint8)
    luminance = luminance / mean
    exposure = MIDDLE_GREY / np.exp(np.log(np.maximum(luminance, DARKEST)).mean())
    exposed = exposure * luminance
    white = max(1.0, float(np.quantile(exposed, WHITE_QUANTILE)))
    shown = (1 + exposed / white**2) / (1 + exposed)
    return _encode(light / mean * exposure * shown[..., None])


def _encode(linear: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Linear light from 0 to 1 in the curve of sRGB."""
    linear = linear.clip(0, 1)
    curve = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return (255 * curve).round().astype(np.uint8)
