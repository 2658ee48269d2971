"""The cost of cameras under gravity given their observations, and its normal equations.

E = sum w_up rho(|up - up_obs|^2) + w_lat rho(|sin lat - sin lat_obs|^2) per image. An
observation that the trial camera cannot see (outside the domain of its model) counts as
wrong, so that no step gains by losing sight of pixels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from geocalib.cameras.camera import Camera
from geocalib.geometry.fields import (
    Free,
    cast_rays,
    latitude_field,
    latitude_jacobian,
    up_field,
    up_jacobian,
)
from geocalib.solver.observations import Observations
from geocalib.solver.robust import huber as huber_kernel

CHUNK = {"cpu": 1 << 16}
"""Observations evaluated at once: on a CPU they and all temporaries stay in its cache."""
CHUNK_ELSEWHERE = 1 << 24
"""On a device that is kept busy by large batches: as many as memory allows."""

UNSEEN, UNSEEN_WIDE = 2.0, 0.03
"""Squared residual of an observation that the camera cannot see: entirely wrong; for wide models,
whose domain often ends inside the image, clearly wrong."""


@dataclass(frozen=True)
class Normal:
    """Gauss-Newton normal equations of E / 2 per image, in double precision."""

    hessian: Tensor
    """(B, P, P)."""
    gradient: Tensor
    """(B, P)."""
    cost: Tensor
    """(B,) the value of E."""


@dataclass(frozen=True)
class Information:
    """The two halves of the sandwich covariance hessian^-1 scatter hessian^-1, per image."""

    hessian: Tensor
    """(B, P, P) expected curvature of E / 2."""
    scatter: Tensor
    """(B, P, P) sum of squared scores."""


@dataclass(frozen=True)
class _Residuals:
    """Residuals (B, M) and their Jacobians (B, P, M) of M up-vectors and latitudes in a row."""

    value: Tensor
    """Component along the derivative (the up-vector's two reduce to one)."""
    squared: Tensor
    jacobian: Tensor
    weight: Tensor


def normal_equations(
    camera: Camera,
    gravity: Tensor,
    basis: Tensor,
    observations: Observations,
    free: Free,
    huber: float | None,
) -> Normal:
    """Normal equations of B images with cameras (B), gravity (B, 3) and its basis (B, 3, 2)."""
    parts = []
    for r in _chunks(camera, gravity, basis, observations, free):
        cost, trust = huber_kernel(r.squared, huber)
        weighted = r.jacobian * (r.weight * trust).unsqueeze(1)
        right = torch.cat([r.jacobian, r.value.unsqueeze(1)], 1)
        product = weighted.double() @ right.double().transpose(1, 2)
        parts.append((product, (r.weight * cost).sum(1, dtype=torch.float64)))
    product = torch.cat([p for p, _ in parts])
    return Normal(product[..., :-1], product[..., -1], torch.cat([c for _, c in parts]))


def information(
    camera: Camera,
    gravity: Tensor,
    basis: Tensor,
    observations: Observations,
    free: Free,
    huber: float | None,
) -> Information:
    """Curvature and score scatter at the optimum.

    In its linear part the Huber cost of one residual has no curvature; that of the expected
    cost comes from the density of residuals around zero, here measured within a window that
    widens with the noise.
    """
    parts = []
    for r in _chunks(camera, gravity, basis, observations, free):
        _, trust = huber_kernel(r.squared, huber)
        score = r.jacobian * (r.weight * trust * r.value).unsqueeze(1)
        curvature = r.weight
        if huber is not None:
            half = r.weight.shape[1] // 2
            curvature = torch.cat(
                [
                    weight * _density(squared, weight, huber)
                    for weight, squared in (
                        (r.weight[:, :half], r.squared[:, :half]),
                        (r.weight[:, half:], r.squared[:, half:]),
                    )
                ],
                1,
            )
        weighted = (r.jacobian * curvature.unsqueeze(1)).double()
        score = score.double()
        parts.append(
            (weighted @ r.jacobian.double().transpose(1, 2), score @ score.transpose(1, 2))
        )
    return Information(torch.cat([h for h, _ in parts]), torch.cat([s for _, s in parts]))


def _density(squared: Tensor, weight: Tensor, threshold: float) -> Tensor:
    """Expected curvature of each residual, from a box window of a third of a sigma."""
    # The weighted mean of the norms' square roots, squared: the median's value for Gaussian
    # noise, nearly as deaf to outliers, and much cheaper.
    root = torch.sqrt(torch.sqrt(squared))
    total = weight.sum(1, keepdim=True).clamp(min=torch.finfo(weight.dtype).tiny)
    typical = ((weight * root).sum(1, keepdim=True) / total) ** 2
    window = (0.5 * typical).clamp(min=threshold)
    return (squared < window * window) * (threshold / window)


def _chunks(
    camera: Camera, gravity: Tensor, basis: Tensor, observations: Observations, free: Free
) -> Iterator[_Residuals]:
    """The residuals of all images, a few images at a time."""
    most = CHUNK.get(observations.up_x.device.type, CHUNK_ELSEWHERE)
    step = max(1, most // max(1, observations.count))
    for start in range(0, len(observations), step):
        part = slice(start, start + step)
        yield _residuals(camera[part], gravity[part], basis[part], observations[part], free)


def _residuals(
    camera: Camera, gravity: Tensor, basis: Tensor, observations: Observations, free: Free
) -> _Residuals:
    o = observations
    rays = cast_rays(camera, gravity, o.at_x, o.at_y)
    up_rays = latitude_rays = rays
    if o.at_x.shape[1] > o.count:
        up_rays, latitude_rays = rays.part(0, o.count), rays.part(o.count, o.count)
    up = up_field(up_rays, camera, gravity)
    latitude = latitude_field(latitude_rays, gravity)
    dx, dy = up.x - o.up_x, up.y - o.up_y
    turned = up.y * o.up_x - up.x * o.up_y
    difference = latitude.sine - o.sin_latitude
    pairs = zip(
        up_jacobian(up_rays, up, camera, gravity, basis, free),
        latitude_jacobian(latitude_rays, latitude, camera, gravity, basis, free),
        strict=True,
    )
    columns = [column for pair in pairs for column in pair]
    value = torch.cat([turned, difference], 1)
    squared = torch.cat([dx * dx + dy * dy, difference * difference], 1)
    jacobian = torch.cat(columns, 1) if columns else value.new_zeros(len(value), 0)
    jacobian = jacobian.reshape(len(value), len(columns) // 2, value.shape[1])
    seen = rays.jet.valid
    if seen is not None and not bool(seen.all()):
        seen = seen if seen.shape == value.shape else torch.cat([seen, seen], 1)
        value = torch.where(seen, value, 0.0)
        squared = torch.where(seen, squared, UNSEEN_WIDE if camera.model.wide else UNSEEN)
        jacobian = torch.where(seen.unsqueeze(1), jacobian, 0.0)
    return _Residuals(value, squared, jacobian, torch.cat([o.up_weight, o.latitude_weight], 1))
