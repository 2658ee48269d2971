"""Lines alone: three vanishing points at right angles by random sampling, without a network.

The classical way, and the baseline that the network and its refinement are held against. It knows
no more than that cameras are held upright more often than not, and what focal lengths are usual.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from geocalib.calibration import Calibration
from geocalib.cameras import Camera
from geocalib.cameras.base import CameraModel
from geocalib.conventions import TRIVIAL_FOCAL
from geocalib.lines.minimise import Guess
from geocalib.lines.mixture import CLUTTER
from geocalib.lines.refine import FEWEST, refined_from
from geocalib.lines.search import likelihood_ratios
from geocalib.lines.segments import Bundle, Segments
from geocalib.solver import Status
from geocalib.solver.state import State
from geocalib.uncertainty import Uncertainty

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
    with torch.inference_mode():
        answer = refined_from(vague, segments, guess) if guess is not None else vague
    return None if answer is vague else answer


def _vague(size: tuple[int, int], model: CameraModel, image: str | None) -> Calibration:
    """What is believed of any photo."""
    f = torch.tensor(TRIVIAL_FOCAL * max(size), dtype=torch.float64)
    camera = Camera.create(model, f, size)
    names = ("roll direction", "pitch direction", "log f", *model.parameters)
    sigmas = [GRAVITY_SIGMA] * 2 + [LOG_FOCAL_SIGMA] + [DISTORTION_SIGMA] * len(model.parameters)
    covariance = torch.diag(torch.tensor(sigmas, dtype=torch.float64) ** 2)
    gravity = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)
    sigma = Uncertainty.of(camera, gravity, covariance, names)
    return Calibration(image, camera, gravity, sigma, covariance, names, str(Status.CONVERGED))


def _sample(segments: Segments, camera: Camera) -> Guess | None:
    """Guesses of the likeliest cameras and directions among those that few segments suggest."""
    bundle = Bundle.create([segments]).longest(DRAWN)
    generator = torch.Generator().manual_seed(SEED)
    chance = bundle.length[0].expand(TRIALS, -1)
    if len(segments) < 4:
        return None
    drawn = torch.multinomial(chance, 4, generator=generator)
    # Lines in homogeneous coordinates around the principal point, which every model sees straight
    # enough to start from; in units of the longer side.
    unit = float(camera.size.max())
    middle = (bundle.middle[0] - camera.c.T) / unit
    along = bundle.along[0] * torch.stack([1 / camera.aspect, torch.ones_like(camera.aspect)])
    line = torch.stack([-along[1], along[0], along[1] * middle[0] - along[0] * middle[1]], -1)
    a, b, c, d = line[drawn].unbind(1)
    first, second = torch.linalg.cross(a, b), torch.linalg.cross(c, d)
    # At a right angle: x1 x2 + y1 y2 + f^2 w1 w2 = 0.
    squared = -(first[:, :2] * second[:, :2]).sum(1) / (first[:, 2] * second[:, 2])
    low, high = FOCAL_RANGE
    kept = torch.isfinite(squared) & (squared > low**2) & (squared < high**2)
    if not bool(kept.any()):
        return None
    f, first, second = squared[kept].sqrt(), first[kept], second[kept]
    scale = torch.stack([torch.ones_like(f), torch.ones_like(f), f], -1)
    one, two = _unit(first * scale), _unit(second * scale)
    axes = torch.stack([one, two, torch.linalg.cross(one, two)], 1)
    cameras = Camera.create(
        camera.model, f * unit, camera.size[0], camera.distortion[0], camera.c[0]
    )
    ratio = likelihood_ratios(cameras, bundle[[0] * len(f)], axes)
    score = torch.log(CLUTTER + (1 - CLUTTER) / 3 * ratio.sum(1)).sum(-1)
    best = score.argsort(descending=True)[:STARTS]
    # The most upright axis is the vertical.
    upright = axes[best, :, 1].abs().argmax(1)
    rows = torch.arange(len(best))
    gravity = axes[best, upright]
    gravity = gravity * torch.where(gravity[:, 1:2] < 0, -1.0, 1.0)
    heading = axes[best, (upright + 1) % 3]
    count = len(rows)
    state = State(
        gravity,
        (f[best] * unit).log(),
        camera.distortion.expand(count, -1),
        camera.c.expand(count, -1),
    )
    return Guess(state, heading[:, None])


def _unit(vector: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(vector, dim=-1, keepdim=True)
    return vector / length
