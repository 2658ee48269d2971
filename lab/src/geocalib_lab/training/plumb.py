"""The plumb line: what is straight in the world is straight once a picture is undistorted.

A camera whose focal length and distortion are both wrong may still straighten the picture, and one
whose distortion alone is a little wrong may not: so lines say what the error of k1 does not.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geocalib.cameras.camera import Camera
from geocalib_lab.training.optimum import Steady

SHARES = (0.45, 0.9)
"""Where the lines run, as shares of the way from the middle to the border, on both sides."""

REACH = 0.9
"""How far they reach, as a share of the way to the border."""


def bow(truth: Camera, log_f: Tensor, k1: Tensor) -> Tensor:
    """(B,) how far the middles of straight lines, seen by true cameras (B, simple_radial), lie from
    the chord between their ends once they are undistorted with log f and k1 (B,): the mean over
    lines along the borders, in heights of the image."""
    ends, middles = (points.to(k1) for points in _lines(truth))
    first, last = (_straightened(ends[:, :, i], log_f, k1) for i in (0, 1))
    chord, aside = last - first, _straightened(middles, log_f, k1) - first
    area = chord[..., 0] * aside[..., 1] - chord[..., 1] * aside[..., 0]
    off = area.abs() / torch.linalg.vector_norm(chord, dim=-1)
    return off.mean(1) * torch.exp(log_f) / truth.size[:, 1]


@torch.no_grad()
def _lines(camera: Camera) -> tuple[Tensor, Tensor]:
    """Ends (B, L, 2, 2) and middles (B, L, 2) of lines, in square pixels from the middle of the
    image.

    The middle is that of the line in the world: where a plane at right angles to the axis has it.
    """
    sides = torch.tensor([s * side for s in SHARES for side in (-1, 1)]).to(camera.f)
    along = torch.tensor([-REACH, REACH]).to(camera.f)
    level = torch.cartesian_prod(sides, along).reshape(-1, 2, 2).flip(-1)
    half = 0.5 * camera.size[:, None, None]
    ends = torch.cat([level, level.flip(-1)]) * half
    rays, _ = camera.unproject(ends + camera.c[:, None, None])
    plane = rays[..., :2] / rays[..., 2:]
    middle = plane.mean(2)
    pixels, _ = camera.project(torch.cat([middle, torch.ones_like(middle[..., :1])], -1))
    square = torch.stack([camera.aspect, torch.ones_like(camera.aspect)], -1)[:, None]
    return ends / square[:, None], (pixels - camera.c[:, None]) / square


def _straightened(pixels: Tensor, log_f: Tensor, k1: Tensor) -> Tensor:
    """(B, L, 2) where pixels from the middle of the image are seen in the plane at distance 1."""
    m = pixels * torch.exp(-log_f)[:, None, None]
    s = (m * m).sum(-1)
    radius, _ = Steady().undistort(s, (k1[:, None],))
    return m * (radius / torch.sqrt(s))[..., None]
