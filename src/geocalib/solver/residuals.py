"""The cost of cameras under gravity given their observations, and its normal equations.

E = sum w_up rho(|up - up_obs|^2) + w_lat rho(|sin lat - sin lat_obs|^2) per image. An
observation that the trial camera cannot see (outside the domain of its model) counts as
wrong, so that no step gains by losing sight of pixels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from geocalib.arrays import Array, clip, double, namespace, tiny
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

CHUNK = 1 << 16
"""Observations evaluated at once: on a CPU they and all temporaries stay in its cache."""
CHUNK_ELSEWHERE = 1 << 24
"""On a device that is kept busy by large batches: as many as memory allows."""

UNSEEN, UNSEEN_WIDE = 2.0, 0.03
"""Squared residual of an observation that the camera cannot see: entirely wrong; for wide models,
whose domain often ends inside the image, clearly wrong."""


@dataclass(frozen=True)
class Normal:
    """Gauss-Newton normal equations of E / 2 per image, in double precision."""

    hessian: Array
    """(B, P, P)."""
    gradient: Array
    """(B, P)."""
    cost: Array
    """(B,) the value of E."""


@dataclass(frozen=True)
class Information:
    """The two halves of the sandwich covariance hessian^-1 scatter hessian^-1, per image."""

    hessian: Array
    """(B, P, P) expected curvature of E / 2."""
    scatter: Array
    """(B, P, P) sum of squared scores."""


@dataclass(frozen=True)
class _Residuals:
    """Residuals (B, M) and their Jacobians (B, P, M) of M up-vectors and latitudes in a row."""

    value: Array
    """Component along the derivative (the up-vector's two reduce to one)."""
    squared: Array
    jacobian: Array
    weight: Array


def normal_equations(
    camera: Camera,
    gravity: Array,
    basis: Array,
    observations: Observations,
    free: Free,
    huber: float | None,
) -> Normal:
    """Normal equations of B images with cameras (B), gravity (B, 3) and its basis (B, 3, 2)."""
    xp, parts = namespace(gravity), []
    for r in _chunks(camera, gravity, basis, observations, free):
        cost, trust = huber_kernel(r.squared, huber)
        weighted = r.jacobian * (r.weight * trust)[:, None]
        right = xp.concat([r.jacobian, r.value[:, None]], axis=1)
        product = double(weighted) @ double(right).mT
        parts.append((product, double(r.weight * cost).sum(1)))
    product = xp.concat([p for p, _ in parts])
    return Normal(product[..., :-1], product[..., -1], xp.concat([c for _, c in parts]))


def information(
    camera: Camera,
    gravity: Array,
    basis: Array,
    observations: Observations,
    free: Free,
    huber: float | None,
) -> Information:
    """Curvature and score scatter at the optimum.

    In its linear part the Huber cost of one residual has no curvature; that of the expected
    cost comes from the density of residuals around zero, here measured within a window that
    widens with the noise.
    """
    xp, parts = namespace(gravity), []
    for r in _chunks(camera, gravity, basis, observations, free):
        _, trust = huber_kernel(r.squared, huber)
        score = r.jacobian * (r.weight * trust * r.value)[:, None]
        curvature = r.weight
        if huber is not None:
            half = r.weight.shape[1] // 2
            curvature = xp.concat(
                [
                    weight * _density(squared, weight, huber)
                    for weight, squared in (
                        (r.weight[:, :half], r.squared[:, :half]),
                        (r.weight[:, half:], r.squared[:, half:]),
                    )
                ],
                axis=1,
            )
        weighted = double(r.jacobian * curvature[:, None])
        score = double(score)
        parts.append((weighted @ double(r.jacobian).mT, score @ score.mT))
    return Information(xp.concat([h for h, _ in parts]), xp.concat([s for _, s in parts]))


def _density(squared: Array, weight: Array, threshold: float) -> Array:
    """Expected curvature of each residual, from a box window of a third of a sigma."""
    # The weighted mean of the norms' square roots, squared: the median's value for Gaussian
    # noise, nearly as deaf to outliers, and much cheaper.
    xp = namespace(squared)
    root = xp.sqrt(xp.sqrt(squared))
    total = clip(weight.sum(1)[:, None], tiny(weight))
    typical = ((weight * root).sum(1)[:, None] / total) ** 2
    window = clip(0.5 * typical, threshold)
    return (squared < window * window) * (threshold / window)


def _chunks(
    camera: Camera, gravity: Array, basis: Array, observations: Observations, free: Free
) -> Iterator[_Residuals]:
    """The residuals of all images, a few images at a time."""
    most = CHUNK if str(observations.up_x.device) == "cpu" else CHUNK_ELSEWHERE
    step = max(1, most // max(1, observations.count))
    if step >= len(observations):
        yield _residuals(camera, gravity, basis, observations, free)
        return
    for start in range(0, len(observations), step):
        part = slice(start, start + step)
        yield _residuals(camera[part], gravity[part], basis[part], observations[part], free)


def _residuals(
    camera: Camera, gravity: Array, basis: Array, observations: Observations, free: Free
) -> _Residuals:
    o, xp = observations, namespace(gravity)
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
    value = xp.concat([turned, difference], axis=1)
    squared = xp.concat([dx * dx + dy * dy, difference * difference], axis=1)
    jacobian = xp.concat(columns, axis=1) if columns else value[:, :0]
    jacobian = jacobian.reshape(len(value), len(columns) // 2, value.shape[1])
    seen = rays.jet.valid
    if seen is not None and not bool(seen.all()):
        seen = seen if seen.shape == value.shape else xp.concat([seen, seen], axis=1)
        value = xp.where(seen, value, 0.0)
        squared = xp.where(seen, squared, UNSEEN_WIDE if camera.model.wide else UNSEEN)
        jacobian = xp.where(seen[:, None], jacobian, 0.0)
    return _Residuals(value, squared, jacobian, xp.concat([o.up_weight, o.latitude_weight], axis=1))
