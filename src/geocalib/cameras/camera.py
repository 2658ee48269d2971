"""A batch of cameras: intrinsics of one model, pixels to rays and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from geocalib.cameras.base import CameraModel, Limits
from geocalib.cameras.registry import get_model
from geocalib.errors import CameraError


@dataclass(frozen=True)
class Camera:
    """B cameras of one model. Axes, pixel centres and units: ``geocalib.geometry.conventions``."""

    model: CameraModel
    f: Tensor
    """(B,) vertical focal length, pixels."""
    c: Tensor
    """(B, 2) principal point, pixels."""
    distortion: Tensor
    """(B, D) parameters in the model's order."""
    size: Tensor
    """(B, 2) image width and height, pixels."""
    aspect: Tensor
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
        dtype: torch.dtype | None = None,
    ) -> Camera:
        """Cameras from numbers or tensors; whatever is single serves for the whole batch.

        f: () or (B,); size: (2,) or (B, 2) as (width, height); distortion: (D,) or (B, D), by
        default the model's start; c: (2,) or (B, 2), by default the image centre.

        >>> Camera.create("simple_radial", f=500, size=(640, 480), distortion=[-0.1]).K[0, 1, 2]
        tensor(240.)
        """
        model = get_model(model)
        f = torch.as_tensor(f, dtype=dtype)
        dtype = f.dtype if f.is_floating_point() else torch.get_default_dtype()

        def rows(value: Any, dim: int) -> Tensor:
            tensor = torch.as_tensor(value, dtype=dtype, device=f.device)
            return tensor if tensor.dim() > dim else tensor.unsqueeze(0)

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
        return cls(model, **{n: p.expand(batch, *p.shape[1:]) for n, p in parts.items()})

    def __len__(self) -> int:
        return len(self.f)

    def __getitem__(self, index: Any) -> Camera:
        """A sub-batch (an int keeps the batch dimension)."""
        if isinstance(index, int):
            # The range raises IndexError beyond the end, which is what stops an iteration.
            index = range(len(self))[index]
            index = slice(index, index + 1)
        return self.map(lambda value: value[index])

    def to(self, *args: Any, **kwargs: Any) -> Camera:
        """As ``Tensor.to``."""
        return self.map(lambda value: value.to(*args, **kwargs))

    def map(self, change: Callable[[Tensor], Tensor]) -> Camera:
        """With every tensor changed alike."""
        return Camera(
            model=self.model,
            f=change(self.f),
            c=change(self.c),
            distortion=change(self.distortion),
            size=change(self.size),
            aspect=change(self.aspect),
        )

    @property
    def focal(self) -> Tensor:
        """(B, 2): fx and fy."""
        return torch.stack([self.f * self.aspect, self.f], -1)

    @property
    def K(self) -> Tensor:
        """(B, 3, 3) calibration matrix."""
        K = torch.zeros(len(self), 3, 3, dtype=self.f.dtype, device=self.f.device)
        K[:, 0, 0], K[:, 1, 1] = self.focal.unbind(-1)
        K[:, :2, 2] = self.c
        K[:, 2, 2] = 1
        return K

    @property
    def limits(self) -> Limits:
        """Where the domain ends, each (B,): |m| and the angle to the optical axis."""
        limits = self.model.limits(self.distortion.unbind(-1))
        return Limits(
            limits.radius.to(self.f).expand(len(self)), limits.angle.to(self.f).expand(len(self))
        )

    @property
    def vfov(self) -> Tensor:
        """(B,) vertical field of view, radians."""
        return self._field_of_view(1)

    @property
    def hfov(self) -> Tensor:
        """(B,) horizontal field of view, radians."""
        return self._field_of_view(0)

    def _field_of_view(self, axis: int) -> Tensor:
        if not self.model.wide:
            return 2 * torch.atan(0.5 * self.size[:, axis] / self.focal[:, axis])
        near = 0.5 * self.size
        near = near.scatter(1, torch.full_like(near[:, :1], axis, dtype=torch.long), 0.0)
        ends = torch.stack([near, self.size - near], 1)
        rays, valid = self.unproject(ends)
        first, last = rays.unbind(1)
        angle = torch.atan2(
            torch.linalg.vector_norm(torch.linalg.cross(first, last), dim=-1),
            (first * last).sum(-1),
        )
        # The angle between two rays never exceeds 180 degrees; the view through the axis may.
        beyond = torch.acos(rays[..., 2].clamp(-1, 1)).sum(1) > torch.pi
        angle = torch.where(beyond, 2 * torch.pi - angle, angle)
        return torch.where(valid.all(1), angle, torch.full_like(angle, torch.nan))

    def normalise(self, pixels: Tensor) -> Tensor:
        """(B, ..., 2) pixels to normalised coordinates m."""
        return (pixels - _column(self.c, pixels)) / _column(self.focal, pixels)

    def unproject(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """(B, ..., 2) pixels to (B, ..., 3) unit rays and (B, ...) validity.

        Pixels outside the model's domain are invalid; their ray is the optical axis.
        """
        m = self.normalise(pixels)
        s = (m * m).sum(-1)
        depth, valid = self.model.depth(s, self._parameters(s))
        valid = torch.ones_like(s, dtype=torch.bool) if valid is None else valid
        axis = torch.tensor([0.0, 0.0, 1.0], dtype=m.dtype, device=m.device)
        ray = torch.where(valid[..., None], torch.cat([m, depth[..., None]], -1), axis)
        return ray / torch.linalg.vector_norm(ray, dim=-1, keepdim=True), valid

    def project(self, rays: Tensor) -> tuple[Tensor, Tensor]:
        """(B, ..., 3) rays of any length to (B, ..., 2) pixels and (B, ...) validity."""
        xy, z = rays[..., :2], rays[..., 2]
        r2 = (xy * xy).sum(-1)
        off_axis = r2 > 0
        # On the axis |m| / r has a limit, the derivative of m: take it at a radius that is not 0.
        near = torch.where(z > 0, torch.finfo(rays.dtype).eps * z, torch.ones_like(z))
        r = torch.where(off_axis, torch.sqrt(torch.where(off_axis, r2, torch.ones_like(r2))), near)
        radius, valid = self.model.radius(r, z, self._parameters(z))
        valid = torch.isfinite(radius) if valid is None else valid & torch.isfinite(radius)
        # Straight behind the camera there is no direction to go in the image.
        valid = valid & (off_axis | (z > 0))
        m = xy * torch.where(valid, radius / r, torch.zeros_like(r))[..., None]
        return m * _column(self.focal, xy) + _column(self.c, xy), valid

    def resize(self, width: float, height: float) -> Camera:
        """The cameras of the same images resampled to width x height."""
        size = torch.tensor([width, height], dtype=self.f.dtype, device=self.f.device)
        scale = size / self.size
        return replace(
            self,
            f=self.f * scale[:, 1],
            aspect=self.aspect * scale[:, 0] / scale[:, 1],
            c=self.c * scale,
            size=size.expand_as(self.size),
        )

    def crop(self, left: float, top: float, width: float, height: float) -> Camera:
        """The cameras of a window of the images (it may reach beyond them)."""
        corner = torch.tensor([left, top], dtype=self.f.dtype, device=self.f.device)
        size = torch.tensor([width, height], dtype=self.f.dtype, device=self.f.device)
        return replace(self, c=self.c - corner, size=size.expand_as(self.size))

    def rotate90(self, turns: int) -> Camera:
        """The cameras of the images turned counter-clockwise by that many quarter turns.

        As ``numpy.rot90``; ``geocalib.geometry.gravity.rotate90`` turns the gravity along.
        """
        camera = self
        for _ in range(turns % 4):
            width = camera.size[:, 0]
            camera = replace(
                camera,
                f=camera.f * camera.aspect,
                aspect=1 / camera.aspect,
                c=torch.stack([camera.c[:, 1], width - camera.c[:, 0]], -1),
                size=camera.size.flip(-1),
            )
        return camera

    def _parameters(self, like: Tensor) -> tuple[Tensor, ...]:
        """The distortion parameters, each shaped to broadcast with (B, ...) values."""
        shape = (len(self),) + (1,) * (like.dim() - 1)
        return tuple(k.reshape(shape) for k in self.distortion.unbind(-1))


def _column(value: Tensor, like: Tensor) -> Tensor:
    """(B, 2) shaped to broadcast with (B, ..., 2)."""
    return value.reshape(len(value), *(1,) * (like.dim() - 2), value.shape[-1])
