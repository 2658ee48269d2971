"""Cameras of every model, and points in their domain, for the tests to run over."""

from __future__ import annotations

import math

import torch
from hypothesis import strategies as st
from torch import Tensor

from geocalib.cameras import MODELS, Camera
from lenses import PARAMETERS

UNBOUNDED_RADIUS = 2.5
"""How far out to sample a model whose domain covers the whole plane."""


def sample_camera(model: str, dtype: torch.dtype = torch.float64) -> Camera:
    """Cameras of every distortion above, off-centre and with pixels that are not square.

    The wide models see beyond 90 degrees.
    """
    distortion = torch.tensor(PARAMETERS[model], dtype=dtype)
    focal = 130.0 if MODELS[model].wide else 400.0
    return Camera.create(
        model,
        f=torch.full((len(distortion),), focal, dtype=dtype),
        size=(640, 480),
        distortion=distortion,
        c=(310.3, 251.7),
        aspect=1.1,
    )


def distortions(model: str) -> st.SearchStrategy[tuple[float, ...]]:
    """Any distortion within the bounds of the model, to nine decimals (so none is denormal)."""
    values = (st.floats(*bounds).map(lambda v: round(v, 9)) for bounds in MODELS[model].bounds)
    return st.tuples(*values)


def radii_in_domain(camera: Camera, parts: Tensor) -> Tensor:
    """(B, N) values of |m|: the given parts (N,) of each camera's domain."""
    end = camera.limits.radius
    end = torch.where(torch.isfinite(end), end, torch.full_like(end, UNBOUNDED_RADIUS))
    return end[:, None] * parts.to(end)


def pixels_at(camera: Camera, radii: Tensor) -> Tensor:
    """(B, N, 2) pixels at |m| = radii (B, N), each in another direction."""
    turn = torch.arange(radii.shape[1], dtype=radii.dtype) * math.radians(137.5)
    m = radii[..., None] * torch.stack([torch.cos(turn), torch.sin(turn)], -1)
    return m * camera.focal[:, None] + camera.c[:, None]


def pixels_in_domain(camera: Camera, count: int = 12, part: float = 0.95) -> Tensor:
    """(B, count, 2) pixels over the inner part of the domain; the first is the principal point."""
    return pixels_at(camera, radii_in_domain(camera, torch.linspace(0, part, count)))


def rays_at(angles: Tensor) -> Tensor:
    """(B, N, 3) unit rays at angles (B, N) to the optical axis, each in another direction."""
    turn = torch.arange(angles.shape[1], dtype=angles.dtype) * math.radians(137.5)
    sine = torch.sin(angles)
    return torch.stack([sine * torch.cos(turn), sine * torch.sin(turn), torch.cos(angles)], -1)


def angle_to_axis(rays: Tensor) -> Tensor:
    """Angle (...) of rays (..., 3) to the optical axis, radians."""
    return torch.atan2(torch.linalg.vector_norm(rays[..., :2], dim=-1), rays[..., 2])
