"""The cost of cameras under gravity given their observations, and its normal equations.

E = sum w_up rho(|up - up_obs|^2) + w_lat rho(|sin lat - sin lat_obs|^2) per image, rho the Huber
kernel. An observation that the trial camera cannot see (outside the domain of its model) counts as
wrong, so that no step gains by losing sight of pixels.
"""

from __future__ import annotations

from collections.abc import Iterator

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
from geocalib.records import Held, dataclass, map_tensors
from geocalib.solver.observations import Observations

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
    scatter: Array | None
    """(B, P, P) sum of squared scores, where it is wanted."""


@dataclass(frozen=True)
class _Residuals:
    """Residuals (B, M) of M up-vectors and latitudes in a row."""

    rows: Array
    """(B, P + 1, M) their Jacobians, and below them the residuals themselves: their components
    along the derivative (the up-vector's two reduce to one)."""
    squared: Array
    weight: Array

    @property
    def jacobian(self) -> Array:
        """The derivatives by the unknowns, (B, P, M)."""
        return self.rows[:, :-1]

    @property
    def value(self) -> Array:
        """The residuals along the derivative, (B, M), without a unit."""
        return self.rows[:, -1]


def normal_equations(
    camera: Camera,
    gravity: Array,
    basis: Array,
    observations: Observations,
    free: Free,
    huber: float | None,
) -> Normal:
    """Normal equations of B images with cameras (B), gravity (B, 3) and its basis (B, 3, 2)."""
    chunks = _chunks(camera, gravity, basis, observations, free)
    return _joined([_normal(r, huber)[0] for r in chunks])


def inspect(
    camera: Camera,
    gravity: Array,
    basis: Array,
    observations: Observations,
    free: Free,
    huber: float | None,
    with_scatter: bool,
) -> tuple[Normal, Information]:
    """Return the normal equations together with the expected curvature and, if wanted, the
    scatter of the scores, which the uncertainty at an optimum follows from.

    In its linear part the Huber cost of one residual has no curvature; that of the expected
    cost comes from the density of residuals around zero, here measured within a window that
    widens with the noise.
    """
    normals, information = [], []
    for r in _chunks(camera, gravity, basis, observations, free):
        normal, trust = _normal(r, huber)
        weighted = double(r.jacobian * _curvature(r, huber)[:, None])
        scatter = None
        if with_scatter:
            score = double(r.jacobian * (r.weight * trust * r.value)[:, None])
            scatter = score @ score.mT
        normals.append(normal)
        information.append(Information(weighted @ double(r.jacobian).mT, scatter))
    return _joined(normals), _joined(information)


def _normal(r: _Residuals, huber: float | None) -> tuple[Normal, Array]:
    """The normal equations of a chunk, and how far each residual (B, M) is trusted."""
    cost, trust = huber_kernel(r.squared, huber)
    weighted = r.jacobian * (r.weight * trust)[:, None]
    product = double(weighted) @ double(r.rows).mT
    return Normal(product[..., :-1], product[..., -1], double(r.weight * cost).sum(1)), trust


def huber_kernel(squared: Array, threshold: float | None) -> tuple[Array, Array]:
    """Return the cost of each squared norm of a residual, and its weight in the normal equations.

    The cost is ``squared`` up to the threshold and 2 threshold norm - threshold^2 beyond.
    """
    if threshold is None:
        return squared, namespace(squared).ones_like(squared)
    xp = namespace(squared)
    norm = xp.sqrt(clip(squared, threshold**2))
    return xp.minimum(squared, 2 * threshold * norm - threshold**2), threshold / norm


def _joined(parts: list[Held]) -> Held:
    """One batch of residuals, of several."""
    if len(parts) == 1:
        return parts[0]

    def join(*values: Array | None) -> Array | None:
        return None if values[0] is None else namespace(values[0]).concat(values)

    return map_tensors(join, *parts)


def _curvature(r: _Residuals, huber: float | None) -> Array:
    """(B, M) expected, of each residual."""
    if huber is None:
        return r.weight
    half = r.weight.shape[1] // 2
    parts = [
        weight * _density(squared, weight, huber)
        for weight, squared in (
            (r.weight[:, :half], r.squared[:, :half]),
            (r.weight[:, half:], r.squared[:, half:]),
        )
    ]
    return namespace(r.weight).concat(parts, axis=1)


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
    rows = xp.concat([*columns, turned, difference], axis=1)
    rows = rows.reshape(len(gravity), len(columns) // 2 + 1, 2 * o.count)
    squared = xp.concat([dx * dx + dy * dy, difference * difference], axis=1)
    seen = rays.jet.valid
    if seen is not None and not bool(seen.all()):
        seen = seen if seen.shape == squared.shape else xp.concat([seen, seen], axis=1)
        squared = xp.where(seen, squared, UNSEEN_WIDE if camera.model.wide else UNSEEN)
        rows = xp.where(seen[:, None], rows, 0.0)
    return _Residuals(rows, squared, xp.concat([o.up_weight, o.latitude_weight], axis=1))
