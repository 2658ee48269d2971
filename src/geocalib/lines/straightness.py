"""Pinholes that may bend a little: no lens is quite free of distortion, and lines feel it.

While lines are weighed the bend is an unknown with a prior, and then left out again.
"""

from __future__ import annotations

import numpy as np

from geocalib.cameras import get_model
from geocalib.geometry.fields import CX
from geocalib.records import replace
from geocalib.result.calibration import Calibration

DISTORTION = 0.05
"""One sigma of the distortion in units of the image's height: k = that times (f / H)^2."""
MODEL = get_model("division")
"""Whose k is the k1 of a polynomial, for small ones, and which is solved for nothing."""


def bendable(calibration: Calibration) -> Calibration:
    """A pinhole's calibration as one of a camera whose distortion is near 0, and free; that of
    another camera as it is."""
    camera, names = calibration.camera, calibration.parameters
    if camera.model.parameters:
        return calibration
    sigma = DISTORTION * (camera.f / camera.size[:, 1]).item() ** 2
    camera = replace(camera, model=MODEL, distortion=np.zeros_like(camera.c[:, :1]))
    place = len(names) - 2 * int(CX in names)
    kept = [i for i in range(len(names) + 1) if i != place]
    covariance = np.zeros((len(names) + 1, len(names) + 1))
    covariance[np.ix_(kept, kept)] = calibration.covariance
    covariance[place, place] = sigma**2
    parameters = (*names[:place], *MODEL.parameters, *names[place:])
    return replace(calibration, camera=camera, parameters=parameters, covariance=covariance)


def pinhole_again(pinhole: Calibration, bent: Calibration) -> Calibration:
    """The pinhole's calibration, moved as the one was that may bend."""
    kept = [i for i, name in enumerate(bent.parameters) if name in pinhole.parameters]
    camera = replace(bent.camera, model=pinhole.camera.model, distortion=pinhole.camera.distortion)
    return pinhole.moved(camera, bent.gravity, bent.covariance[np.ix_(kept, kept)], bent.lines)
