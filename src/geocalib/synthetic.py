"""A small synthetic town, rendered exactly: pictures for tests, examples and documentation.

The camera stands on a square of checkerboard tiles among houses with windows and lamp posts with
a ball on top. Every pixel is cast through ``Camera.unproject``, whatever the camera's model, so
the pictures obey ``geocalib.geometry.conventions`` and show them: walls and posts rise
along the up-vectors and the tiles end where the latitude is 0.

Points are in metres in a level frame at the camera: x right, y down, z ahead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from geocalib.arrays import Array, to_array
from geocalib.cameras.camera import Camera
from geocalib.errors import CameraError
from geocalib.geometry.fields import pixel_grid
from geocalib.geometry.gravity import world_from_camera

EYE_HEIGHT = 1.6
"""Height of the camera above the ground."""
HOUSES = 9
POSTS = 14
POST_RADIUS = 0.07
BALL_RADIUS = 0.2
TILE = 1.0
WINDOW = (2.4, 3.0)
"""Width and height of the piece of a wall that holds one window."""

SKY = ((0.80, 0.90, 0.98), (0.28, 0.52, 0.86))
"""At the horizon and at the zenith."""
TILES = ((0.87, 0.83, 0.74), (0.62, 0.57, 0.49))
POST = (0.80, 0.12, 0.13)
BALL = (1.0, 0.93, 0.62)
GLASS = (0.22, 0.29, 0.38)
PLASTER = (
    (0.93, 0.80, 0.60),
    (0.86, 0.60, 0.48),
    (0.93, 0.89, 0.80),
    (0.75, 0.72, 0.58),
    (0.90, 0.71, 0.57),
)

SUN = (-0.50, -0.72, -0.48)
"""Direction to the sun: high, to the left and behind, so that what lies ahead is lit."""
SHADE = 0.62
"""Brightness of what the sun does not reach."""
RAYS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class Scene:
    """What stands on the ground."""

    houses: Tensor
    """(N, 2, 3) corners of upright boxes, the smallest and the largest coordinates."""
    plaster: Tensor
    """(N, 3) colours of their walls."""
    posts: Tensor
    """(M, 2, 3) foot and top of each lamp post, whose ball is centred on the top."""

    @classmethod
    def create(cls, seed: int, like: Tensor) -> Scene:
        """The town of that seed: always the same, whatever the device."""
        generator = torch.Generator().manual_seed(seed)

        def uniform(count: int, low: float, high: float) -> Tensor:
            draw = torch.rand(count, generator=generator, dtype=torch.float64)
            return low + (high - low) * draw

        def around(count: int, jitter: float, nearest: float, farthest: float) -> Tensor:
            """(count, 2) x and z, spread over all directions but straight ahead."""
            step = 2 * math.pi / count
            angle = step * (torch.arange(count) + 0.5 + uniform(count, -jitter, jitter))
            distance = uniform(count, nearest, farthest)
            return torch.stack([distance * torch.sin(angle), distance * torch.cos(angle)], -1)

        def above_ground(ground: Tensor, height: Tensor) -> Tensor:
            """(count, 3) points at a height (count,) above places (count, 2)."""
            return torch.stack([ground[:, 0], EYE_HEIGHT - height, ground[:, 1]], -1)

        # Walls are made of whole pieces, so that no window is cut.
        centre = around(HOUSES, 0.12, 22.0, 36.0)
        pieces = uniform(2 * HOUSES, 3, 6).floor().reshape(HOUSES, 2)
        height = WINDOW[1] * uniform(HOUSES, 2, 5).floor()
        half = 0.5 * WINDOW[0] * pieces
        corners = above_ground(centre - half, height), above_ground(centre + half, 0 * height)
        colours = torch.tensor(PLASTER)[torch.randperm(HOUSES, generator=generator) % len(PLASTER)]
        place = around(POSTS, 0.2, 5.0, 10.0)
        height = uniform(POSTS, 3.0, 4.2)
        ends = above_ground(place, 0 * height), above_ground(place, height)
        return cls(
            torch.stack(corners, 1).to(like), colours.to(like), torch.stack(ends, 1).to(like)
        )


@torch.no_grad()
def render_scene(camera: Camera, gravity: Array, seed: int = 0, subpixels: int = 2) -> Tensor:
    """(B, H, W, 3) pictures, RGB in [0, 1], that B cameras of one size take under gravity (B, 3).

    Another seed is another town. Each pixel is the mean of subpixels^2 rays, which makes edges
    smooth. Pixels outside the camera's domain are black.

    >>> import numpy as np
    >>> camera = Camera.create("pinhole", f=30, size=(48, 32))
    >>> render_scene(camera, np.array([[0.0, 1.0, 0.0]])).shape
    torch.Size([1, 32, 48, 3])
    """
    camera = camera.map(lambda value: to_array(value, torch))
    gravity = to_array(gravity, torch, camera.f.dtype)
    if not bool((camera.size == camera.size[0]).all()):
        raise CameraError("pictures of different sizes make no batch; render them one by one")
    width, height = (int(v) for v in camera.size[0].tolist())
    scene = Scene.create(seed, camera.f)
    rotation = world_from_camera(gravity)[:, None]
    pixels = pixel_grid(width, height, camera.f).reshape(1, -1, 2).expand(len(camera), -1, 2)
    sharpness = camera.f[:, None].expand(-1, height * width).reshape(-1)
    offsets = (pixel_grid(subpixels, subpixels, camera.f) / subpixels - 0.5).reshape(-1, 2)
    total = torch.zeros(
        len(camera), height * width, 3, dtype=camera.f.dtype, device=camera.f.device
    )
    for offset in offsets:
        rays, valid = camera.unproject(pixels + offset)
        rays = (rotation @ rays[..., None]).squeeze(-1)
        directions = rays.reshape(-1, 3)
        colours = [
            _look(scene, directions[at : at + RAYS_AT_ONCE], sharpness[at : at + RAYS_AT_ONCE])
            for at in range(0, len(directions), RAYS_AT_ONCE)
        ]
        total += torch.cat(colours).reshape_as(total) * valid[..., None]
    return (total / len(offsets)).reshape(len(camera), height, width, 3)


@torch.no_grad()
def scene_distances(camera: Camera, gravity: Array, seed: int = 0) -> tuple[Tensor, Tensor]:
    """(B, H, W, 3) unit rays in the level frame of the pictures of ``render_scene``, and (B, H, W)
    how far along them something stands, in metres: infinite in the sky."""
    camera = camera.map(lambda value: to_array(value, torch))
    gravity = to_array(gravity, torch, camera.f.dtype)
    width, height = (int(v) for v in camera.size[0].tolist())
    pixels = pixel_grid(width, height, camera.f).reshape(1, -1, 2).expand(len(camera), -1, 2)
    rays, _ = camera.unproject(pixels)
    rays = (world_from_camera(gravity)[:, None] @ rays[..., None]).squeeze(-1)
    scene, directions = Scene.create(seed, camera.f), rays.reshape(-1, 3)
    distances = _distances(scene, torch.zeros_like(directions), directions).amin(-1)
    shape = (len(camera), height, width)
    return rays.reshape(*shape, 3), distances.reshape(shape)


def _look(scene: Scene, rays: Tensor, f: Tensor) -> Tensor:
    """(N, 3) colours along unit rays (N, 3) from the camera; f (N,): pixels per radian."""
    distances = _distances(scene, torch.zeros_like(rays), rays)
    distance, thing = distances.min(-1)
    hit = torch.isfinite(distance)
    distance = torch.where(hit, distance, torch.zeros_like(distance))
    points = distance[:, None] * rays
    houses, posts = len(scene.houses), len(scene.posts)

    # The columns of the distances: ground, houses, posts, balls.
    colour = _ground_colour(points, f)
    normal = torch.tensor([0.0, -1.0, 0.0]).to(rays).expand_as(rays)
    for first, count, paint in (
        (1, houses, _house_look),
        (1 + houses, posts, _post_look),
        (1 + houses + posts, posts, _ball_look),
    ):
        mine = (thing >= first) & (thing < first + count)
        own_colour, own_normal = paint(scene, points, (thing - first).clamp(0, count - 1))
        colour = torch.where(mine[:, None], own_colour, colour)
        normal = torch.where(mine[:, None], own_normal, normal)

    sun = torch.tensor(SUN).to(rays)
    sun = (sun / torch.linalg.vector_norm(sun)).expand_as(rays)
    facing = (normal * sun).sum(-1).clamp(min=0) * hit
    seen = facing > 0
    # Start off the surface, which would otherwise shade itself.
    way = _distances(scene, (points + 1e-3 * normal)[seen], sun[seen])
    facing[seen] *= torch.isinf(way.amin(-1))
    light = SHADE + (1 - SHADE) * facing.sqrt()
    return torch.where(hit[:, None], colour * light[:, None], _sky_colour(rays))


def _distances(scene: Scene, origin: Tensor, rays: Tensor) -> Tensor:
    """(N, things) distance along each ray, infinite where it misses."""
    never = torch.full((), torch.inf, dtype=rays.dtype, device=rays.device)

    def ahead(distance: Tensor, hits: Tensor) -> Tensor:
        return torch.where(hits & (distance > 0), distance, never)

    # One coordinate at a time, (N, 1) against (things,): much faster than a last axis of three.
    ox, oy, oz = origin.T[..., None]
    dx, dy, dz = rays.T[..., None]
    tiny = torch.finfo(rays.dtype).eps ** 2

    def crossing(low: Tensor, high: Tensor, o: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
        """Where a ray enters and leaves the space between two planes across an axis."""
        # A ray along the planes meets them far away: a huge factor says so.
        inverse = 1 / torch.where(d.abs() < tiny, torch.full_like(d, tiny), d)
        first, second = (low - o) * inverse, (high - o) * inverse
        return torch.minimum(first, second), torch.maximum(first, second)

    to_ground = (EYE_HEIGHT - oy) / torch.where(dy > tiny, dy, -torch.ones_like(dy))

    low, high = scene.houses[:, 0].T, scene.houses[:, 1].T
    walls = [crossing(*plane) for plane in zip(low, high, (ox, oy, oz), (dx, dy, dz), strict=True)]
    enter = torch.maximum(torch.maximum(walls[0][0], walls[1][0]), walls[2][0])
    leave = torch.minimum(torch.minimum(walls[0][1], walls[1][1]), walls[2][1])

    x, y_top, z = scene.posts[:, 1].T
    to_x, to_y, to_z = ox - x, oy - y_top, oz - z
    a = (dx * dx + dz * dz).clamp(min=tiny)
    b = to_x * dx + to_z * dz
    aside = to_x * to_x + to_z * to_z
    inside = b * b - a * (aside - POST_RADIUS**2)
    to_post = (-b - inside.clamp(min=0).sqrt()) / a
    y = oy + to_post * dy
    on_post = (inside > 0) & (y > y_top) & (y < EYE_HEIGHT)

    b = b + to_y * dy
    within = b * b - (aside + to_y * to_y) + BALL_RADIUS**2
    to_ball = -b - within.clamp(min=0).sqrt()

    return torch.cat(
        [
            ahead(to_ground, dy > tiny),
            ahead(enter, enter < leave),
            ahead(to_post, on_post),
            ahead(to_ball, within > 0),
        ],
        -1,
    )


def _sky_colour(rays: Tensor) -> Tensor:
    horizon, zenith = torch.tensor(SKY).to(rays).unbind()
    height = (-rays[:, 1:2]).clamp(min=0).sqrt()
    return horizon + (zenith - horizon) * height


def _ground_colour(points: Tensor, f: Tensor) -> Tensor:
    """Tiles that melt into their mean where a pixel spans many of them."""
    light, dark = torch.tensor(TILES).to(points).unbind()
    # Half a tile aside, so that the camera stands on the middle of one.
    cell = torch.floor(points[:, ::2] / TILE + 0.5)
    odd = torch.remainder(cell.sum(-1), 2)
    # A pixel of 1 / f radians reaches that far along the ground.
    footprint = (points * points).sum(-1) / (EYE_HEIGHT * f)
    contrast = (1.5 - footprint / TILE).clamp(0, 1)
    share = 0.5 + contrast * (odd - 0.5)
    return light + (dark - light) * share[:, None]


def _house_look(scene: Scene, points: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    low, high = scene.houses[index].unbind(1)
    # The face a point lies on is the one it is closest to.
    gaps = torch.cat([points - low, high - points], -1).abs()
    face = gaps.argmin(-1)
    axis = face % 3
    normal = torch.nn.functional.one_hot(axis, 3) * torch.where(face < 3, -1, 1)[:, None]
    along = torch.where(axis == 0, points[:, 2] - low[:, 2], points[:, 0] - low[:, 0])
    above = EYE_HEIGHT - points[:, 1]
    column, row = along / WINDOW[0], above / WINDOW[1]
    u, v = column - column.floor(), row - row.floor()
    window = (axis != 1) & ((u - 0.5).abs() < 0.22) & ((v - 0.55).abs() < 0.24)
    frame = (axis != 1) & ((u - 0.5).abs() < 0.27) & ((v - 0.55).abs() < 0.28)
    plaster = scene.plaster[index]
    cornice = (axis != 1) & (points[:, 1] < low[:, 1] + 0.35)
    colour = torch.where(frame[:, None], 0.5 + 0.5 * plaster, plaster)
    colour = torch.where(cornice[:, None], 0.72 * plaster, colour)
    return torch.where(window[:, None], torch.tensor(GLASS).to(points), colour), normal.to(points)


def _post_look(scene: Scene, points: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    outward = points - scene.posts[index, 0]
    outward = outward * torch.tensor([1.0, 0.0, 1.0]).to(points)
    return torch.tensor(POST).to(points).expand_as(points), outward / POST_RADIUS


def _ball_look(scene: Scene, points: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    outward = points - scene.posts[index, 1]
    return torch.tensor(BALL).to(points).expand_as(points), outward / BALL_RADIUS
