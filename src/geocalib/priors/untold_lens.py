"""Lenses of which a picture tells nothing: blank ones, noise, and those that sensors outvote.

Such a fit bends its lens in any way that a rounding error likes, up to the bounds of the model. It
is fitted again with what is usual of lenses, and the answer is that, as unsure as lenses differ.
"""

from __future__ import annotations

import numpy as np

from geocalib.arrays import Array
from geocalib.cameras.base import CameraModel
from geocalib.geometry.fields import LOG_F
from geocalib.priors.enabled import VAGUE_DISTORTION
from geocalib.solver.known import Prior
from geocalib.solver.result import FitResult

USUAL = 0.05
"""By how much lenses move the corner of a picture, of its distance from the middle: one sigma, as
the slightly bent family of ``solver.families`` has it."""
UNTOLD = 0.3
"""Sigma of that beyond which a picture tells nothing of its lens."""
BENT_BEYOND = 2.0
"""No lens moves a corner to so many times its distance, or to one part in so many."""
SURE_FOCAL = 1.0
"""Sigma of log f beyond which the focal length of a fit is as good as none."""
USUAL_FOCAL = 0.7
"""In place of another one, of the longer side."""

STEPS = 8
CENTRE = 1e-3
"""Tangent of the angle to the axis at which a lens has the magnification of its middle."""
STEP = 1e-4
"""Of distortion parameters, for derivatives; relative beyond 1."""


def untold(result: FitResult) -> list[int]:
    """The rows of a fit, in NumPy, whose picture tells nothing of the free distortion."""
    camera, names = result.camera, result.camera.model.parameters
    if not names or not set(names) <= set(result.parameters):
        return []
    at = [result.parameters.index(name) for name in names]
    radii, k = _radii(result), camera.distortion
    with np.errstate(all="ignore"):
        bend, slopes = _bent(camera.model, radii, k), _slopes(camera.model, radii, k)
        covariance = result.covariance[:, at][:, :, at]
        spread = np.sqrt(np.einsum("bri,bij,brj->br", slopes, covariance, slopes))
        told = (spread < UNTOLD) & (bend < BENT_BEYOND) & (bend > 1 / BENT_BEYOND)
    failed = [status.failed for status in result.status]
    return np.flatnonzero(~told.all(1) & ~np.array(failed)).tolist()


def usual_of(result: FitResult, rows: list[int]) -> Prior:
    """What is usual of the distortion of these rows of a fit; of the others nothing is."""
    camera, model = result.camera, result.camera.model
    start = np.broadcast_to(np.array(model.start), camera.distortion.shape)
    furthest = abs(_slopes(model, _radii(result), start)).max(1)
    sigma = np.full(start.shape, VAGUE_DISTORTION)
    sigma[rows] = USUAL / furthest[rows]
    return Prior(start, sigma)


def _radii(result: FitResult) -> Array:
    """(B, STEPS) tangents of angles to the axis, out to the corner of a picture without distortion,
    of a usual focal length where that of the fit is as good as none."""
    camera, f = result.camera, result.camera.f
    if LOG_F in result.parameters:
        at = result.parameters.index(LOG_F)
        sure = result.covariance[:, at, at] < SURE_FOCAL**2
        f = np.where(sure, f, USUAL_FOCAL * camera.size.max(1))
    corner = np.hypot(camera.size[:, 0] / camera.aspect, camera.size[:, 1]) / (2 * f)
    return np.asarray(corner[:, None] * np.arange(1, STEPS + 1) / STEPS)


def _bent(model: CameraModel, radii: Array, k: Array) -> Array:
    """(B, STEPS) how many times as far from the middle a lens shows these rays as one that bends
    nothing and is as long in the middle."""
    columns = tuple(k[:, None, i] for i in range(k.shape[1]))
    ahead, middle = np.ones_like(radii), np.full_like(radii, CENTRE)
    bent, unbent = model.radius(radii, ahead, columns)[0], model.radius(middle, ahead, columns)[0]
    return np.asarray(bent / radii / (unbent / CENTRE))


def _slopes(model: CameraModel, radii: Array, k: Array) -> Array:
    """(B, STEPS, D) its derivatives in the distortion."""
    slopes = []
    for i in range(k.shape[1]):
        step = np.zeros_like(k)
        step[:, i] = STEP * np.maximum(1, abs(k[:, i]))
        change = _bent(model, radii, k + step) - _bent(model, radii, k - step)
        slopes.append(change / (2 * step[:, i, None]))
    return np.stack(slopes, -1)
