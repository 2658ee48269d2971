"""What a fit returns: cameras, gravity, how the fit ended, and one-sigma uncertainties."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np

from geocalib import records
from geocalib.arrays import (
    Array,
    as_array,
    cast,
    degrees,
    detach,
    diagonal,
    double,
    namespace,
    quiet,
    tiny,
    to_numpy,
    unstack,
)
from geocalib.cameras.camera import Camera
from geocalib.geometry import gravity as sphere
from geocalib.geometry.fields import ALONG_PITCH, ALONG_ROLL, CX, CY, LOG_ASPECT, LOG_F
from geocalib.records import map_tensors

DEGREES = math.degrees(1)
ANY_ANGLE = math.pi / math.sqrt(3)
"""One sigma of an angle that may be any, radians: 104 degrees."""


class Status(StrEnum):
    """The outcome for one image; its value is the sentence to show."""

    CONVERGED = "converged"
    MAX_ITERATIONS = (
        "the maximum number of iterations was reached; the answer may still move a little"
    )
    STALLED = "no step lowers the cost any further, though the gradient has not vanished"
    NOT_FINITE = "failed: the field or its confidence holds NaN or infinite values"
    NO_CONFIDENCE = "failed: no pixel has a positive confidence, so there is nothing to fit"
    NEGATIVE_CONFIDENCE = "failed: a confidence is negative"
    DIVERGED = "failed: the cost or the solution is not finite"

    @property
    def failed(self) -> bool:
        """Whether there is no answer (all its numbers are NaN)."""
        return self.value.startswith("failed")


@records.dataclass(frozen=True)
class Sigma:
    """One-sigma uncertainties of B images; 0 for what was held fixed."""

    roll_deg: Array
    """(B,)."""
    pitch_deg: Array
    """(B,)."""
    gravity_deg: Array
    """(B,) along the gravity's most uncertain direction."""
    vfov_deg: Array
    """(B,)."""
    hfov_deg: Array
    """(B,)."""
    focal: Array
    """(B,) pixels."""
    aspect: Array
    """(B,) of fx / fy."""
    distortion: Array
    """(B, D) in the unit of each parameter."""
    principal_point: Array
    """(B, 2) pixels."""


@quiet
def sigmas_of(
    camera: Camera,
    gravity: Array,
    covariance: Array,
    parameters: Sequence[str],
    between_borders: bool = False,
) -> Sigma:
    """Return the sigmas of B cameras and gravities (B, 3), given the covariance (B, P, P) of their
    free parameters, named as in ``FitResult``. Computed in double precision, without gradients.

    between_borders: of fields of view as ``Camera.border_vfov`` has them, whatever the model.

    NaN for images that failed, and for a field of view that is not there.
    """
    sigma = double_sigmas(
        camera.map(_plain_double),
        _plain_double(gravity),
        _plain_double(covariance),
        parameters,
        between_borders,
    )
    return map_tensors(lambda value: cast(value, covariance.dtype), sigma)


@quiet
def double_sigmas(
    camera: Camera,
    gravity: Array,
    covariance: Array,
    parameters: Sequence[str],
    between_borders: bool = False,
) -> Sigma:
    """Return what ``sigmas_of`` does, of arrays in double precision without gradients."""
    xp, fixed = namespace(gravity), 0 * camera.f
    variances = dict(zip(parameters, unstack(diagonal(covariance)), strict=True))
    sigma = {name: xp.sqrt(variance.clip(0)) for name, variance in variances.items()}
    roll = pitch = largest = fixed
    if ALONG_PITCH in sigma:
        # The tangent basis runs along roll, shortened by the cosine of the pitch, and pitch.
        cos_pitch = xp.linalg.vector_norm(gravity[:, :2], axis=1).clip(1e-9)
        roll = (sigma[ALONG_ROLL] / cos_pitch).clip(max=ANY_ANGLE)
        pitch = sigma[ALONG_PITCH]
        # Without an eigensolver, which refuses what is not finite.
        first, second = variances[ALONG_ROLL], variances[ALONG_PITCH]
        spread = xp.hypot(0.5 * (first - second), covariance[:, 0, 1])
        largest = xp.sqrt((0.5 * (first + second) + spread).clip(0))

    def of_each(names: Sequence[str]) -> Array:
        each = [sigma.get(name, fixed) for name in names]
        return xp.stack(each, axis=1) if each else gravity[:, :0]

    return Sigma(
        roll_deg=DEGREES * roll,
        pitch_deg=DEGREES * pitch,
        gravity_deg=DEGREES * largest,
        vfov_deg=DEGREES * _view_sigma(camera, 1, covariance, parameters, between_borders),
        hfov_deg=DEGREES * _view_sigma(camera, 0, covariance, parameters, between_borders),
        focal=camera.f * sigma.get(LOG_F, fixed),
        aspect=camera.aspect * sigma.get(LOG_ASPECT, fixed),
        distortion=of_each(camera.model.parameters),
        principal_point=of_each((CX, CY)),
    )


def _plain_double(value: Array) -> Array:
    """In double precision and without gradients."""
    return double(detach(value))


def _view_sigma(
    camera: Camera,
    axis: int,
    covariance: Array,
    parameters: Sequence[str],
    between_borders: bool,
) -> Array:
    """(B,) one sigma of the horizontal (axis 0) or vertical (1) field of view, radians."""
    if between_borders:
        view = camera.border_vfov if axis else camera.border_hfov
        slopes = border_slopes(camera, axis, view)
    else:
        view = camera.vfov if axis else camera.hfov
        slopes = view_slopes(camera, axis, view)
    xp = namespace(camera.f)
    none = xp.zeros_like(view)
    columns = [slopes.get(name, none) for name in parameters]
    if not columns:
        return xp.where(xp.isfinite(view), 0.0, view)
    slope = xp.stack(columns, axis=1)[:, None]
    variance = (slope @ covariance @ slope.mT)[:, 0, 0]
    # Without a view there is no slope either.
    return xp.where(xp.isfinite(view), xp.sqrt(variance.clip(0)), math.nan)


def view_slopes(camera: Camera, axis: int, view: Array) -> dict[str, Array]:
    """The derivatives (B,) of the horizontal (axis 0) or vertical (1) field of view (B,), radians,
    in those intrinsics that it depends on, by their names."""
    if not camera.model.wide:
        # view = 2 atan(size / 2 f), whose f is fx for the horizontal one.
        slope = -namespace(view).sin(view)
        return {LOG_F: slope} if axis else {LOG_F: slope, LOG_ASPECT: slope}
    return border_slopes(camera, axis, view)


def border_slopes(camera: Camera, axis: int, view: Array) -> dict[str, Array]:
    """Those of the angle between the rays N = (m, depth(|m|^2)) of two pixels."""
    xp, ends = namespace(camera.f), camera.border_middles(axis)
    m = camera.normalise(ends)
    s = (m * m).sum(-1)
    jet = camera.model.jet(s, tuple(k[:, None] for k in unstack(camera.distortion)))
    steepness = 0.0 if jet.d_s is None else jet.d_s
    N = xp.concat([m, jet.depth[..., None]], axis=-1)
    length = xp.linalg.vector_norm(N, axis=-1, keepdims=True)
    rays = N / length
    # The view widens as its rays turn away from each other, or beyond 180 degrees towards.
    other = xp.flip(rays, axis=1)
    away = rays * (rays * other).sum(-1)[..., None] - other
    away = away / xp.linalg.vector_norm(away, axis=-1, keepdims=True).clip(tiny(s))
    widening = xp.where((view > math.pi)[:, None, None], -away, away) / length
    of_x, of_y, of_depth = unstack(widening)

    def moved(dx: Array, dy: Array) -> Array:
        """The slope in what moves m by (dx, dy)."""
        dz = 2 * (m[..., 0] * dx + m[..., 1] * dy) * steepness
        return (of_x * dx + of_y * dy + of_depth * dz).sum(1)

    fx, fy = (f[:, None] for f in unstack(camera.focal))
    none = xp.zeros_like(s)
    slopes = {
        LOG_F: moved(-m[..., 0], -m[..., 1]),
        CX: moved(none - 1 / fx, none),
        CY: moved(none, none - 1 / fy),
        LOG_ASPECT: moved(-m[..., 0], none),
    }
    for name, d_k in zip(camera.model.parameters, jet.d_k, strict=True):
        slopes[name] = (of_depth * d_k).sum(1)
    return slopes


@dataclass(frozen=True)
class FitResult:
    """Cameras and gravity of B images, with uncertainties. A failed image holds NaN."""

    camera: Camera
    """camera.f (B,), camera.c (B, 2), camera.distortion (B, D)."""
    gravity: Array
    """(B, 3) unit vectors, pointing down."""
    covariance: Array
    """(B, P, P) of the free parameters, in the order of ``parameters``."""
    parameters: tuple[str, ...]
    """Names of the free parameters: roll and pitch direction on the sphere (radians), log f,
    distortion, principal point (pixels), log of fx / fy."""
    status: list[Status]
    """How the fit of each image ended, in words."""
    cost: Array
    """(B,) the minimised E of each image."""
    confidence_scale: Array
    """(B,) s^2: given, or estimated from the residuals."""
    iterations: Array
    """(B,)."""

    def __len__(self) -> int:
        return len(self.gravity)

    @classmethod
    def concatenate(cls, parts: Sequence[FitResult]) -> FitResult:
        """Join fits, in NumPy, with the same model and free parameters."""
        if len(parts) == 1:
            return parts[0]
        cameras = [part.camera for part in parts]
        return replace(
            parts[0],
            camera=replace(
                cameras[0],
                f=np.concatenate([camera.f for camera in cameras]),
                c=np.concatenate([camera.c for camera in cameras]),
                distortion=np.concatenate([camera.distortion for camera in cameras]),
                size=np.concatenate([camera.size for camera in cameras]),
                aspect=np.concatenate([camera.aspect for camera in cameras]),
            ),
            gravity=np.concatenate([part.gravity for part in parts]),
            covariance=np.concatenate([part.covariance for part in parts]),
            status=[status for part in parts for status in part.status],
            cost=np.concatenate([part.cost for part in parts]),
            confidence_scale=np.concatenate([part.confidence_scale for part in parts]),
            iterations=np.concatenate([part.iterations for part in parts]),
        )

    def select(self, rows: Sequence[int]) -> FitResult:
        """The fits of some images, in NumPy."""
        at = list(rows)
        return replace(
            self,
            camera=self.camera[at],
            gravity=self.gravity[at],
            covariance=self.covariance[at],
            status=[self.status[row] for row in at],
            cost=self.cost[at],
            confidence_scale=self.confidence_scale[at],
            iterations=self.iterations[at],
        )

    def in_numpy(self) -> FitResult:
        """Return the same result with NumPy arrays."""
        return replace(
            self,
            camera=self.camera.map(to_numpy),
            gravity=to_numpy(self.gravity),
            covariance=to_numpy(self.covariance),
            cost=to_numpy(self.cost),
            confidence_scale=to_numpy(self.confidence_scale),
            iterations=to_numpy(self.iterations),
        )

    def with_sigmas_scaled(
        self, gravity: float = 1.0, focal: float = 1.0, distortion: float = 1.0
    ) -> FitResult:
        """Return the result with the standard deviations of gravity, log f and distortion
        multiplied by factors."""
        factors = {ALONG_ROLL: gravity, ALONG_PITCH: gravity, LOG_F: focal}
        factors |= dict.fromkeys(self.camera.model.parameters, distortion)
        each = [factors.get(name, 1.0) for name in self.parameters]
        factor = as_array(each, self.covariance)
        return replace(self, covariance=factor[:, None] * self.covariance * factor)

    @cached_property
    def sigma(self) -> Sigma:
        """One-sigma uncertainties of angles, focal length and distortion."""
        return sigmas_of(self.camera, self.gravity, self.covariance, self.parameters)

    @property
    def roll_deg(self) -> Array:
        """The roll of each camera in degrees, (B,)."""
        return degrees(sphere.to_roll_pitch(self.gravity)[0])

    @property
    def pitch_deg(self) -> Array:
        """The pitch of each camera in degrees, (B,)."""
        return degrees(sphere.to_roll_pitch(self.gravity)[1])

    @property
    def vfov_deg(self) -> Array:
        """The vertical field of view in degrees, (B,)."""
        return degrees(self.camera.vfov)

    @property
    def hfov_deg(self) -> Array:
        """The horizontal field of view in degrees, (B,)."""
        return degrees(self.camera.hfov)
