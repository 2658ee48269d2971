"""Cameras under gravity and the fields they show, for the tests of the solver."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from geocalib.arrays import Array, as_array, degrees, double, namespace
from geocalib.cameras import MODELS, Camera
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import Fields, perspective_field, pixel_grid

HATS: dict[str, tuple[tuple[float, float], ...]] = {
    "pinhole": (),
    "simple_radial": ((-0.25, 0.3),),
    "radial": ((-0.2, 0.25), (-0.03, 0.05)),
    "radial3": ((-0.2, 0.25), (-0.03, 0.05), (-0.01, 0.01)),
    "radial4": ((-0.2, 0.25), (-0.03, 0.05), (-0.01, 0.01), (-0.002, 0.002)),
    "ptlens": ((-0.05, 0.05), (-0.15, 0.2), (-0.05, 0.05)),
    "division": ((-0.2, 0.2),),
    "division2": ((-0.2, 0.2), (-0.04, 0.04)),
}
"""Ranges of the distortion in units of the image height: k_i (H / f)^2i."""

WIDE: dict[str, tuple[tuple[float, float], ...]] = {
    "kannala_brandt": ((-0.05, 0.05), (-0.02, 0.02), (-0.005, 0.005), (-0.001, 0.001)),
    "ucm": ((0.4, 0.7),),
    "eucm": ((0.4, 0.7), (0.8, 1.3)),
    "double_sphere": ((-0.35, -0.1), (0.45, 0.7)),
}
"""Ranges of the distortion of the wide models."""


def uniform(shape: tuple[int, ...], low: float, high: float, generator: torch.Generator) -> Tensor:
    return low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)


def random_gravity(count: int, seed: int, most_deg: float = 45) -> Tensor:
    """(count, 3) with roll and pitch within that many degrees."""
    generator = torch.Generator().manual_seed(seed)
    angles = uniform((2, count), -math.radians(most_deg), math.radians(most_deg), generator)
    return sphere.from_roll_pitch(angles[0], angles[1])


def random_cameras(
    model: str,
    count: int,
    seed: int,
    size: tuple[int, int] = (32, 32),
    vfov_deg: tuple[float, float] | None = None,
    aspect: float = 1.0,
) -> Camera:
    """Cameras with a vertical field of view in a range, by default a wide one for the model."""
    generator = torch.Generator().manual_seed(seed)
    wide = MODELS[model].wide
    low, high = vfov_deg or ((60, 150) if wide else (20, 105))
    half = 0.5 * torch.deg2rad(uniform((count,), low, high, generator))
    ranges = WIDE[model] if wide else HATS[model]
    columns = [uniform((count,), *bounds, generator) for bounds in ranges]
    distortion = torch.stack(columns, 1) if columns else half.new_zeros(count, 0)
    if wide:
        unit = Camera.create(model, half.new_ones(count), (2, 2), distortion, c=(0.0, 0.0))
        edge = torch.stack([torch.zeros_like(half), torch.sin(half), torch.cos(half)], -1)
        f = 0.5 * size[1] / unit.project(edge)[0][:, 1]
    else:
        f = 0.5 * size[1] / torch.tan(half)
        powers = 2 * torch.arange(1, distortion.shape[1] + 1)
        distortion = distortion * (f[:, None] / size[1]) ** powers
    return Camera.create(model, f, size, distortion, aspect=aspect)


def see(camera: Camera, gravity: Tensor, dtype: torch.dtype = torch.float64) -> Fields:
    """What the cameras show, without noise; pixels outside their domain have no confidence."""
    up, latitude, valid = perspective_field(camera, gravity)
    return Fields(up.to(dtype), latitude.to(dtype), valid.to(dtype), valid.to(dtype))


def see_by_projection(camera: Camera, gravity: Tensor) -> Fields:
    """The same, from nothing but ``project`` and ``unproject``: a point moves up a little."""
    width, height = (int(v) for v in camera.size[0].tolist())
    batch = len(camera)
    pixels = pixel_grid(width, height, camera.f).reshape(1, -1, 2).expand(batch, -1, 2)
    rays, valid = camera.unproject(pixels)
    step = 1e-6 * gravity[:, None]
    above, seen_above = camera.project(rays - step)
    below, seen_below = camera.project(rays + step)
    motion = above - below
    up = motion / torch.linalg.vector_norm(motion, dim=-1, keepdim=True)
    latitude = torch.asin(-(rays * gravity[:, None]).sum(-1).clamp(-1, 1))
    valid = valid & seen_above & seen_below & torch.isfinite(up).all(-1)
    up = torch.where(valid[..., None], up, 0.0).transpose(1, 2).reshape(batch, 2, height, width)
    confidence = valid.to(up).reshape(batch, height, width)
    return Fields(up, latitude.reshape(batch, 1, height, width), confidence, confidence)


def with_noise(fields: Fields, sigma_deg: float, seed: int) -> Fields:
    """Up-vectors turned and latitudes shifted by independent normal angles."""
    generator = torch.Generator().manual_seed(seed)

    def noise() -> Tensor:
        draw = torch.randn(fields.latitude.shape, generator=generator, dtype=torch.float64)
        return (math.radians(sigma_deg) * draw).to(fields.up)

    return replace(fields, up=turned(fields.up, noise()), latitude=fields.latitude + noise())


def turned(up: Tensor, angle: Tensor) -> Tensor:
    """Up-vectors (B, 2, H, W) turned by angles (B, 1, H, W)."""
    x, y = up[:, :1], up[:, 1:]
    cosine, sine = torch.cos(angle), torch.sin(angle)
    return torch.cat([cosine * x - sine * y, sine * x + cosine * y], 1)


def with_outliers(fields: Fields, share: float, confidence: float, seed: int) -> Fields:
    """A share of the pixels replaced by random directions and latitudes of low confidence."""
    generator = torch.Generator().manual_seed(seed)
    shape = fields.latitude.shape
    out = torch.rand(shape, generator=generator) < share
    angle = uniform(shape, 0, 2 * math.pi, generator)
    up = torch.cat([torch.cos(angle), torch.sin(angle)], 1).to(fields.up)
    latitude = uniform(shape, -0.5 * math.pi, 0.5 * math.pi, generator).to(fields.up)
    weight = torch.where(out[:, 0], confidence, 1.0).to(fields.up)
    return Fields(
        torch.where(out, up, fields.up),
        torch.where(out, latitude, fields.latitude),
        fields.up_confidence * weight,
        fields.latitude_confidence * weight,
    )


def gravity_error_deg(found: Array, truth: Array) -> Array:
    """(B,) angle between gravities, degrees, in the library of what was found."""
    found = double(found)
    return degrees(sphere.angle_between(found, as_array(truth, found)))


def ray_error_deg(found: Camera, truth: Camera) -> Array:
    """(B,) mean angle between the rays of the pixels that the truth sees, degrees, likewise."""
    found = found.map(double)
    truth = truth.map(lambda value: as_array(value, found.f))
    width, height = (int(v) for v in truth.size[0].tolist())
    xp = namespace(found.f)
    grid = pixel_grid(width, height, truth.f).reshape(1, -1, 2)
    pixels = xp.broadcast_to(grid, (len(truth), *grid.shape[1:]))
    seen, seen_valid = truth.unproject(pixels)
    rays, valid = found.unproject(pixels)
    # A ray that was not found is off by the whole way round.
    angle = xp.where(valid, sphere.angle_between(seen, rays), math.pi) * seen_valid
    return degrees(angle.sum(1) / seen_valid.sum(1))
