"""Random views of panoramas: which panorama, which camera, which way it looks.

Views come in two kinds: "published", spread evenly over wide ranges of roll, pitch and field of
view, and "people-like", with the focal lengths and tilts of ordinary photographs. A view is drawn
first, and then a panorama that is sharp enough to show it. Nothing here waits for the device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from geocalib.cameras.camera import Camera
from geocalib.cameras.registry import get_model
from geocalib.errors import PanoramaError
from geocalib.geometry.conventions import FULL_FRAME_DIAGONAL
from geocalib.geometry.gravity import from_roll_pitch, world_from_camera
from geocalib_lab.panoramas.panorama import SYNTHETIC_SCENE, PanoramaBank

STEEP_SCENES = (f"{SYNTHETIC_SCENE}_desk", f"{SYNTHETIC_SCENE}_aloft")
"""Rendered worlds with the eye above what there is to see."""

MONOTONE_SHARE = 0.98
"""How near to folding over at its corner a distorted view may come."""

PEOPLE_ROLL_DEG = (-20.0, -4.0, -2.2, -1.2, -0.5, 0.0, 0.5, 1.2, 2.2, 4.0, 20.0)
PEOPLE_PITCH_DEG = (-60.0, -26.0, -15.0, -8.0, -4.0, -1.0, 1.5, 4.0, 7.0, 11.0, 35.0)
LYING_FOCAL_MM = (14.0, 24.0, 26.0, 27.0, 29.0, 32.0, 35.0, 42.0, 57.0, 78.0, 130.0)
UPRIGHT_FOCAL_MM = (18.0, 24.0, 25.0, 26.0, 28.0, 29.0, 30.0, 35.0, 52.0, 77.0, 130.0)
"""Deciles of 1,519 photographs of 108 people, who weigh as the root of how many they took: focal
lengths by their EXIF data, roll and pitch as the network tells them."""


@dataclass(frozen=True)
class ViewConfig:
    """How views are drawn. Angles in degrees."""

    published_share: float = 0.5
    """Part of the views that are published ones; the others are people-like."""
    published_tilt_deg: float = 45.0
    """Published roll and pitch are uniform up to this, both ways."""
    published_vfov_deg: tuple[float, float] = (20.0, 105.0)
    people_roll_deg: tuple[float, ...] = PEOPLE_ROLL_DEG
    """Roll of people-like views: equally many between each two numbers."""
    people_pitch_deg: tuple[float, ...] = PEOPLE_PITCH_DEG
    """Their pitch, in the same way."""
    people_focal_mm: tuple[float, ...] = LYING_FOCAL_MM
    """Their focal length, in the same way, on film of 36 x 24 mm."""
    people_upright_focal_mm: tuple[float, ...] = UPRIGHT_FOCAL_MM
    """The same for views that are higher than wide."""
    steep_pitch_deg: tuple[float, float] = (-70.0, 10.0)
    """The pitch of views from above (``STEEP_SCENES``), of either kind, is uniform in between."""
    tilted_share: float = 0.0
    """Part of the views, of either kind, that look far up or down."""
    tilted_pitch_deg: tuple[float, float] = (30.0, 88.0)
    """How far up or down these look is uniform in between; their roll is that of published ones."""
    tilted_down_share: float = 0.75
    """Part of these that look down."""
    distorted_share: float = 0.3
    """Part of the views with radial distortion."""
    distortion_sigma: float = 0.07
    """Standard deviation of k1 (H / f)^2."""
    distortion_limit: float = 0.3
    """Largest k1 (H / f)^2, both ways."""
    largest_magnification: float = 2.0
    """Most pixels of a view, at its centre, that a pixel of the panorama may cover in the coarsest
    size that ``coarser`` allows: narrower views would be blurred, and blur would betray them."""
    coarser: tuple[int, int] = (0, 0)
    """Photographed panoramas are looked up in sizes that are smaller by this many halvings than
    sharp pictures need, drawn from the first to the last: narrow views of them are never sharp,
    so wide ones must not be, either. Each halving fewer also halves the magnification allowed, so
    that how sharp a view is tells nothing of how narrow it is."""
    synthetic_share: float = 0.3
    """Part of the views that show rendered panoramas, where there are any. They are sharp."""
    scene_weights: tuple[tuple[str, float], ...] = ()
    """Names of photographed scenes with how often to draw each; empty: as often as it has
    owners."""


@dataclass(frozen=True)
class Views:
    """A batch of B views of panoramas."""

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

    def normal_share() -> Tensor:
        # As uniform as any, and as many random numbers as sets of crops were always made with.
        share: Tensor = torch.special.ndtr(torch.randn(count, generator=generator, device=device))
        return share

    place = uniform()
    published = uniform() < config.published_share
    tilt = config.published_tilt_deg
    roll, pitch = (
        torch.where(published, uniform(-tilt, tilt), _spread(normal_share(), usual))
        for usual in (config.people_roll_deg, config.people_pitch_deg)
    )
    from_above = uniform(*config.steep_pitch_deg)
    width_share = uniform()

    distorted = uniform() < config.distorted_share
    hat = _truncated_normal(uniform(), config, width, height)
    yaw = uniform(-math.pi, math.pi)
    first, last = config.coarser
    coarser = uniform(first, last + 1).floor().clamp(max=last)

    # (N,) in the coarsest size and (B,) in the drawn one.
    longest = config.largest_magnification * bank.width / (2 * math.pi)
    sharpness = 2 ** (coarser - last)
    f = torch.where(
        published,
        _even_focal(width_share, config.published_vfov_deg, longest.max() * sharpness, height),
        _people_focal(width_share, config, width, height),
    ).minimum(longest.max() * sharpness)
    index = choose(bank, config, longest * sharpness[:, None] >= 0.999 * f[:, None], place)
    pitch = torch.where(shows(bank, STEEP_SCENES)[index], from_above, pitch)
    if config.tilted_share:
        # Without these, as many random numbers as sets of crops were always made with.
        tilted = uniform() < config.tilted_share
        far = uniform(*config.tilted_pitch_deg)
        far = torch.where(uniform() < config.tilted_down_share, -far, far)
        pitch = torch.where(tilted, far, pitch)
        roll = torch.where(tilted, uniform(-tilt, tilt), roll)
    gravity = from_roll_pitch(torch.deg2rad(roll), torch.deg2rad(pitch))

    k1 = distorted * hat * (f / height) ** 2
    size = torch.stack([torch.full_like(f, width), torch.full_like(f, height)], -1)
    camera = Camera(
        get_model("simple_radial"), f, 0.5 * size, k1[:, None], size, torch.ones_like(f)
    )
    # In double precision, which no setting for fast matrix products rounds.
    rotation = world_from_camera(gravity.double(), yaw.double())
    rotation = bank.panorama_from_world[index].double() @ rotation
    coarser = coarser * ~bank.synthetic[index]
    return Views(index, camera, gravity, rotation.to(f.dtype), distorted, coarser)


def _even_focal(
    share: Tensor, vfov_deg: tuple[float, float], longest: Tensor, height: int
) -> Tensor:
    """(B,) pixels: fields of view that are evenly spread, from what the longest focal length (B,)
    shows or from the narrow end of the range, by shares (B,) of the way."""
    narrow, wide = (math.radians(end) for end in vfov_deg)
    low = (2 * torch.atan(0.5 * height / longest)).clamp(min=narrow)
    vfov = low + share * (low.clamp(min=wide) - low)
    return 0.5 * height / torch.tan(0.5 * vfov)


def _people_focal(share: Tensor, config: ViewConfig, width: int, height: int) -> Tensor:
    """(B,) pixels: focal lengths that are longer than a share (B,) of those people use."""
    lengths = config.people_upright_focal_mm if height > width else config.people_focal_mm
    log_mm = _spread(share, [math.log(length) for length in lengths])
    return log_mm.exp() * (math.hypot(width, height) / FULL_FRAME_DIAGONAL)


def _spread(share: Tensor, quantiles: Sequence[float]) -> Tensor:
    """(B,) values that are larger than a share (B,) of all, if equally many lie between each two
    of the quantiles."""
    knots = torch.tensor(quantiles, device=share.device)
    position = share * (len(knots) - 1)
    below = position.long().clamp(max=len(knots) - 2)
    return torch.lerp(knots[below], knots[below + 1], position - below)


def choose(bank: PanoramaBank, config: ViewConfig, able: Tensor, place: Tensor) -> Tensor:
    """(B,) numbers of panoramas, drawn among those that are able (B, N) to show each view, by
    uniform numbers (B,)."""
    synthetic = bank.synthetic
    photographed = able * (_photograph_weights(bank, config.scene_weights) * ~synthetic)
    rendered = able * synthetic.float()
    has_photographed, has_rendered = (
        part.sum(1, keepdim=True) for part in (photographed, rendered)
    )
    # Where only one kind is able, there is nothing to share.
    share = torch.where(has_photographed > 0, config.synthetic_share, 1.0) * (has_rendered > 0)
    weight = photographed * ((1 - share) / has_photographed.clamp(min=1e-9))
    ladder = (weight + rendered * (share / has_rendered.clamp(min=1))).cumsum(1)
    found = torch.searchsorted(ladder, place[:, None] * ladder[:, -1:], right=True)[:, 0]
    return found.clamp(max=len(bank) - 1)


def shows(bank: PanoramaBank, scenes: tuple[str, ...]) -> Tensor:
    """(N,) whether each panorama shows one of the scenes."""
    kinds = [name in scenes for name in bank.scene_names]
    return torch.tensor(kinds, device=bank.device)[bank.scene]


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
