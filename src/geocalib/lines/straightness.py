"""Pinholes that may bend a little: no lens is quite free of distortion, and lines feel it."""

from __future__ import annotations

from dataclasses import replace

import torch

from geocalib.calibration import Calibration
from geocalib.cameras import get_model

DISTORTION = 0.05
"""One sigma of the distortion in units of the image's height: k = that times (f / H)^2."""
MOST_BARREL, SURE = 0.03, 1.5
"""Distortion outwards, in units of the image's height and in sigmas, from which on a lens is no
pinhole."""
MODEL = get_model("division")
"""Whose k is the k1 of a polynomial, for small ones, and which is solved for nothing."""


def bendable(calibration: Calibration) -> Calibration:
    """A pinhole's calibration as one of a camera whose distortion is near 0, and free."""
    camera, names = calibration.camera, calibration.parameters
    sigma = DISTORTION * (camera.f / camera.size[:, 1]).item() ** 2
    camera = replace(camera, model=MODEL, distortion=torch.zeros_like(camera.c[:, :1]))
    place = names.index("log f") + 1
    kept = torch.tensor([i for i in range(len(names) + 1) if i != place])
    covariance = torch.zeros(len(names) + 1, len(names) + 1, dtype=torch.float64)
    covariance[kept[:, None], kept] = calibration.covariance
    covariance[place, place] = sigma**2
    parameters = (*names[:place], *MODEL.parameters, *names[place:])
    return replace(calibration, camera=camera, parameters=parameters, covariance=covariance)


def bends_outwards(calibration: Calibration) -> bool:
    """Whether the long edges that a bendable calibration was told of see a barrel. Most lenses that
    bend much do so outwards."""
    place = calibration.parameters.index(MODEL.parameters[0])
    sigma = calibration.covariance[place, place].sqrt().item()
    k = calibration.distortion[0]
    return k < -SURE * sigma and k * (calibration.height / calibration.fy) ** 2 < -MOST_BARREL


def pinhole_again(pinhole: Calibration, bent: Calibration) -> Calibration:
    """The pinhole's calibration, moved as the one was that may bend."""
    kept = torch.tensor([i for i, name in enumerate(bent.parameters) if name in pinhole.parameters])
    camera = replace(bent.camera, model=pinhole.camera.model, distortion=pinhole.camera.distortion)
    return pinhole.moved(camera, bent.gravity, bent.covariance[kept[:, None], kept], bent.lines)
