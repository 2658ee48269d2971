"""A batch of cameras: intrinsics of one model, pixels to rays and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from geocalib.arrays import (
    Array,
    DType,
    as_array,
    as_floats,
    cast,
    common_namespace,
    eps,
    namespace,
    quiet,
    unstack,
    zeros,
)
from geocalib.cameras.base import CameraModel, Limits
from geocalib.cameras.registry import get_model
from geocalib.errors import CameraError


@dataclass(frozen=True)
class Camera:
    """B cameras of one model, or one camera: then no array has the first axis, here and in every
    shape below. Axes, pixel centres and units: ``geocalib.geometry.conventions``."""

    model: CameraModel
    f: Array
    """(B,) vertical focal length, pixels."""
    c: Array
    """(B, 2) principal point, pixels."""
    distortion: Array
    """(B, D) parameters in the model's order."""
    size: Array
    """(B, 2) image width and height, pixels."""
    aspect: Array
    """(B,) fx / fy."""

    @classmethod
    def create(
        cls,
        model: str | CameraModel,
        f: Any,
        size: Any,
        distortion: Any = None,
        c: Any = None,
        aspect: Any = 1.0,
        dtype: DType | None = None,
    ) -> Camera:
        """Cameras from numbers or arrays; whatever is single serves for the whole batch.

        f: () or (B,); size: (2,) or (B, 2) as (width, height); distortion: (D,) or (B, D), by
        default the model's start; c: (2,) or (B, 2), by default the image centre. They are held
        in the library of the arrays or of the dtype given: NumPy, unless one is torch's.

        >>> Camera.create("simple_radial", f=500, size=(640, 480), distortion=[0]).K[0, 1, 2].item()
        240.0
        """
        model = get_model(model)
        xp = common_namespace(f, size, distortion, c, aspect, dtype)
        f = as_floats(f, xp, dtype)

        def rows(value: Any, dim: int) -> Array:
            array = as_array(value, f)
            return array if array.ndim > dim else array[None]

        count = len(model.parameters)
        parts = {
            "f": rows(f, 0),
            "size": rows(size, 1),
            "distortion": rows(model.start if distortion is None else distortion, 1),
            "aspect": rows(aspect, 0),
        }
        parts["c"] = rows(0.5 * parts["size"] if c is None else c, 1)
        if parts["distortion"].shape[-1] != count:
            raise CameraError(
                f"{model.name} takes {count} distortion parameters "
                f"({', '.join(model.parameters) or 'none'}), got {parts['distortion'].shape[-1]}"
            )
        for name, width in (("f", ()), ("size", (2,)), ("c", (2,)), ("aspect", ())):
            if parts[name].shape[1:] != width:
                raise CameraError(
                    f"{name} must be {width} or (B, {'2' if width else ''}), "
                    f"got {tuple(parts[name].shape)}"
                )
        batch = max(len(part) for part in parts.values())
        for name, part in parts.items():
            if len(part) not in (1, batch):
                raise CameraError(f"{name} is given for {len(part)} cameras of {batch}")
        return cls(
            model, **{n: xp.broadcast_to(p, (batch, *p.shape[1:])) for n, p in parts.items()}
        )

    def __len__(self) -> int:
        return len(self.f)

    def __getitem__(self, index: Any) -> Camera:
        """A sub-batch (an int keeps the batch dimension)."""
        if isinstance(index, int):
            # The range raises IndexError beyond the end, which is what stops an iteration.
            index = range(len(self))[index]
            index = slice(index, index + 1)
        return self.map(lambda value: value[index])

    def single(self) -> Camera:
        """The one camera of a batch of 1, without the batch axis."""
        if self.f.shape != (1,):
            raise CameraError(f"one camera is needed here, got a batch of shape {self.f.shape}")
        return self.map(lambda value: value[0])

    def batch(self) -> Camera:
        """The cameras themselves, or the one camera as a batch of 1."""
        return self if self.f.ndim else self.map(lambda value: value[None])

    def to(self, *args: Any, **kwargs: Any) -> Camera:
        """As the method of tensors."""
        return self.map(lambda value: value.to(*args, **kwargs))

    def cast(self, dtype: DType) -> Camera:
        """With that kind of number."""
        return self.map(lambda value: cast(value, dtype))

    def map(self, change: Callable[[Array], Array]) -> Camera:
        """With every array changed alike."""
        return Camera(
            model=self.model,
            f=change(self.f),
            c=change(self.c),
            distortion=change(self.distortion),
            size=change(self.size),
            aspect=change(self.aspect),
        )

    @property
    def focal(self) -> Array:
        """(B, 2): fx and fy."""
        return namespace(self.f).stack([self.f * self.aspect, self.f], axis=-1)

    @property
    def K(self) -> Array:
        """(B, 3, 3) calibration matrix."""
        K = zeros((*self.f.shape, 3, 3), self.f)
        K[..., 0, 0], K[..., 1, 1] = unstack(self.focal)
        K[..., :2, 2] = self.c
        K[..., 2, 2] = 1
        return K

    @property
    @quiet
    def limits(self) -> Limits:
        """Where the domain ends, each (B,): |m| and the angle to the optical axis."""
        limits = self.model.limits(unstack(self.distortion))
        radius, angle = (as_array(end, self.f) for end in (limits.radius, limits.angle))
        return Limits(*namespace(self.f).broadcast_arrays(radius, angle, self.f)[:2])

    def border_middles(self, axis: int) -> Array:
        """(B, 2, 2) pixels in the middle of the left and right (0) or top and bottom (1) border."""
        across = as_array([1.0, 0.0] if axis else [0.0, 1.0], self.size)
        first = 0.5 * across * self.size
        return namespace(first).stack([first, self.size - first], axis=-2)

    @property
    def vfov(self) -> Array:
        """(B,) vertical field of view, radians: 2 atan(H / 2 fy), whatever the distortion, of
        models that are not wide; ``border_vfov`` of wide ones."""
        return self._field_of_view(1)

    @property
    def hfov(self) -> Array:
        """(B,) horizontal field of view, radians, defined as ``vfov``."""
        return self._field_of_view(0)

    @property
    def border_vfov(self) -> Array:
        """(B,) the angle between the rays of the top and bottom middle, radians, or NaN."""
        return self._between_borders(1)

    @property
    def border_hfov(self) -> Array:
        """(B,) the angle between the rays of the left and right middle, radians, or NaN."""
        return self._between_borders(0)

    def _field_of_view(self, axis: int) -> Array:
        if self.model.wide:
            return self._between_borders(axis)
        f = self.f if axis else self.f * self.aspect
        return 2 * namespace(self.f).atan(0.5 * self.size[..., axis] / f)

    @quiet
    def _between_borders(self, axis: int) -> Array:
        xp = namespace(self.f)
        rays, valid = self.unproject(self.border_middles(axis))
        first, last = unstack(rays, -2)
        angle = xp.atan2(
            xp.linalg.vector_norm(xp.linalg.cross(first, last), axis=-1), (first * last).sum(-1)
        )
        # The angle between two rays never exceeds 180 degrees; the view through the axis may.
        beyond = xp.acos(rays[..., 2].clip(-1, 1)).sum(-1) > math.pi
        angle = xp.where(beyond, 2 * math.pi - angle, angle)
        return xp.where(valid.all(-1), angle, math.nan)

    def normalise(self, pixels: Array) -> Array:
        """(B, ..., 2) pixels to normalised coordinates m."""
        return (pixels - _column(self.c, pixels)) / _column(self.focal, pixels)

    @quiet
    def unproject(self, pixels: Array) -> tuple[Array, Array]:
        """(B, ..., 2) pixels to (B, ..., 3) unit rays and (B, ...) validity.

        Pixels outside the model's domain are invalid; their ray is the optical axis.
        """
        xp = namespace(pixels)
        m = self.normalise(pixels)
        s = (m * m).sum(-1)
        depth, valid = self.model.depth(s, self._parameters(s))
        valid = xp.ones_like(s, dtype=xp.bool) if valid is None else valid
        axis = as_array([0.0, 0.0, 1.0], m)
        ray = xp.where(valid[..., None], xp.concat([m, depth[..., None]], axis=-1), axis)
        return ray / xp.linalg.vector_norm(ray, axis=-1, keepdims=True), valid

    @quiet
    def project(self, rays: Array) -> tuple[Array, Array]:
        """(B, ..., 3) rays of any length to (B, ..., 2) pixels and (B, ...) validity."""
        xp = namespace(rays)
        xy, z = rays[..., :2], rays[..., 2]
        r2 = (xy * xy).sum(-1)
        off_axis = r2 > 0
        # On the axis |m| / r has a limit, the derivative of m: take it at a radius that is not 0.
        near = xp.where(z > 0, eps(rays) * z, 1.0)
        r = xp.where(off_axis, xp.sqrt(xp.where(off_axis, r2, 1.0)), near)
        radius, valid = self.model.radius(r, z, self._parameters(z))
        valid = xp.isfinite(radius) if valid is None else valid & xp.isfinite(radius)
        # Straight behind the camera there is no direction to go in the image.
        valid = valid & (off_axis | (z > 0))
        m = xy * xp.where(valid, radius / r, 0.0)[..., None]
        return m * _column(self.focal, xy) + _column(self.c, xy), valid

    def resize(self, width: float, height: float) -> Camera:
        """The cameras of the same images resampled to width x height."""
        scale = as_array([width, height], self.size) / self.size
        return replace(
            self,
            f=self.f * scale[..., 1],
            aspect=self.aspect * scale[..., 0] / scale[..., 1],
            c=self.c * scale,
            size=self._all_of(width, height),
        )

    def crop(self, left: float, top: float, width: float, height: float) -> Camera:
        """The cameras of a window of the images (it may reach beyond them)."""
        corner = as_array([left, top], self.c)
        return replace(self, c=self.c - corner, size=self._all_of(width, height))

    def rotate90(self, turns: int) -> Camera:
        """The cameras of the images turned counter-clockwise by that many quarter turns.

        As ``numpy.rot90``; ``geocalib.geometry.gravity.rotate90`` turns the gravity along.
        """
        xp = namespace(self.f)
        camera = self
        for _ in range(turns % 4):
            width = camera.size[..., 0]
            camera = replace(
                camera,
                f=camera.f * camera.aspect,
                aspect=1 / camera.aspect,
                c=xp.stack([camera.c[..., 1], width - camera.c[..., 0]], axis=-1),
                size=xp.flip(camera.size, axis=-1),
            )
        return camera

    def _all_of(self, width: float, height: float) -> Array:
        """(B, 2) one size for all images."""
        size = as_array([width, height], self.size)
        return namespace(size).broadcast_to(size, self.size.shape)

    def _parameters(self, like: Array) -> tuple[Array, ...]:
        """The distortion parameters, each shaped to broadcast with (B, ...) values."""
        shape = self.f.shape + (1,) * (like.ndim - self.f.ndim)
        return tuple(k.reshape(shape) for k in unstack(self.distortion))


def _column(value: Array, like: Array) -> Array:
    """(B, 2) shaped to broadcast with (B, ..., 2)."""
    return value.reshape(*value.shape[:-1], *(1,) * (like.ndim - value.ndim), value.shape[-1])


@dataclass(frozen=True)
class Window:
    """A window of an original image, in its pixels: the part of it that a network sees."""

    left: float
    top: float
    width: float
    height: float

    def to_original(self, camera: Camera, size: tuple[int, int]) -> Camera:
        """The cameras of whole originals of (width, height), given those of inputs."""
        return camera.resize(self.width, self.height).crop(-self.left, -self.top, *size)

    def to_input(self, camera: Camera, size: tuple[int, int]) -> Camera:
        """The cameras of inputs of (width, height), given those of whole originals."""
        return camera.crop(self.left, self.top, self.width, self.height).resize(*size)
