"""Random views of panoramas: which panorama, which camera, which way it looks.

Views come in two kinds: "published", spread evenly over wide ranges of roll, pitch and field of
view, and "people-like", nearly level as people hold their cameras. Nothing here waits for the
device.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from geocalib.cameras.camera import Camera
from geocalib.cameras.registry import get_model
from geocalib.errors import PanoramaError
from geocalib.gravity import from_roll_pitch, world_from_camera
from geocalib.training.panorama import SYNTHETIC_SCENE, PanoramaBank

STEEP_SCENES = (f"{SYNTHETIC_SCENE}_desk", f"{SYNTHETIC_SCENE}_aloft")
"""Rendered worlds with the eye above what there is to see."""

MONOTONE_SHARE = 0.98
"""How near to folding over at its corner a distorted view may come."""


@dataclass(frozen=True)
class ViewConfig:
    """How views are drawn. Angles in degrees."""

    published_share: float = 0.5
    """Part of the views that are published ones; the others are people-like."""
    published_tilt_deg: float = 45.0
    """Published roll and pitch are uniform up to this, both ways."""
    published_vfov_deg: tuple[float, float] = (20.0, 105.0)
    people_roll_deg: float = 5.0
    """Standard deviation of the roll of people-like views."""
    people_pitch_deg: float = 12.0
    """Standard deviation of their pitch."""
    people_vfov_deg: tuple[float, float] = (25.0, 80.0)
    steep_pitch_deg: tuple[float, float] = (-70.0, 10.0)
    """The pitch of views from above (``STEEP_SCENES``), of either kind, is uniform in between."""
    distorted_share: float = 0.3
    """Part of the views with radial distortion."""
    distortion_sigma: float = 0.07
    """Standard deviation of k1 (H / f)^2."""
    distortion_limit: float = 0.3
    """Largest k1 (H / f)^2, both ways."""
    largest_magnification: float = 2.0
    """Most pixels of a view, at its centre, that a pixel of the panorama may cover: narrower
    views would be blurred, and blur would betray them."""
    coarser: tuple[int, int] = (0, 0)
    """Photographed panoramas are looked up in sizes that are smaller by this many halvings than
    sharp pictures need, drawn from the first to the last: narrow views of them are never sharp,
    so wide ones must not be, either."""
    synthetic_share: float = 0.3
    """Part of the views that show rendered panoramas, where there are any. They are sharp."""
    scene_weights: tuple[tuple[str, float], ...] = ()
    """Names of photographed scenes with how often to draw each; empty: as often as it has
    owners."""


@dataclass(frozen=True)
class Views:
    """B views of panoramas."""

    index: Tensor
    """(B,) numbers of the panoramas."""
    camera: Camera
    """simple_radial, with k1 = 0 where there is no distortion."""
    gravity: Tensor
    """(B, 3) in the camera frame."""
    panorama_from_camera: Tensor
    """(B, 3, 3) rotations to the panorama's frame."""
    distorted: Tensor
    """(B,) whether the view was drawn with distortion."""
    coarser: Tensor
    """(B,) in how much smaller a size the panorama is looked up, halvings."""

    def __len__(self) -> int:
        return len(self.index)


def sample_views(
    bank: PanoramaBank,
    count: int,
    config: ViewConfig,
    width: int,
    height: int,
    generator: torch.Generator,
) -> Views:
    """That many random views of width x height pixels; the generator is the device's."""
    device = bank.device

    def uniform(low: float | Tensor = 0.0, high: float | Tensor = 1.0) -> Tensor:
        return low + (high - low) * torch.rand(count, generator=generator, device=device)

    def normal(sigma: float) -> Tensor:
        return sigma * torch.randn(count, generator=generator, device=device)

    ladder = _draw_weights(bank, config).cumsum(0)
    index = torch.searchsorted(ladder, uniform() * ladder[-1], right=True).clamp(max=len(bank) - 1)
    published = uniform() < config.published_share

    tilt = config.published_tilt_deg
    roll = torch.where(published, uniform(-tilt, tilt), normal(config.people_roll_deg))
    pitch = torch.where(published, uniform(-tilt, tilt), normal(config.people_pitch_deg))
    steep = _shows(bank, STEEP_SCENES)[index]
    pitch = torch.where(steep, uniform(*config.steep_pitch_deg), pitch)
    gravity = from_roll_pitch(torch.deg2rad(roll), torch.deg2rad(pitch))

    ends = zip(config.people_vfov_deg, config.published_vfov_deg, strict=True)
    narrow, wide = (people + published * (usual - people) for people, usual in ends)
    narrow = torch.maximum(narrow, _narrowest_deg(bank, index, config, height))
    vfov = torch.deg2rad(uniform(narrow, torch.maximum(narrow, wide)))
    f = 0.5 * height / torch.tan(0.5 * vfov)

    distorted = uniform() < config.distorted_share
    hat = _truncated_normal(uniform(), config, width, height)
    k1 = distorted * hat * (f / height) ** 2
    size = torch.stack([torch.full_like(f, width), torch.full_like(f, height)], -1)
    camera = Camera(
        get_model("simple_radial"), f, 0.5 * size, k1[:, None], size, torch.ones_like(f)
    )
    # In double precision, which no setting for fast matrix products rounds.
    rotation = world_from_camera(gravity.double(), uniform(-math.pi, math.pi).double())
    rotation = bank.panorama_from_world[index].double() @ rotation
    first, last = config.coarser
    coarser = uniform(first, last + 1).floor().clamp(max=last) * ~bank.synthetic[index]
    return Views(index, camera, gravity, rotation.to(f.dtype), distorted, coarser)


def _shows(bank: PanoramaBank, scenes: tuple[str, ...]) -> Tensor:
    """(N,) whether each panorama shows one of the scenes."""
    kinds = [name in scenes for name in bank.scene_names]
    return torch.tensor(kinds, device=bank.device)[bank.scene]


def _draw_weights(bank: PanoramaBank, config: ViewConfig) -> Tensor:
    """(N,) how often to draw each panorama."""
    synthetic = bank.synthetic
    weight = _photograph_weights(bank, config.scene_weights) * ~synthetic
    photographed = weight.sum()
    # Without photographs there is nothing to share with.
    share = torch.where(photographed > 0, config.synthetic_share, 1.0) * synthetic.any()
    return weight * ((1 - share) / photographed.clamp(min=1e-9)) + synthetic * (
        share / synthetic.sum().clamp(min=1)
    )


def _photograph_weights(bank: PanoramaBank, scene_weights: tuple[tuple[str, float], ...]) -> Tensor:
    """(N,) how often to draw each panorama: a scene, an owner with that scene, one of theirs."""
    # An owner with rooms and a garden counts as two.
    group = bank.scene * len(bank) + bank.owner
    same_group = group[:, None] == group
    in_group = same_group.sum(1)
    if not scene_weights:
        return 1 / in_group
    weights = dict(scene_weights)
    named = {name for name in bank.scene_names if not name.startswith(SYNTHETIC_SCENE)}
    unknown = sorted(named - set(weights))
    if unknown:
        raise PanoramaError(f"scene_weights tells nothing of {', '.join(unknown)}; add a weight")
    same_scene = bank.scene[:, None] == bank.scene
    owners_in_scene = (same_scene / in_group).sum(1)
    weight = torch.zeros_like(owners_in_scene)
    for number, name in enumerate(bank.scene_names):
        weight += weights.get(name, 0.0) * (bank.scene == number)
    return weight / (owners_in_scene * in_group)


def _narrowest_deg(bank: PanoramaBank, index: Tensor, config: ViewConfig, height: int) -> Tensor:
    """(B,) the smallest field of view that magnifies the panorama no more than allowed."""
    longest_f = config.largest_magnification * bank.width[index] / (2 * math.pi)
    return torch.rad2deg(2 * torch.atan(0.5 * height / longest_f))


def _truncated_normal(uniform: Tensor, config: ViewConfig, width: int, height: int) -> Tensor:
    """k1 (H / f)^2 from uniform numbers: what redrawing until it is in range would give.

    The range ends at the limits, and where the corner of the image is the edge of the domain:
    the polynomial x + k1 x^3 grows up to a radius r with k1 r^2 = -4 / 27.
    """
    folding = -16 / 27 * height**2 / (width**2 + height**2)
    low = max(-config.distortion_limit, MONOTONE_SHARE * folding) / config.distortion_sigma
    high = config.distortion_limit / config.distortion_sigma
    below, above = (0.5 * (1 + math.erf(end / math.sqrt(2))) for end in (low, high))
    # In double precision, as the tails are thin.
    quantile = below + (above - below) * uniform.double()
    hat: Tensor = torch.special.ndtri(quantile)
    return config.distortion_sigma * hat.to(uniform.dtype)
