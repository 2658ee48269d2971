"""Lines alone: three vanishing points at right angles by random sampling, without a network.

The classical way, and the baseline that the network and its refinement are held against. It knows
no more than that cameras are held upright more often than not, and what focal lengths are usual.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from geocalib.cameras import Camera
from geocalib.cameras.base import CameraModel
from geocalib.geometry.conventions import TRIVIAL_FOCAL
from geocalib.geometry.fields import ALONG_PITCH, ALONG_ROLL, LOG_F
from geocalib.geometry.segments import Segments
from geocalib.lines.bundle import Bundle
from geocalib.lines.mixture import CLUTTER
from geocalib.lines.refine import FEWEST, refined_from
from geocalib.lines.residuals import Optics
from geocalib.lines.search import likelihood_ratios
from geocalib.lines.unknowns import Array, Guess, Images, cross, unit
from geocalib.result.calibration import Calibration
from geocalib.result.uncertainty import Uncertainty
from geocalib.solver import Status

TOO_FEW = "too few straight lines to tell the camera from; let the network look (lines auto)"

TRIALS = 2000
"""Quadruples of segments that are drawn."""
STARTS = 6
"""Best of them that are refined."""
DRAWN = 200
"""Segments to draw from, the longest."""
FOCAL_RANGE = (0.3, 5.0)
"""Of the longer side."""
GRAVITY_SIGMA = math.radians(30.0)
LOG_FOCAL_SIGMA = 0.7
DISTORTION_SIGMA = 0.1
"""One sigma of what is believed beforehand."""
SEED = 0
"""The same photo gives the same answer."""


def calibrate_by_lines(
    segments: Segments, size: tuple[int, int], model: CameraModel, image: str | None = None
) -> Calibration | None:
    """The camera of an image of (width, height) from its segments; None if they tell nothing."""
    if len(segments) < FEWEST:
        return None
    vague = _vague(size, model, image)
    guess = _sample(segments, vague.camera)
    return None if guess is None else refined_from(vague, segments, guess)


def _vague(size: tuple[int, int], model: CameraModel, image: str | None) -> Calibration:
    """What is believed of any photo."""
    camera = Camera.create(model, TRIVIAL_FOCAL * max(size), size)
    names = (ALONG_ROLL, ALONG_PITCH, LOG_F, *model.parameters)
    sigmas = [GRAVITY_SIGMA] * 2 + [LOG_FOCAL_SIGMA] + [DISTORTION_SIGMA] * len(model.parameters)
    covariance = np.diag(np.square(sigmas))
    gravity = np.array([0.0, 1.0, 0.0])
    sigma = Uncertainty.of(camera, gravity, covariance, names)
    return Calibration(image, camera, gravity, sigma, covariance, names, str(Status.CONVERGED))


def _sample(segments: Segments, camera: Camera) -> Guess | None:
    """Guesses of the likeliest cameras and directions among those that few segments suggest."""
    bundle = Bundle.create([segments]).longest(DRAWN)
    if len(segments) < 4:
        return None
    drawn = _drawn(bundle.length[0])
    # Lines in homogeneous coordinates around the principal point, which every model sees straight
    # enough to start from; in units of the longer side.
    unit_length, aspect = camera.size.max().item(), camera.aspect.item()
    middle = (bundle.middle[0] - camera.c.T) / unit_length
    x, y = bundle.sides[0, 1, 0] / aspect, bundle.sides[0, 1, 1]
    line = np.stack([-y, x, y * middle[0] - x * middle[1]], -1)
    a, b, c, d = np.moveaxis(line[drawn], 1, 0)
    first, second = cross(a, b), cross(c, d)
    # At a right angle: x1 x2 + y1 y2 + f^2 w1 w2 = 0.
    infinite = first[:, 2] * second[:, 2] == 0
    product = np.where(infinite, 1.0, first[:, 2] * second[:, 2])
    squared = -(first[:, :2] * second[:, :2]).sum(1) / product
    low, high = FOCAL_RANGE
    kept = ~infinite & (squared > low**2) & (squared < high**2)
    if not kept.any():
        return None
    f, first, second = np.sqrt(squared[kept]), first[kept], second[kept]
    scale = np.stack([np.ones_like(f), np.ones_like(f), f], -1)
    one, two = unit(first * scale), unit(second * scale)
    axes = np.stack([one, two, cross(one, two)], 1)
    tried = len(f), 1
    images = Images(
        camera.model,
        (f * unit_length)[:, None, None] * np.array([aspect, 1.0]),
        np.broadcast_to(camera.c, (*tried, 2)),
        np.tile(camera.distortion, (*tried, 1)),
        axes[:, :1],
        np.zeros((*tried, 3, 0)),
    )
    ratio = likelihood_ratios(Optics.create(images, bundle).vectors, bundle, axes)
    score = np.log(CLUTTER + (1 - CLUTTER) / 3 * ratio.sum(1)).sum(-1)
    best = (-score).argsort(kind="stable")[:STARTS]
    # The most upright axis is the vertical.
    upright = np.abs(axes[best, :, 1]).argmax(1)
    gravity = axes[best, upright]
    gravity = gravity * np.where(gravity[:, 1:2] < 0, -1.0, 1.0)
    heading = axes[best, (upright + 1) % 3]
    log_f = np.log(f[best] * unit_length)[:, None]
    c, distortion = images.c[best], images.distortion[best]
    return Guess(gravity[:, None], log_f, distortion, c, heading[:, None, None])


def _drawn(length: Array) -> npt.NDArray[np.intp]:
    """(TRIALS, 4) different ones of segments of these lengths (N,), the longer the likelier."""
    # The first to come of waiting times whose rates are the lengths.
    waits = np.random.default_rng(SEED).exponential(size=(TRIALS, len(length))) / length
    return np.argpartition(waits, 3, axis=1)[:, :4]
