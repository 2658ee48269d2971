"""Random cameras of every model, and noisy fields of them, for the benchmarks."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from geocalib import Camera, Fields, perspective_field
from geocalib.cameras import get_model
from geocalib.geometry import gravity as sphere

WIDE_PARAMETERS = {
    "kannala_brandt": ((-0.05, 0.05), (-0.02, 0.02), (-0.005, 0.005), (-0.001, 0.001)),
    "ucm": ((0.4, 0.7),),
    "eucm": ((0.4, 0.7), (0.8, 1.3)),
    "double_sphere": ((-0.35, -0.1), (0.45, 0.7)),
}
"""Ordinary values; double_sphere on the side of its singularity at xi = 0 that a fit starts on."""


def random_cameras(
    model: str, count: int, size: int, seed: int = 0, xi: tuple[float, float] | None = None
) -> tuple[Camera, Tensor]:
    """Cameras with square images and their gravity (count, 3), in double precision.

    roll, pitch +-45 degrees; vFoV 20-105, or 60-170 for wide models. Distortion of perspective
    models as published: k_hat from a normal of sigma 0.07 cut at +-0.3, k = k_hat (f/H)^2 (the
    second parameter (f/H)^4), drawn again where the domain ends inside the image.
    """
    generator = torch.Generator().manual_seed(seed)

    def uniform(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(count, generator=generator, dtype=torch.float64)

    def angle(low: float, high: float) -> Tensor:
        return torch.deg2rad(uniform(low, high))

    gravity = sphere.from_roll_pitch(angle(-45, 45), angle(-45, 45))
    camera_model = get_model(model)
    if camera_model.wide:
        half = 0.5 * angle(60, 170)
        ranges = list(WIDE_PARAMETERS[model])
        if xi is not None:
            ranges[0] = xi
        distortion = torch.stack([uniform(*r) for r in ranges], 1)
        radius, _ = camera_model.radius(half.sin(), half.cos(), distortion.unbind(1))
        f = 0.5 * size / radius
        return Camera.create(model, f=f, size=(size, size), distortion=distortion), gravity
    f = 0.5 * size / torch.tan(0.5 * angle(20, 105))
    tries, parameters = 40, len(camera_model.parameters)
    if not parameters:
        return Camera.create(model, f=f, size=(size, size)), gravity
    hat = 0.07 * torch.randn(count, tries, parameters, generator=generator, dtype=torch.float64)
    powers = torch.arange(1, parameters + 1, dtype=torch.float64)
    k = hat * ((f / size) ** 2)[:, None, None] ** powers
    corner = math.sqrt(0.5) * size / f
    radius = camera_model.limits(k.unbind(2)).radius
    good = (hat.abs() <= 0.3).all(2) & (radius > corner[:, None])
    chosen = k[torch.arange(count), good.to(torch.uint8).argmax(1)]
    return Camera.create(model, f=f, size=(size, size), distortion=chosen), gravity


def exact_fields(camera: Camera, gravity: Tensor, dtype: torch.dtype) -> Fields:
    """Noise-free fields with confidence 1 where the camera sees."""
    up, latitude, valid = perspective_field(camera, gravity)
    confidence = valid.to(dtype)
    return Fields(up.to(dtype), latitude.to(dtype), confidence, confidence)


def noisy_fields(
    camera: Camera, gravity: Tensor, noise_deg: float, outliers: float, seed: int
) -> Fields:
    """Independent noise on the direction of up and on the latitude; a share of the pixels
    replaced by uniformly random values with confidence 0.05."""
    generator = torch.Generator().manual_seed(seed)
    up, latitude, valid = perspective_field(camera, gravity)
    shape = latitude[:, 0].shape

    def uniform() -> Tensor:
        return 2 * torch.rand(shape, generator=generator, dtype=up.dtype) - 1

    def normal() -> Tensor:
        return torch.randn(shape, generator=generator, dtype=up.dtype)

    sigma = math.radians(noise_deg)
    direction = torch.atan2(up[:, 1], up[:, 0]) + sigma * normal()
    value = latitude[:, 0] + sigma * normal()
    out_up, out_latitude = (torch.rand(shape, generator=generator) < outliers for _ in range(2))
    direction = torch.where(out_up, math.pi * uniform(), direction)
    value = torch.where(out_latitude, 0.5 * math.pi * uniform(), value)

    def confidence(out: Tensor) -> Tensor:
        return torch.where(out, 0.05, 1.0) * valid

    return Fields(
        torch.stack([direction.cos(), direction.sin()], 1).float(),
        value[:, None].float(),
        confidence(out_up).float(),
        confidence(out_latitude).float(),
    )
