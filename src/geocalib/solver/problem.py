"""The cost of cameras under gravity given their observations, and its normal equations.

E = sum w_up rho(|up - up_obs|^2) + w_lat rho(|sin lat - sin lat_obs|^2) per image.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from geocalib.cameras.camera import Camera
from geocalib.fields import Free, field_terms, latitude_jacobian, up_jacobian
from geocalib.solver.observations import Observations
from geocalib.solver.robust import huber_cost, huber_weight

CHUNK = 1 << 16
"""Observations evaluated at once: they and all temporaries stay in the processor's cache."""


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
    for index in _chunks(observations):
        r = _residuals(camera[index], gravity[index], basis[index], observations[index], free)
        weighted = r.jacobian * (r.weight * huber_weight(r.squared, huber)).unsqueeze(1)
        right = torch.cat([r.jacobian, r.value.unsqueeze(1)], 1)
        product = weighted.double() @ right.double().transpose(1, 2)
        cost = (r.weight * huber_cost(r.squared, huber)).sum(1, dtype=torch.float64)
        parts.append((product, cost))
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
    for index in _chunks(observations):
        r = _residuals(camera[index], gravity[index], basis[index], observations[index], free)
        score = r.jacobian * (r.weight * huber_weight(r.squared, huber) * r.value).unsqueeze(1)
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
    """Expected curvature of each residual: a box window of the weighted median's order."""
    norm = torch.sqrt(squared)
    ordered, order = norm.sort(dim=1)
    mass = weight.gather(1, order).cumsum(1)
    middle = (mass < 0.5 * mass[:, -1:]).sum(1, keepdim=True).clamp(max=norm.shape[1] - 1)
    window = (0.7 * ordered.gather(1, middle)).clamp(min=threshold)
    return (norm < window) * (threshold / window)


def _chunks(observations: Observations) -> list[slice]:
    """Slices of images that hold about ``CHUNK`` observations."""
    step = max(1, CHUNK // max(1, observations.count))
    return [slice(i, i + step) for i in range(0, len(observations), step)]


def _residuals(
    camera: Camera, gravity: Tensor, basis: Tensor, observations: Observations, free: Free
) -> _Residuals:
    o = observations
    up = field_terms(camera, gravity, o.up_at_x, o.up_at_y)
    latitude = (
        up if o.same_places else field_terms(camera, gravity, o.latitude_at_x, o.latitude_at_y)
    )
    dx, dy = up.up_x - o.up_x, up.up_y - o.up_y
    turned = up.up_y * o.up_x - up.up_x * o.up_y
    difference = latitude.sin_latitude - o.sin_latitude
    columns = [
        torch.cat([a.expand_as(turned), b.expand_as(difference)], 1)
        for a, b in zip(
            up_jacobian(up, camera, gravity, basis, free),
            latitude_jacobian(latitude, camera, gravity, basis, free),
            strict=True,
        )
    ]
    value = torch.cat([turned, difference], 1)
    jacobian = (
        torch.stack(columns, 1) if columns else value.new_zeros(len(value), 0, value.shape[1])
    )
    return _Residuals(
        value,
        torch.cat([dx * dx + dy * dy, difference * difference], 1),
        jacobian,
        torch.cat([o.up_weight, o.latitude_weight], 1),
    )
