"""Where the horizon runs in the image: a curve in general, a line for the pinhole camera."""

from __future__ import annotations

import torch
from torch import Tensor

from geocalib.cameras import Camera
from geocalib.errors import CameraError
from geocalib.geometry.gravity import world_from_camera

SCAN = 1024
"""Azimuths tried in order to find where the horizon enters and leaves the image. A piece of it
shorter than about a thousandth of the view may go unseen."""

BISECTIONS = 40
"""Halvings of a scan interval that place its ends on the image border."""


def horizon(camera: Camera, gravity: Tensor, samples: int = 256) -> tuple[Tensor, Tensor]:
    """The horizon of B cameras under gravity (B, 3): pixels (B, S, 2) and validity (B, S).

    The points are evenly spaced in azimuth, from the scene's left to its right, and begin and
    end where the horizon enters and leaves the image. A point is valid where it has a pixel
    inside the image: between the ends, too, a curved horizon may leave the image for a while.
    None is valid where the horizon is out of view.
    """
    level = world_from_camera(gravity)
    first, last = _azimuths_in_view(camera, gravity, level)
    steps = torch.linspace(0, 1, samples, dtype=gravity.dtype, device=gravity.device)
    return _at_azimuths(camera, level, torch.lerp(first, last, steps))


def horizon_line(camera: Camera, gravity: Tensor) -> Tensor:
    """(B, 3) line a x + b y + c = 0 of the horizon of B pinhole cameras under gravity (B, 3).

    The normal (a, b) has unit length and points below the horizon, so that a x + b y + c is a
    pixel's distance below it. Straight down or up the line lies at infinity: (0, 0, 1) or
    (0, 0, -1).
    """
    if camera.model.name != "pinhole":
        raise CameraError(
            f"the horizon of {camera.model.name} is a curve; horizon_line takes pinhole cameras, "
            "horizon takes all"
        )
    # The ray ((x - cx) / fx, (y - cy) / fy, 1) is horizontal: its product with gravity is 0.
    normal = gravity[:, :2] / camera.focal
    offset = gravity[:, 2] - (normal * camera.c).sum(-1)
    line = torch.cat([normal, offset[:, None]], -1)
    length = torch.linalg.vector_norm(normal, dim=-1, keepdim=True)
    return line / torch.where(length > 0, length, torch.ones_like(length))


def _at_azimuths(camera: Camera, level: Tensor, azimuths: Tensor) -> tuple[Tensor, Tensor]:
    """Pixels (B, S, 2) of horizontal rays at azimuths (B, S), and whether the image shows them.

    level (B, 3, 3): rows right, down and ahead of the level frame.
    """
    right, _, ahead = (axis[:, None] for axis in level.unbind(1))
    rays = torch.sin(azimuths)[..., None] * right + torch.cos(azimuths)[..., None] * ahead
    pixels, valid = camera.project(rays)
    inside = ((pixels >= 0) & (pixels <= camera.size[:, None])).all(-1)
    return pixels, valid & inside


@torch.no_grad()
def _azimuths_in_view(camera: Camera, gravity: Tensor, level: Tensor) -> tuple[Tensor, Tensor]:
    """First and last azimuth, each (B, 1) radians, at which the image shows the horizon."""
    span = _azimuth_bound(camera, gravity)[:, None]
    steps = torch.linspace(-1, 1, SCAN, dtype=gravity.dtype, device=gravity.device)
    azimuths = span * steps
    _, shown = _at_azimuths(camera, level, azimuths)
    # argmax finds the first of equal values; nothing shown leaves the whole scan.
    first = shown.to(torch.uint8).argmax(1, keepdim=True)
    last = SCAN - 1 - shown.flip(1).to(torch.uint8).argmax(1, keepdim=True)
    inner = torch.cat([first, last], 1)
    outer = torch.cat([first - 1, last + 1], 1).clamp(0, SCAN - 1)
    ends, beyond = azimuths.gather(1, inner), azimuths.gather(1, outer)
    for _ in range(BISECTIONS):
        middle = 0.5 * (ends + beyond)
        _, shown = _at_azimuths(camera, level, middle)
        ends, beyond = torch.where(shown, middle, ends), torch.where(shown, beyond, middle)
    return ends[:, :1], ends[:, 1:]


def _azimuth_bound(camera: Camera, gravity: Tensor) -> Tensor:
    """(B,) azimuth from straight ahead, radians, beyond which the image shows no horizon.

    The image lies in the cone of its farthest corner around the optical axis, so that a narrow
    view is scanned as densely as a wide one.
    """
    width, height = camera.size.unbind(-1)
    zero = torch.zeros_like(width)
    corners = torch.stack([zero, zero, width, zero, zero, height, width, height], -1)
    rays, valid = camera.unproject(corners.reshape(-1, 4, 2))
    angles = torch.atan2(torch.linalg.vector_norm(rays[..., :2], dim=-1), rays[..., 2])
    angle = torch.where(valid, angles, camera.limits.angle[:, None]).amax(1)
    # A horizontal ray at azimuth a under pitch p has cos(angle) = cos(a) cos(p). Solved for a in
    # the form that is exact for small angles: 0 where no azimuth lies in the cone, pi where all.
    sine = torch.sqrt((torch.sin(angle) ** 2 - gravity[:, 2] ** 2).clamp(min=0))
    return torch.atan2(sine, torch.cos(angle))
