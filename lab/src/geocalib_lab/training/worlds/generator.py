"""Panoramas of procedural worlds, drawn at random."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import torch
from torch import Tensor

from geocalib.errors import PanoramaError
from geocalib_lab.training.worlds.aloft import aloft
from geocalib_lab.training.worlds.desks import desk
from geocalib_lab.training.worlds.nature import nature
from geocalib_lab.training.worlds.rooms import hall, room
from geocalib_lab.training.worlds.scene import Rays, Scene
from geocalib_lab.training.worlds.shading import cast_shadows, shade
from geocalib_lab.training.worlds.solids import World
from geocalib_lab.training.worlds.streets import plaza, street
from geocalib_lab.training.worlds.textures import Library
from geocalib_lab.training.worlds.tracing import nearest
from geocalib_lab.training.worlds.windows import sphere_windows

MAKERS = (
    *(room, room, room, hall),
    *(street, street, street, plaza),
    *(nature, nature),
    *(desk, desk),
    aloft,
)
"""The kinds of worlds, each as often as it is drawn."""

WORLDS_PER_LIBRARY = 24
"""New textures are drawn after so many worlds."""

RAYS_AT_ONCE = 2**24
"""Bounds the memory: about 300 bytes each."""


def panoramas(
    count: int, width: int, seed: int, device: torch.device | str, supersample: int = 2
) -> Iterator[tuple[Tensor, str]]:
    """That many panoramas (H, W, 3) uint8 of different worlds, with their kinds.

    Level, equirectangular, W = width and H = W / 2; each pixel averages supersample squared
    rays. The worlds depend on the seed alone.
    """
    if count < 1:
        raise PanoramaError(f"{count} panoramas were requested; the least is 1")
    if width < 64 or width % 2:
        raise PanoramaError(f"a panorama cannot be {width} pixels wide; give an even number >= 64")
    if supersample < 1:
        raise PanoramaError(f"supersample is {supersample}; give at least 1")
    return _generate(count, width, seed, torch.device(device), supersample)


def _generate(
    count: int, width: int, seed: int, device: torch.device, supersample: int
) -> Iterator[tuple[Tensor, str]]:
    texture_size = min(1024, max(64, 2 ** math.ceil(math.log2(width / 4))))
    for index in range(count):
        if index % WORLDS_PER_LIBRARY == 0:
            library = Library.draw(texture_size, seed + index, device)
        rng = random.Random(f"{seed}/{index}")
        world = rng.choice(MAKERS)(library, rng)
        yield render_world(world, library, width, supersample), world.kind


def render_world(world: World, library: Library, width: int, supersample: int) -> Tensor:
    """The panorama (width / 2, width, 3) uint8 that a world's eye sees."""
    device = library.texels.device
    fine_width, fine_height = width * supersample, width * supersample // 2
    scene = Scene.create(world.solids, world.eye, device)
    shadows = cast_shadows(world, library, min(2048, width), device)
    at_once = max(1, RAYS_AT_ONCE // fine_width // supersample) * supersample
    parts = []
    for start in range(0, fine_height, at_once):
        rows = slice(start, min(start + at_once, fine_height))
        rays = sphere_rays(fine_width, fine_height, rows, device)
        windows = sphere_windows(scene.corners, fine_width, fine_height, rows)
        distance, number = nearest(scene, library, rays, windows)
        light = shade(world, scene, library, rays, distance, number, shadows)
        parts.append(light.view(-1, supersample, width, supersample, 3).mean((1, 3)))
    return _developed(torch.cat(parts), world.exposure)


def sphere_rays(width: int, height: int, rows: slice, device: torch.device) -> Rays:
    """Unit rays from the eye through some rows of a panorama."""
    column = torch.arange(width, device=device, dtype=torch.float32)[None]
    row = torch.arange(rows.start, rows.stop, device=device, dtype=torch.float32)[:, None]
    longitude = ((column + 0.5) / width - 0.5) * (2 * math.pi)
    latitude = (0.5 - (row + 0.5) / height) * math.pi
    level = torch.cos(latitude)
    direction = (level * torch.sin(longitude), -torch.sin(latitude), level * torch.cos(longitude))
    return Rays((0.0, 0.0, 0.0), direction, (rows.stop - rows.start, width), math.pi / height)


def _developed(light: Tensor, exposure: float) -> Tensor:
    """Linear light (H, W, 3) as bytes: a film curve at a gain that suits the picture."""
    # Roots, so that a small bright sun or lamp does not darken all else.
    typical = light.clamp(min=0).sqrt().mean() ** 2
    film = 1 - torch.exp(-light.clamp(min=0) * (exposure / typical.clamp(min=1e-6)))
    return (255 * (0.02 + 0.98 * film ** (1 / 2.2))).round().to(torch.uint8)
