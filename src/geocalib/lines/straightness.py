"""Pinholes that may bend: the lines of a photo tell whether its lens is one."""

from __future__ import annotations

from dataclasses import replace

import torch

from geocalib.calibration import Calibration
from geocalib.cameras import get_model

BEND = "k1"
DISTORTION = 0.05
"""One sigma of k1 in units of the image's height: k1 = that times (f / H)^2."""


def bendable(calibration: Calibration) -> Calibration:
    """A pinhole's calibration as one of a simple_radial camera whose k1 is near 0, and free."""
    camera, names = calibration.camera, calibration.parameters
    sigma = DISTORTION * (camera.f / camera.size[:, 1]).item() ** 2
    camera = replace(
        camera, model=get_model("simple_radial"), distortion=torch.zeros_like(camera.c[:, :1])
    )
    place = names.index("log f") + 1
    kept = torch.tensor([i for i in range(len(names) + 1) if i != place])
    covariance = torch.zeros(len(names) + 1, len(names) + 1, dtype=torch.float64)
    covariance[kept[:, None], kept] = calibration.covariance
    covariance[place, place] = sigma**2
    parameters = (*names[:place], BEND, *names[place:])
    return replace(calibration, camera=camera, parameters=parameters, covariance=covariance)
