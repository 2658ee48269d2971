"""Perspective fields: what a camera under gravity shows at each pixel, and its derivatives.

With N = (m, z) the ray of a pixel (``geocalib.cameras.base``), z' = dz/ds and g the gravity:

    sin(latitude) = -(A + z g_z) / |N|,              A = m . g_xy,
    up            ~ diag(aspect, 1) (h m - q g_xy),  h = g_z - 2 z' A,  q = z - 2 s z' > 0.

The second line is the projection's derivative along -g, found by moving m so that N follows
-g. The up-vector has unit length, so its derivative has the single direction t perpendicular to
it, and one number per pixel and parameter holds it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from geocalib import records
from geocalib.arrays import (
    Array,
    counting,
    inverse_root,
    is_array,
    namespace,
    quiet,
    unstack,
)
from geocalib.cameras.base import CameraModel, DepthJet
from geocalib.cameras.camera import Camera
from geocalib.errors import FieldError
from geocalib.records import map_tensors


@dataclass(frozen=True)
class Fields:
    """Observed perspective fields of B images of one size, with a confidence per pixel."""

    up: Array
    """(B, 2, H, W) unit image directions, x right and y down."""
    latitude: Array
    """(B, 1, H, W) radians, positive above the horizon."""
    up_confidence: Array
    """(B, H, W), not negative; 0 leaves the pixel out."""
    latitude_confidence: Array
    """(B, H, W), likewise."""

    def __post_init__(self) -> None:
        if not is_array(self.up) or self.up.ndim != 4 or self.up.shape[1] != 2:
            raise FieldError(f"up must be a (B, 2, H, W) tensor, got {_describe(self.up)}")
        batch, _, height, width = self.up.shape
        expected = {
            "latitude": (batch, 1, height, width),
            "up_confidence": (batch, height, width),
            "latitude_confidence": (batch, height, width),
        }
        for name, shape in expected.items():
            value = getattr(self, name)
            if not is_array(value) or tuple(value.shape) != shape:
                raise FieldError(
                    f"{name} must be a {shape} tensor to go with up of "
                    f"{tuple(self.up.shape)}, got {_describe(value)}"
                )
            if value.dtype != self.up.dtype or value.device != self.up.device:
                raise FieldError(
                    f"{name} is {value.dtype} on {value.device}, but up is "
                    f"{self.up.dtype} on {self.up.device}; give all four alike"
                )
        if not namespace(self.up).isdtype(self.up.dtype, "real floating"):
            raise FieldError(f"fields must be floating point, got {self.up.dtype}")
        if batch == 0 or height < 2 or width < 2:
            raise FieldError(f"fields of {batch} images of {width}x{height} pixels hold nothing")

    def __len__(self) -> int:
        return len(self.up)

    def __getitem__(self, index: slice | Array | list[int]) -> Fields:
        """The fields of some of the images."""
        return self.map(lambda value: value[index])

    def to(self, *args: Any, **kwargs: Any) -> Fields:
        """As the method of tensors."""
        return self.map(lambda value: value.to(*args, **kwargs))

    def map(self, change: Callable[[Array], Array]) -> Fields:
        """With every array changed alike."""
        return map_tensors(change, self)

    def weighted(self, weight: float) -> Fields:
        """Return the fields with every confidence multiplied by a weight."""
        return replace(
            self,
            up_confidence=weight * self.up_confidence,
            latitude_confidence=weight * self.latitude_confidence,
        )

    @property
    def size(self) -> tuple[int, int]:
        """The size (width, height) in pixels."""
        return self.up.shape[3], self.up.shape[2]

    @classmethod
    def concatenate(cls, parts: list[Fields]) -> Fields:
        """One batch of several of the same size."""
        if len(parts) == 1:
            return parts[0]
        return map_tensors(lambda *values: namespace(values[0]).concat(values), *parts)


def _describe(value: Any) -> str:
    return f"{tuple(value.shape)}" if is_array(value) else type(value).__name__


def pixel_grid(width: int, height: int, like: Array) -> Array:
    """(H, W, 2) pixel centres, with the dtype and device of ``like``."""
    x = counting(width, like, like.dtype) + 0.5
    y = counting(height, like, like.dtype) + 0.5
    xp = namespace(like)
    return xp.stack(xp.meshgrid(x, y, indexing="xy"), axis=-1)


@records.dataclass(frozen=True)
class Rays:
    """The rays N = (m, z) of (B, N) points and A = m . g_xy, shared by all that follows."""

    mx: Array
    my: Array
    s: Array
    jet: DepthJet
    along: Array

    def part(self, start: int, count: int) -> Rays:
        """The rays of a run of points."""
        at = slice(None), slice(start, start + count)
        return Rays(
            self.mx[at], self.my[at], self.s[at], self.jet.part(start, count), self.along[at]
        )


@quiet
def cast_rays(camera: Camera, gravity: Array, x: Array, y: Array) -> Rays:
    """Rays of pixels x, y, each (B, N) or (1, N), of B cameras under gravity (B, 3)."""
    inverse_f = 1 / camera.f[:, None]
    mx = (x - camera.c[:, :1]) * (inverse_f / camera.aspect[:, None])
    my = (y - camera.c[:, 1:]) * inverse_f
    s = mx * mx + my * my
    parameters = range(camera.distortion.shape[1])
    jet = camera.model.jet(s, tuple([camera.distortion[:, i : i + 1] for i in parameters]))
    return Rays(mx, my, s, jet, mx * gravity[:, :1] + my * gravity[:, 1:2])


@records.dataclass(frozen=True)
class UpField:
    """Up-vectors (B, N) with the terms their derivatives share."""

    x: Array
    y: Array
    q: Array
    h: Array
    """(B, 1) where it is the same for all."""
    tx: Array
    """t, perpendicular to up, pulled back through diag(aspect, 1) and the normalisation:
    a change dv of h m - q g_xy turns the up-vector by (tx, ty) . dv."""
    ty: Array


def up_field(rays: Rays, camera: Camera, gravity: Array) -> UpField:
    """The up-vectors at the rays."""
    gx, gy, gz = gravity[:, :1], gravity[:, 1:2], gravity[:, 2:]
    jet = rays.jet.up or rays.jet
    aspect, z = camera.aspect[:, None], jet.depth
    if jet.d_s is None:
        q, h = z, gz
    else:
        twice = 2 * jet.d_s
        q = z - rays.s * twice
        h = gz - rays.along * twice
    vx = aspect * (h * rays.mx - q * gx)
    vy = h * rays.my - q * gy
    # Straight up and down there is no up direction; the floor keeps the division finite.
    inverse = inverse_root(vx * vx + vy * vy, floored=True)
    x, y = vx * inverse, vy * inverse
    return UpField(x, y, q, h, -aspect * y * inverse, x * inverse)


@records.dataclass(frozen=True)
class LatitudeField:
    """Sines of latitudes and 1 / |N|, each (B, N)."""

    sine: Array
    inverse_length: Array


def latitude_field(rays: Rays, gravity: Array) -> LatitudeField:
    """The latitudes at the rays."""
    z = rays.jet.depth
    inverse_length = inverse_root(rays.s + z * z)
    return LatitudeField(-(rays.along + z * gravity[:, 2:]) * inverse_length, inverse_length)


ALONG_ROLL, ALONG_PITCH = "roll direction", "pitch direction"
"""Steps of gravity on the sphere, radians, the first shortened by the cosine of the pitch."""
LOG_F = "log f"
CX, CY = "cx", "cy"
"""The principal point, pixels."""
LOG_ASPECT = "log aspect"
"""The names of free parameters beside those of the distortion, which each model has its own."""


@records.dataclass(frozen=True)
class Free:
    """The parameters that vary, in this order: gravity, log f, distortion, principal point, log of
    the aspect."""

    gravity: bool = True
    focal: bool = True
    distortion: tuple[int, ...] = ()
    """Indices of the distortion parameters that vary, ascending."""
    principal_point: bool = False
    aspect: bool = False

    @cached_property
    def intrinsics(self) -> int:
        """Parameters of each camera that vary."""
        pairs = 2 * int(self.principal_point)
        return int(self.focal) + len(self.distortion) + pairs + int(self.aspect)

    def names(self, model: CameraModel) -> tuple[str, ...]:
        """The names of the parameters that vary, in order."""
        return (
            *((ALONG_ROLL, ALONG_PITCH) if self.gravity else ()),
            *((LOG_F,) if self.focal else ()),
            *(model.parameters[i] for i in self.distortion),
            *((CX, CY) if self.principal_point else ()),
            *((LOG_ASPECT,) if self.aspect else ()),
        )


def up_jacobian(
    rays: Rays, up: UpField, camera: Camera, gravity: Array, basis: Array, free: Free
) -> list[Array]:
    """d(up) . t for each free parameter, each (B, N); t = (-up_y, up_x).

    basis (B, 3, 2): the directions in which gravity varies.
    """
    gx, gy = gravity[:, :1], gravity[:, 1:2]
    jet, s = rays.jet.up or rays.jet, rays.s
    tm = up.tx * rays.mx + up.ty * rays.my
    # With a constant depth, nothing else moves along gravity.
    tg = 0.0 if jet.d_s is None else up.tx * gx + up.ty * gy
    columns = []
    if free.gravity:
        for e in (basis[..., 0], basis[..., 1]):
            ex, ey, ez = e[:, :1], e[:, 1:2], e[:, 2:]
            turn = ez
            if jet.d_s is not None:
                turn = ez - 2 * jet.d_s * (rays.mx * ex + rays.my * ey)
            columns.append(turn * tm - up.q * (up.tx * ex + up.ty * ey))
    bend = _bend(jet, s)
    if free.focal:
        column = -up.h * tm
        if bend is not None:
            column = column + 2 * bend * (rays.along * tm - s * tg)
        if jet.excess is not None:
            column = column - 2 * s * jet.excess * tg
        columns.append(column)
    for i in free.distortion:
        d_k, d_ks = jet.d_k[i], jet.d_ks[i]
        columns.append((2 * s * d_ks - d_k) * tg - 2 * rays.along * d_ks * tm)
    for shift in _shifts(rays, camera, gravity, free):
        dm, g, m = shift.dm, shift.g, shift.m
        column = up.h * (up.ty if shift.vertical else up.tx) * dm
        if bend is not None and jet.d_s is not None:
            ds = 2 * m * dm
            dh = -2 * jet.d_s * g * dm
            if jet.d_ss is not None:
                dh = dh - 2 * jet.d_ss * rays.along * ds
            column = column + bend * ds * tg + dh * tm
            if jet.excess is not None:
                column = column + jet.excess * ds * tg
        columns.append(column)
    if free.aspect:
        # Beside moving m, its last column, the aspect stretches what is seen there.
        columns[-1] = columns[-1] + up.tx * (up.h * rays.mx - up.q * gx)
    return columns


def latitude_jacobian(
    rays: Rays, latitude: LatitudeField, camera: Camera, gravity: Array, basis: Array, free: Free
) -> list[Array]:
    """d(sin latitude) for each free parameter, each (B, N)."""
    jet, s, z, inverse = rays.jet, rays.s, rays.jet.depth, latitude.inverse_length
    scaled = latitude.sine * inverse
    columns = []
    if free.gravity:
        for e in (basis[..., 0], basis[..., 1]):
            columns.append(-(rays.mx * e[:, :1] + rays.my * e[:, 1:2] + z * e[:, 2:]) * inverse)
    # How the field follows the depth at fixed m: d(sin lat) = towards * dz.
    towards = None
    if jet.d_s is not None:
        towards = -(gravity[:, 2:] + scaled * z) * inverse
    if free.focal:
        column = (rays.along + s * scaled) * inverse
        if jet.d_s is not None and towards is not None:
            column = column - 2 * s * jet.d_s * towards
        columns.append(column)
    if towards is not None:
        columns.extend(jet.d_k[i] * towards for i in free.distortion)
    for shift in _shifts(rays, camera, gravity, free):
        column = -(shift.g + scaled * shift.m) * inverse * shift.dm
        if jet.d_s is not None and towards is not None:
            column = column + 2 * shift.m * shift.dm * jet.d_s * towards
        columns.append(column)
    return columns


def _bend(jet: DepthJet, s: Array) -> Array | None:
    """z' + 2 s z'', None where it vanishes; plus the jet's excess it is -dq/ds."""
    if jet.d_s is None or jet.d_ss is None:
        return jet.d_s
    return jet.d_s + 2 * s * jet.d_ss


@records.dataclass(frozen=True)
class _Shift:
    """A parameter that moves m along one image axis."""

    vertical: bool
    dm: Array
    """By how much."""
    g: Array
    """The component of gravity along the axis."""
    m: Array
    """That of m."""


def _shifts(rays: Rays, camera: Camera, gravity: Array, free: Free) -> list[_Shift]:
    """Those of the principal point and the log aspect, as far as they are free."""
    shifts = []
    gx, gy = gravity[:, :1], gravity[:, 1:2]
    if free.principal_point:
        fx, fy = (f[:, None] for f in unstack(camera.focal))
        shifts += [_Shift(False, -1 / fx, gx, rays.mx), _Shift(True, -1 / fy, gy, rays.my)]
    if free.aspect:
        shifts.append(_Shift(False, -rays.mx, gx, rays.mx))
    return shifts


@quiet
def perspective_field(
    camera: Camera, gravity: Array, points: Array | None = None
) -> tuple[Array, Array, Array]:
    """The exact perspective field of B cameras under gravity (B, 3).

    At points (B, N, 2) in pixels: up (B, N, 2), latitude (B, N) and validity (B, N).
    Without points, at every pixel of images of one size: up (B, 2, H, W), latitude
    (B, 1, H, W) and validity (B, H, W). Invalid pixels lie outside the camera's domain.
    """
    xp = namespace(gravity)
    if points is not None:
        rays = cast_rays(camera, gravity, points[..., 0], points[..., 1])
        up = up_field(rays, camera, gravity)
        field = latitude_field(rays, gravity)
        # The two-argument form stays exact towards the poles, where asin does not.
        ray = xp.stack([rays.mx, rays.my, rays.jet.depth], axis=-1)
        level = xp.linalg.cross(ray, gravity[:, None])
        cosine = xp.linalg.vector_norm(level, axis=-1) * field.inverse_length
        valid = rays.jet.valid
        valid = xp.ones_like(rays.s, dtype=xp.bool) if valid is None else valid
        return xp.stack([up.x, up.y], axis=-1), xp.atan2(field.sine, cosine), valid
    width, height = (int(v) for v in camera.size[0].tolist())
    if not bool((camera.size == camera.size[0]).all()):
        raise FieldError("images of different sizes have no common grid; give points instead")
    batch = len(camera)
    grid = pixel_grid(width, height, camera.f).reshape(1, -1, 2)
    grid = namespace(grid).broadcast_to(grid, (batch, width * height, 2))
    directions, latitude, valid = perspective_field(camera, gravity, grid)
    return (
        directions.mT.reshape(batch, 2, height, width),
        latitude.reshape(batch, 1, height, width),
        valid.reshape(batch, height, width),
    )
