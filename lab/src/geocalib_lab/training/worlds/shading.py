"""How bright what the rays meet is, in linear light."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from geocalib_lab.training.worlds.heaven import colour_of, gradient, sky_light
from geocalib_lab.training.worlds.scene import Rays, Scene, Surface, surface
from geocalib_lab.training.worlds.solids import Lamp, Light, Shape, Vector, World
from geocalib_lab.training.worlds.textures import Library
from geocalib_lab.training.worlds.tracing import nearest
from geocalib_lab.training.worlds.windows import square_windows

FINE, COARSE = 0.6, 7.3
"""Metres that a tile of noise spans: grain, and stains, on every surface."""

Point = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True)
class ShadowMap:
    """How far the light gets: depths (N, N) over a square across it."""

    depth: Tensor
    across: tuple[Vector, Vector]
    """Unit vectors along the columns and rows."""
    light: Light
    far: float
    """Metres from the plane where its rays start to the eye."""


def cast_shadows(world: World, library: Library, size: int, device: torch.device) -> ShadowMap:
    """The shadows of a world's solids; rooms, lamps and the endless ground throw none."""
    light = world.light
    throws = [
        solid
        for solid in world.solids
        if solid.shape is not Shape.ROOM
        and solid.side.glow == 0
        and np.abs(solid.axes).max() < 10 * light.reach
    ]
    towards = np.array(light.towards)
    right = np.cross([0.0, 0.0, 1.0] if abs(towards[2]) < 0.9 else [1.0, 0.0, 0.0], towards)
    right /= np.linalg.norm(right)
    down = np.cross(towards, right)
    far = 4 * light.reach
    steps = ((torch.arange(size, device=device) + 0.5) * (2 / size) - 1) * light.reach
    start = [
        steps[None] * float(right[i]) + steps[:, None] * float(down[i]) + far * float(towards[i])
        for i in range(3)
    ]
    away = [-float(part) for part in towards]
    spread = 2 * light.reach / size / far
    rays = Rays((start[0], start[1], start[2]), (away[0], away[1], away[2]), (size, size), spread)

    if throws:
        scene = Scene.create(throws, world.eye, device)
        windows = square_windows(scene.corners, (right, down), light.reach, size)
        depth, _ = nearest(scene, library, rays, windows)
    else:
        depth = torch.full((size, size), math.inf, device=device)
    return ShadowMap(depth, (_vector(right), _vector(down)), light, far)


def _vector(values: NDArray[np.float64]) -> Vector:
    x, y, z = values.tolist()
    return x, y, z


def _along(point: Point, vector: Vector) -> Tensor:
    return point[0] * vector[0] + point[1] * vector[1] + point[2] * vector[2]


def lit(shadows: ShadowMap, point: Point) -> Tensor:
    """Share of the light, from 0 to 1, that reaches points, relative to the eye."""
    size, reach = shadows.depth.shape[0], shadows.light.reach
    column, row = ((_along(point, axis) / reach + 1) * (size / 2) - 0.5 for axis in shadows.across)
    bias = 0.02 + 3 * reach / size
    depth = shadows.far - _along(point, shadows.light.towards) - bias
    x, y = column.clamp(0, size - 1.001), row.clamp(0, size - 1.001)
    x_floor, y_floor = x.floor(), y.floor()
    corner = y_floor.int() * size + x_floor.int()
    flat = shadows.depth.flatten()

    def open_at(step: int) -> Tensor:
        found = flat.index_select(0, (corner + step).flatten()).view(corner.shape)
        return (depth < found).float()

    upper = torch.lerp(open_at(0), open_at(1), x - x_floor)
    lower = torch.lerp(open_at(size), open_at(size + 1), x - x_floor)
    outside = (x != column) | (y != row)
    return torch.lerp(upper, lower, y - y_floor).masked_fill(outside, 1.0)


def shade(
    world: World,
    scene: Scene,
    library: Library,
    rays: Rays,
    distance: Tensor,
    number: Tensor,
    shadows: ShadowMap,
) -> Tensor:
    """Light (R, C, 3) that comes along unit rays from the eye."""
    seen = torch.isfinite(distance)
    reach = torch.where(seen, distance, 1.0)
    met = surface(scene, rays, reach, number)
    x, y, z = (reach * part for part in rays.direction)
    point = (x, y, z)
    met, cosine = _towards_eye(met, rays)
    albedo, waves = _albedo(world, library, met, reach * rays.spread, cosine)
    light = _light(world, met, point, shadows) * _openness(world, scene, met, point)
    glow, gloss = met.face[8].unsqueeze(-1), met.face[9].unsqueeze(-1)
    colour = albedo * (light + glow)
    mirrored = _mirrored_up(met, rays, cosine) + 0.3 * gloss.squeeze(-1) * (waves - 0.5)
    fresnel = gloss * (0.06 + 0.94 * (1 - cosine.unsqueeze(-1)) ** 5)
    colour = torch.lerp(colour, gradient(world.sky, mirrored), fresnel)
    if world.haze > 0:
        clear = torch.exp(-world.haze * reach).unsqueeze(-1)
        colour = torch.lerp(colour_of(world.sky.horizon, reach), colour, clear)
    if scene.solids[0].shape is Shape.ROOM:
        return colour
    return torch.where(seen.unsqueeze(-1), colour, sky_light(world.sky, world.light, library, rays))


def _towards_eye(met: Surface, rays: Rays) -> tuple[Surface, Tensor]:
    """The surface with normals on the eye's side, and their cosine to the ray."""
    facing = sum(n * d for n, d in zip(met.normal, rays.direction, strict=True))
    assert isinstance(facing, Tensor)
    flip = torch.where(facing > 0, -1.0, 1.0)
    nx, ny, nz = (part * flip for part in met.normal)
    return Surface((nx, ny, nz), met.u, met.v, met.face), facing.abs().clamp(max=1)


def _albedo(
    world: World, library: Library, met: Surface, footprint: Tensor, cosine: Tensor
) -> tuple[Tensor, Tensor]:
    """Reflectance (R, C, 3) by texture, grain and stains, and a smooth field for waves.

    footprint: metres between neighbouring rays, across them.
    """
    layer, tile_u, tile_v = met.face[0].int(), met.face[10], met.face[11]
    # Seen aslant, a pixel is long: between its length and its breadth.
    footprint = footprint * torch.rsqrt(cosine.clamp(min=0.02))
    texel = library.look_up(layer, met.u, met.v, footprint / torch.minimum(tile_u, tile_v))
    metres_u, metres_v = met.u * tile_u, met.v * tile_v
    noise = torch.full_like(layer, world.noise_layer)
    fine = library.look_up(noise, metres_u / FINE, metres_v / FINE, footprint / FINE)
    coarse = library.look_up(noise, metres_u / COARSE, metres_v / COARSE, footprint / COARSE)
    # Squared, as the textures are drawn as they are to appear.
    grain = (0.7 + 0.6 * fine[..., 2:3]) * (0.9 + 0.2 * coarse[..., 1:2])
    return texel[..., :3] ** 2 * grain * met.face[5:8].movedim(0, -1), fine[..., 0] + coarse[
        ..., 0
    ] - 0.5


def _light(world: World, met: Surface, point: Point, shadows: ShadowMap) -> Tensor:
    """Light (R, C, 3) that falls on surfaces."""
    up = (0.5 - 0.5 * met.normal[1]).unsqueeze(-1)
    above = 0.3 * (colour_of(world.sky.zenith, up) + colour_of(world.sky.horizon, up))
    # Eyes and cameras allow for the blue of the sky; some of it stays.
    above = 0.4 * above + 0.6 * above.mean()
    total = torch.lerp(colour_of(world.sky.ground, up), above, up)
    key = world.light
    slope = _along(met.normal, key.towards).clamp(min=0)
    share = slope * (key.softness + (1 - key.softness) * lit(shadows, point))
    total = total + share.unsqueeze(-1) * colour_of(key.colour, up)
    for lamp in world.lamps:
        total = total + _lamp_light(lamp, world.eye, met, point)
    return total


def _lamp_light(lamp: Lamp, eye: Vector, met: Surface, point: Point) -> Tensor:
    ways = [lamp.place[i] - eye[i] - point[i] for i in range(3)]
    squared = ways[0] ** 2 + ways[1] ** 2 + ways[2] ** 2 + 0.05
    toward = sum(n * w for n, w in zip(met.normal, ways, strict=True))
    assert isinstance(toward, Tensor)
    # Light that comes back from the other surfaces softens the law of cosines.
    share = (0.7 * toward * torch.rsqrt(squared) + 0.3).clamp(min=0) / squared
    return share.unsqueeze(-1) * colour_of(lamp.colour, squared)


def _openness(world: World, scene: Scene, met: Surface, point: Point) -> Tensor:
    """Darkness in corners: (R, C, 1), 1 where a point is free on all sides."""
    if scene.solids[0].shape is not Shape.ROOM:
        height = (-world.eye[1] - point[1]).clamp(min=0)
        darkness = 0.4 * torch.exp(-height / 0.6) * (1 + met.normal[1]).clamp(0, 1)
        return (1 - darkness).unsqueeze(-1)
    free = torch.ones_like(point[0])
    rows, halves = scene.inverses[0].tolist(), np.linalg.norm(scene.solids[0].axes, axis=0)
    for row, half, origin in zip(rows, halves.tolist(), scene.origins[0].tolist(), strict=True):
        local = _along(point, (row[0], row[1], row[2])) + origin
        free = free * (1 - 0.4 * torch.exp((local.abs() - 1).clamp(max=0) * (half / 0.4)))
    return free.unsqueeze(-1)


def _mirrored_up(met: Surface, rays: Rays, cosine: Tensor) -> Tensor:
    """The upward part of mirrored rays."""
    return -(rays.direction[1] + 2 * cosine * met.normal[1])
