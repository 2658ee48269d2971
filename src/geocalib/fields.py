"""Perspective fields: what a camera under gravity shows at each pixel, and its derivatives.

With N = (m, z) the ray of a pixel (``geocalib.cameras.base``), z' = dz/ds and g the gravity:

    sin(latitude) = -(A + z g_z) / |N|,              A = m . g_xy,
    up            ~ diag(aspect, 1) (h m - q g_xy),  h = g_z - 2 z' A,  q = z - 2 s z' > 0.

The second line is the projection's derivative along -g, found by moving m so that N follows
-g. The up-vector has unit length, so its derivative has the single direction t perpendicular to
it, and one number per pixel and parameter holds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from geocalib.cameras.base import DepthJet
from geocalib.cameras.camera import Camera
from geocalib.errors import FieldError


@dataclass(frozen=True)
class Fields:
    """Observed perspective fields of B images of one size, with a confidence per pixel."""

    up: Tensor
    """(B, 2, H, W) unit image directions, x right and y down."""
    latitude: Tensor
    """(B, 1, H, W) radians, positive above the horizon."""
    up_confidence: Tensor
    """(B, H, W), not negative; 0 leaves the pixel out."""
    latitude_confidence: Tensor
    """(B, H, W), likewise."""

    def __post_init__(self) -> None:
        if not isinstance(self.up, Tensor) or self.up.dim() != 4 or self.up.shape[1] != 2:
            raise FieldError(f"up must be a (B, 2, H, W) tensor, got {_describe(self.up)}")
        batch, _, height, width = self.up.shape
        expected = {
            "latitude": (batch, 1, height, width),
            "up_confidence": (batch, height, width),
            "latitude_confidence": (batch, height, width),
        }
        for name, shape in expected.items():
            value = getattr(self, name)
            if not isinstance(value, Tensor) or tuple(value.shape) != shape:
                raise FieldError(
                    f"{name} must be a {shape} tensor to go with up of "
                    f"{tuple(self.up.shape)}, got {_describe(value)}"
                )
            if value.dtype != self.up.dtype or value.device != self.up.device:
                raise FieldError(
                    f"{name} is {value.dtype} on {value.device}, but up is "
                    f"{self.up.dtype} on {self.up.device}; give all four alike"
                )
        if not self.up.is_floating_point():
            raise FieldError(f"fields must be floating point, got {self.up.dtype}")
        if batch == 0 or height < 2 or width < 2:
            raise FieldError(f"fields of {batch} images of {width}x{height} pixels hold nothing")

    def __len__(self) -> int:
        return len(self.up)

    def __getitem__(self, index: slice | Tensor | list[int]) -> Fields:
        """A sub-batch."""
        return Fields(
            self.up[index],
            self.latitude[index],
            self.up_confidence[index],
            self.latitude_confidence[index],
        )

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in pixels."""
        return self.up.shape[3], self.up.shape[2]

    @classmethod
    def concatenate(cls, parts: list[Fields]) -> Fields:
        """One batch of several of the same size."""
        return cls(
            torch.cat([p.up for p in parts]),
            torch.cat([p.latitude for p in parts]),
            torch.cat([p.up_confidence for p in parts]),
            torch.cat([p.latitude_confidence for p in parts]),
        )


def _describe(value: Any) -> str:
    return f"{tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


def pixel_grid(width: int, height: int, like: Tensor) -> Tensor:
    """(H, W, 2) pixel centres, with the dtype and device of ``like``."""
    x = torch.arange(width, dtype=like.dtype, device=like.device) + 0.5
    y = torch.arange(height, dtype=like.dtype, device=like.device) + 0.5
    return torch.stack(torch.meshgrid(x, y, indexing="xy"), -1)


@dataclass(frozen=True)
class FieldTerms:
    """The field at (B, N) points with the terms its derivatives share."""

    mx: Tensor
    my: Tensor
    s: Tensor
    jet: DepthJet
    along: Tensor
    """A = m . g_xy."""
    q: Tensor
    h: Tensor
    inverse_length: Tensor
    """1 / |N|."""
    sin_latitude: Tensor
    up_x: Tensor
    up_y: Tensor
    tx: Tensor
    """t, perpendicular to up, pulled back through diag(aspect, 1) and the normalisation:
    a change dv of h m - q g_xy turns the up-vector by (tx, ty) . dv."""
    ty: Tensor


def field_terms(camera: Camera, gravity: Tensor, x: Tensor, y: Tensor) -> FieldTerms:
    """The field of cameras and gravity (B, 3) at pixels x, y, each (B, N) or (1, N)."""
    gx, gy, gz = (component[:, None] for component in gravity.unbind(-1))
    aspect = camera.aspect[:, None]
    inverse_f = 1 / camera.f[:, None]
    mx = (x - camera.c[:, :1]) * (inverse_f / aspect)
    my = (y - camera.c[:, 1:]) * inverse_f
    s = mx * mx + my * my
    jet = camera.model.jet(s, tuple(k[:, None] for k in camera.distortion.unbind(-1)))
    z = jet.depth
    along = mx * gx + my * gy
    if jet.d_s is None:
        q, h = z, gz.expand_as(z)
    else:
        q = z - 2 * s * jet.d_s
        h = gz - 2 * jet.d_s * along
    inverse_length = torch.rsqrt(s + z * z)
    vx = aspect * (h * mx - q * gx)
    vy = h * my - q * gy
    # Straight up and down there is no up direction; the floor keeps the division finite.
    inverse_norm = torch.rsqrt((vx * vx + vy * vy).clamp(min=torch.finfo(vx.dtype).tiny))
    up_x, up_y = vx * inverse_norm, vy * inverse_norm
    return FieldTerms(
        mx,
        my,
        s,
        jet,
        along,
        q,
        h,
        inverse_length,
        -(along + z * gz) * inverse_length,
        up_x,
        up_y,
        -up_y * inverse_norm * aspect,
        up_x * inverse_norm,
    )


@dataclass(frozen=True)
class Free:
    """Which parameters vary, in this order: gravity, log f, distortion, principal point."""

    gravity: bool = True
    focal: bool = True
    distortion: tuple[int, ...] = ()
    """Indices of the distortion parameters that vary, ascending."""
    principal_point: bool = False


def up_jacobian(
    terms: FieldTerms, camera: Camera, gravity: Tensor, basis: Tensor, free: Free
) -> list[Tensor]:
    """d(up) . t for each free parameter, each (B, N); t = (-up_y, up_x).

    basis (B, 3, 2): the directions in which gravity varies.
    """
    gx, gy, _ = (component[:, None] for component in gravity.unbind(-1))
    jet, s = terms.jet, terms.s
    tg = terms.tx * gx + terms.ty * gy
    tm = terms.tx * terms.mx + terms.ty * terms.my
    columns = []
    if free.gravity:
        for e in basis.unbind(-1):
            ex, ey, ez = (component[:, None] for component in e.unbind(-1))
            turn = ez
            if jet.d_s is not None:
                turn = ez - 2 * jet.d_s * (terms.mx * ex + terms.my * ey)
            columns.append(turn * tm - terms.q * (terms.tx * ex + terms.ty * ey))
    bend = _bend(jet, s)
    if free.focal:
        columns.append(-terms.h * tm)
        if bend is not None:
            columns[-1] = columns[-1] + 2 * bend * (terms.along * tm - s * tg)
    for i in free.distortion:
        d_k, d_ks = jet.d_k[i], jet.d_ks[i]
        columns.append((2 * s * d_ks - d_k) * tg - 2 * terms.along * d_ks * tm)
    if free.principal_point:
        for dm, t, g, m in _shifts(terms, camera, gx, gy):
            column = terms.h * t * dm
            if bend is not None and jet.d_s is not None:
                ds = 2 * m * dm
                dh = -2 * jet.d_s * g * dm
                if jet.d_ss is not None:
                    dh = dh - 2 * jet.d_ss * terms.along * ds
                column = column + bend * ds * tg + dh * tm
            columns.append(column)
    return columns


def latitude_jacobian(
    terms: FieldTerms, camera: Camera, gravity: Tensor, basis: Tensor, free: Free
) -> list[Tensor]:
    """d(sin latitude) for each free parameter, each (B, N)."""
    gx, gy, gz = (component[:, None] for component in gravity.unbind(-1))
    jet, s, z, inverse = terms.jet, terms.s, terms.jet.depth, terms.inverse_length
    scaled = terms.sin_latitude * inverse
    columns = []
    if free.gravity:
        for e in basis.unbind(-1):
            ex, ey, ez = (component[:, None] for component in e.unbind(-1))
            columns.append(-(terms.mx * ex + terms.my * ey + z * ez) * inverse)
    # How the field follows depth at fixed m: d(sin lat) = towards * dz.
    towards = -(gz + scaled * z) * inverse
    if free.focal:
        column = terms.along + s * scaled
        if jet.d_s is not None:
            column = column - 2 * s * jet.d_s * towards / inverse
        columns.append(column * inverse)
    columns.extend(jet.d_k[i] * towards for i in free.distortion)
    if free.principal_point:
        for dm, _, g, m in _shifts(terms, camera, gx, gy):
            column = -(g + scaled * m) * inverse * dm
            if jet.d_s is not None:
                column = column + 2 * m * dm * jet.d_s * towards
            columns.append(column)
    return columns


def _bend(jet: DepthJet, s: Tensor) -> Tensor | None:
    """z' + 2 s z'' = -dq/ds, None where it vanishes."""
    if jet.d_s is None or jet.d_ss is None:
        return jet.d_s
    return jet.d_s + 2 * s * jet.d_ss


def _shifts(
    terms: FieldTerms, camera: Camera, gx: Tensor, gy: Tensor
) -> tuple[tuple[Tensor, Tensor, Tensor, Tensor], ...]:
    """Per image axis: dm / dc and the components of t, g and m along it."""
    fx, fy = (f[:, None] for f in camera.focal.unbind(-1))
    return (-1 / fx, terms.tx, gx, terms.mx), (-1 / fy, terms.ty, gy, terms.my)


def perspective_field(
    camera: Camera, gravity: Tensor, points: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The exact perspective field of B cameras under gravity (B, 3).

    At points (B, N, 2) in pixels: up (B, N, 2), latitude (B, N) and validity (B, N).
    Without points, at every pixel of images of one size: up (B, 2, H, W), latitude
    (B, 1, H, W) and validity (B, H, W). Invalid pixels lie outside the camera's domain.
    """
    if points is not None:
        terms = field_terms(camera, gravity, points[..., 0], points[..., 1])
        up = torch.stack([terms.up_x, terms.up_y], -1)
        valid = terms.jet.valid
        valid = torch.ones_like(terms.s, dtype=torch.bool) if valid is None else valid
        # The two-argument form stays exact towards the poles, where asin does not.
        ray = torch.stack([terms.mx, terms.my, terms.jet.depth], -1)
        level = torch.linalg.cross(ray, gravity[:, None].expand_as(ray))
        cosine = torch.linalg.vector_norm(level, dim=-1) * terms.inverse_length
        return up, torch.atan2(terms.sin_latitude, cosine), valid
    width, height = (int(v) for v in camera.size[0].tolist())
    if not bool((camera.size == camera.size[0]).all()):
        raise FieldError("images of different sizes have no common grid; give points instead")
    grid = pixel_grid(width, height, camera.f).reshape(1, -1, 2).expand(len(camera), -1, 2)
    up, latitude, valid = perspective_field(camera, gravity, grid)
    shape = (len(camera), height, width)
    return (
        up.transpose(1, 2).reshape(len(camera), 2, height, width),
        latitude.reshape(len(camera), 1, height, width),
        valid.reshape(shape),
    )
