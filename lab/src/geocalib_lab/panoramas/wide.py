"""Random wide and fisheye views of panoramas, through cameras of several models.

Some of them have an image circle that ends inside the picture, and black around it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from geocalib.cameras.camera import Camera
from geocalib.cameras.registry import get_model
from geocalib.geometry.fields import pixel_grid
from geocalib.geometry.gravity import from_roll_pitch, world_from_camera
from geocalib_lab.panoramas.holes import BLACK, MOST_BLACK
from geocalib_lab.panoramas.panorama import PanoramaBank, render
from geocalib_lab.panoramas.views import STEEP_SCENES, ViewConfig, choose, shows

WIDEST_RAY_DEG = 118.0
"""No lens sees what is further from its axis."""
DOMAIN_SHARE = 0.97
"""How near to the end of its domain a camera sees, by angle."""
EDGE = 1.5
"""Pixels inside the edge of an image circle that may still be darkened by it."""


@dataclass(frozen=True)
class WideConfig:
    """How wide views are drawn. Angles in degrees."""

    share: float = 0.0
    """Part of the pictures of a step."""
    ucm: float = 0.5
    """Part of the wide views that are seen through this camera model; the next three alike."""
    kannala_brandt: float = 0.25
    division: float = 0.125
    pinhole: float = 0.125
    fov_deg: tuple[float, float] = (80.0, 190.0)
    """Across the longer side, evenly spread."""
    widest_pinhole_deg: float = 125.0
    alpha: tuple[float, float] = (0.3, 0.75)
    """Of ucm."""
    k1: tuple[float, float] = (-0.05, 0.08)
    """Of kannala_brandt: an equisolid lens has -0.042, a stereographic one 0.083."""
    k2: tuple[float, float] = (-0.008, 0.008)
    k3: tuple[float, float] = (-0.001, 0.001)
    division_k: tuple[float, float] = (-0.42, -0.1)
    """Of division with f = 1: an equidistant lens has about -0.37, a stereographic one -0.25."""
    roll_deg: float = 45.0
    """Roll and pitch are uniform up to this, both ways."""
    pitch_deg: float = 50.0
    steep_pitch_deg: tuple[float, float] = (-50.0, 10.0)
    """Pitch of views from above (``STEEP_SCENES``)."""
    circular_share: float = 0.15
    """Part of the views, pinholes aside, whose image circle ends inside the picture."""
    circle: tuple[float, float] = (0.75, 1.3)
    """Radius of such a circle, in halves of the shorter side."""
    circle_deg: tuple[float, float] = (70.0, 97.5)
    """The angle from the axis at its edge."""
    softness: tuple[float, float] = (0.7, 5.0)
    """Pixels over which its edge falls off."""
    off_centre_share: float = 0.0
    """Part of the views that are cut out beside the middle of what the lens draws."""
    off_centre: float = 0.6
    """How far their principal points lie from the middle at most, in halves of each side."""

    def counts(self, batch: int) -> dict[str, int]:
        """How many pictures of a batch are seen through each model, where there are any."""
        models = ("ucm", "kannala_brandt", "division", "pinhole")
        whole = sum(getattr(self, name) for name in models)
        counts, end = {}, 0.0
        for name in models:
            start, end = end, end + getattr(self, name) / whole * self.share * batch
            counts[name] = round(end) - round(start)
        return {name: count for name, count in counts.items() if count}


@dataclass(frozen=True)
class WideViews:
    """B wide views of panoramas, through cameras of one model."""

    index: Tensor
    """(B,) numbers of the panoramas."""
    camera: Camera
    gravity: Tensor
    """(B, 3) in the camera frame."""
    panorama_from_camera: Tensor
    """(B, 3, 3) rotations to the panorama's frame."""
    coarser: Tensor
    """(B,) in how much smaller a size the panorama is looked up, halvings."""
    rim: Tensor
    """(B,) distance from the principal point, in focal lengths, beyond which all is black."""
    softness: Tensor
    """(B,) pixels over which the edge falls off."""

    def __len__(self) -> int:
        return len(self.index)


@dataclass(frozen=True)
class WidePart:
    """What is true of B pictures that follow one another in a batch, through wide cameras of one
    model."""

    camera: Camera
    gravity: Tensor
    """(B, 3)."""
    keep: Tensor
    """(B,) whether there is enough to see."""
    rim: Tensor
    """(B,) as in ``WideViews``."""

    def __len__(self) -> int:
        return len(self.gravity)


def sample_wide_views(
    bank: PanoramaBank,
    model: str,
    count: int,
    config: ViewConfig,
    wide: WideConfig,
    width: int,
    height: int,
    generator: torch.Generator,
) -> WideViews:
    """That many random wide views of width x height pixels; the generator is the device's."""
    device = bank.device

    def uniform(low: float | Tensor = 0.0, high: float | Tensor = 1.0) -> Tensor:
        return low + (high - low) * torch.rand(count, generator=generator, device=device)

    able = torch.ones(count, len(bank), dtype=torch.bool, device=device)
    index = choose(bank, config, able, uniform())
    roll, pitch = uniform(-wide.roll_deg, wide.roll_deg), uniform(-wide.pitch_deg, wide.pitch_deg)
    from_above = uniform(*wide.steep_pitch_deg)
    pitch = torch.where(shows(bank, STEEP_SCENES)[index], from_above, pitch)
    gravity = from_roll_pitch(torch.deg2rad(roll), torch.deg2rad(pitch))
    yaw = uniform(-math.pi, math.pi)
    first, last = config.coarser
    coarser = uniform(first, last + 1).floor().clamp(max=last) * ~bank.synthetic[index]

    drawn = {
        "ucm": (wide.alpha,),
        "kannala_brandt": (wide.k1, wide.k2, wide.k3, (0.0, 0.0)),
        "division": (wide.division_k,),
        "pinhole": (),
    }[model]
    one = torch.ones(count, device=device)
    distortion = (
        torch.stack([uniform(*ends) for ends in drawn], 1) if drawn else one.new_zeros(count, 0)
    )
    size = one.new_tensor([width, height]).expand(count, 2)
    camera = Camera(get_model(model), one, 0.5 * size, distortion, size, one)
    limit = (DOMAIN_SHARE * camera.limits.angle).clamp(max=math.radians(WIDEST_RAY_DEG))

    def radius(angle: Tensor) -> Tensor:
        found, _ = camera.model.radius(
            torch.sin(angle), torch.cos(angle), tuple(distortion.unbind(1))
        )
        assert isinstance(found, Tensor)
        return found

    narrow, widest = wide.fov_deg
    circular_share = wide.circular_share
    if model == "pinhole":
        widest, circular_share = wide.widest_pinhole_deg, 0.0
    fills = torch.minimum(torch.deg2rad(0.5 * uniform(narrow, widest)), limit)
    f = 0.5 * max(width, height) / radius(fills)
    circular = uniform() < circular_share
    edge = 0.5 * min(width, height) * uniform(*wide.circle)
    edge_angle = torch.minimum(torch.deg2rad(uniform(*wide.circle_deg)), limit)
    f = torch.where(circular, edge / radius(edge_angle), f)
    rim = torch.where(circular, radius(edge_angle), radius(limit))
    softness = torch.where(circular, uniform(*wide.softness), wide.softness[0])

    point = camera.c
    if wide.off_centre_share:
        beside = torch.stack([uniform(-1, 1), uniform(-1, 1)], 1) * wide.off_centre * point
        point = point + (uniform() < wide.off_centre_share)[:, None] * beside

    # In double precision, which no setting for fast matrix products rounds.
    rotation = world_from_camera(gravity.double(), yaw.double())
    rotation = bank.panorama_from_world[index].double() @ rotation
    camera = Camera(camera.model, f, point, distortion, size, one)
    return WideViews(index, camera, gravity, rotation.to(f.dtype), coarser, rim, softness)


def photograph_wide(
    bank: PanoramaBank, views: WideViews, width: int, height: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Pictures (B, 3, H, W) as if they had no rim, the light (B, 1, H, W) from 0 to 1 that the rim
    leaves of them, and whether (B,) what each shows inside it is not too black."""
    camera = views.camera
    images = render(
        bank,
        views.index,
        camera,
        views.panorama_from_camera,
        width,
        height,
        coarser=views.coarser,
    )
    grid = pixel_grid(width, height, camera.f)
    off = torch.linalg.vector_norm(grid[None] - camera.c[:, None, None], dim=-1)
    within = (views.rim * camera.f)[:, None, None] - off
    softness = views.softness[:, None, None]
    light = (within / softness).clamp(0, 1)
    seen = within > softness + EDGE
    black = (images.amax(1) <= BLACK) & seen
    share = black.sum((1, 2)) / seen.sum((1, 2)).clamp(min=1)
    return images, light[:, None], share < MOST_BLACK


def inside_rim(camera: Camera, rim: Tensor, points: Tensor) -> Tensor:
    """(B, N) whether pixels (B, N, 2) lie inside the rim (B,)."""
    off = torch.linalg.vector_norm((points - camera.c[:, None]) / camera.focal[:, None], dim=-1)
    return off < rim[:, None]
