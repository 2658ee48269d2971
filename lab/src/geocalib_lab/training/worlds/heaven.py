"""The sky: gradient, sun, clouds and far mountains."""

from __future__ import annotations

import torch
from torch import Tensor

from geocalib_lab.training.worlds.scene import Rays
from geocalib_lab.training.worlds.solids import Light, Ridge, Sky, Vector
from geocalib_lab.training.worlds.textures import Library

CLOUD_DEPTH = 0.08
"""How near to the horizon clouds crowd; without it they would be endlessly many there."""


def colour_of(value: Vector, like: Tensor) -> Tensor:
    """(3,) on the same device."""
    return torch.tensor(value, dtype=like.dtype).to(like.device, non_blocking=True)


def gradient(sky: Sky, up: Tensor) -> Tensor:
    """Light (..., 3) of the clear sky towards directions whose upward part is given."""
    share = up.clamp(0, 1).sqrt().unsqueeze(-1)
    return torch.lerp(colour_of(sky.horizon, up), colour_of(sky.zenith, up), share)


def sky_light(sky: Sky, light: Light, library: Library, rays: Rays) -> Tensor:
    """Light (R, C, 3) of the sky towards unit rays; the horizon's below it."""
    x, y, z = (part for part in rays.direction if isinstance(part, Tensor))
    up = (-y).expand(rays.shape)
    colour = gradient(sky, up)
    to_sun = sum(part * a for part, a in zip((x, y, z), light.towards, strict=True))
    assert isinstance(to_sun, Tensor)
    to_sun = to_sun.clamp(0, 1).unsqueeze(-1)
    sun = 0.4 * to_sun**8 + to_sun**128 + 30 * to_sun**6000
    colour = colour + sky.glow * sun * colour_of(light.colour, up)
    if sky.cloud_cover > 0:
        colour = _clouded(sky, library, rays, (x, up, z), colour)
    for ridge in sky.ridges:
        colour = _mountains(ridge, sky, library, rays, (x, up, z), colour)
    return colour


def _clouded(
    sky: Sky, library: Library, rays: Rays, way: tuple[Tensor, Tensor, Tensor], colour: Tensor
) -> Tensor:
    x, up, z = way
    nearness = sky.cloud_size / (up.clamp(min=0) + CLOUD_DEPTH)
    spacing = rays.spread * nearness * nearness / sky.cloud_size
    layer = torch.full_like(up, sky.cloud_layer, dtype=torch.int32)
    field = library.look_up(layer, x * nearness, z * nearness, spacing)
    # The field is one half on average, with most of it within a fifth of that.
    density = (4 * (field[..., :1] - 0.75 + 0.5 * sky.cloud_cover)).clamp(0, 1)
    shade = 0.65 + 0.7 * (field[..., 2:3] - 0.25).clamp(0, 1)
    body = shade * sky.cloud_light * colour_of(sky.horizon, up)
    fade = (up.unsqueeze(-1) * 12).clamp(0, 1)
    return torch.lerp(colour, body, density * fade)


def _mountains(
    ridge: Ridge,
    sky: Sky,
    library: Library,
    rays: Rays,
    way: tuple[Tensor, Tensor, Tensor],
    colour: Tensor,
) -> Tensor:
    x, up, z = way
    middle = rays.shape[0] // 2
    longitude = torch.atan2(x[middle], z[middle])[None]
    height = torch.full_like(longitude, ridge.height)
    for periods, amplitude, phase in ridge.waves:
        height = height + amplitude * torch.sin(periods * longitude + phase)
    tangent = up / torch.sqrt((1 - up * up).clamp(min=1e-6))
    layer = torch.full_like(up, ridge.layer, dtype=torch.int32)
    along = (longitude * 6).expand_as(up)
    body = library.look_up(layer, along, 9 * tangent, torch.full_like(up, 9 * rays.spread))
    tint = colour_of(ridge.tint, up) * colour_of(sky.horizon, up).mean()
    body = torch.lerp(body[..., :3] * tint, colour_of(sky.horizon, up), ridge.haze)
    return torch.where((tangent < height).unsqueeze(-1), body, colour)
