"""Side-cars of RealityScan, RealityCapture of old: the lens of a photo, known beforehand.

Focal length and principal point count by the longer side, the first as if that were 36 mm. There
is no pose: it would need a position, which one photo does not tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from geocalib.cameras import Camera
from geocalib.errors import CameraError
from geocalib.formats import xmp
from geocalib.formats.outputs import STRAIGHTEN, convert, write_one_each
from geocalib.formats.ptlens import SQUARE
from geocalib.formats.scenes import FILM_WIDTH
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.record import Frame

SUFFIX = ".xmp"
FRAME: Frame = "stored"

MODELS = {
    "pinhole": "perspective",
    "simple_radial": "brown3",
    "radial": "brown3",
    "radial3": "brown3",
}
"""RealityScan's names of ours, whose coefficients are the same: of the radius in focal lengths."""

COEFFICIENTS = 6


def write(outcomes: Iterable[Outcome], path: str | Path, frame: Frame = FRAME) -> list[Path]:
    """Write a file per image. See ``geocalib.formats`` for the path and what is returned."""
    return write_one_each(outcomes, path, dumps, SUFFIX, frame)


def to_realityscan(camera: Camera) -> list[Mapping[str, str]]:
    """The properties of each camera of the batch."""
    if camera.model.name not in MODELS:
        raise CameraError(
            f"RealityScan has no counterpart of {camera.model.name}; it takes {', '.join(MODELS)}"
        )
    if not np.allclose(camera.aspect, 1, rtol=0, atol=SQUARE):
        raise CameraError("RealityScan takes square pixels only, and fx is not fy")
    return [_properties(camera[index]) for index in range(len(camera))]


def _properties(camera: Camera) -> dict[str, str]:
    side = float(camera.size[0].max())
    right, down = ((camera.c[0] - 0.5 * camera.size[0]) / side).tolist()
    bends = camera.distortion[0].tolist()
    coefficients = [*bends, *[0.0] * (COEFFICIENTS - len(bends))]
    return {
        "xcr:Version": "3",
        "xcr:DistortionModel": MODELS[camera.model.name],
        "xcr:DistortionCoeficients": " ".join(map(repr, coefficients)),
        "xcr:FocalLength35mm": repr(float(camera.f[0]) / side * FILM_WIDTH),
        "xcr:Skew": "0",
        "xcr:AspectRatio": "1",
        "xcr:PrincipalPointU": repr(right),
        "xcr:PrincipalPointV": repr(down),
        "xcr:CalibrationPrior": "initial",
        "xcr:CalibrationGroup": "-1",
        "xcr:DistortionGroup": "-1",
    }


def dumps(calibration: Calibration, frame: Frame = FRAME) -> str:
    """The content of a file."""
    return xmp.packet(convert(to_realityscan, calibration.in_frame(frame), STRAIGHTEN))
