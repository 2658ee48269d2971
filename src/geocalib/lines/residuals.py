"""How far segments are from pointing along directions in space, and how that changes.

A line of the world along the unit direction d, seen as a segment, lies in the plane through the
rays N1, N2 of the segment's ends: n . d = 0 with n = N1 x N2. In the picture this says that at the
segment's middle the direction d is seen along the segment, just as the up-vector is the direction
in which -gravity is seen. The residual is the sine of the angle between the two: n . d divided by
how much it changes when the segment turns about its middle, so that all residuals are angles in
the picture whatever the focal length.

Directions are the vertical g and level ones: a heading h, and g x h at a right angle to it. When
gravity moves along a tangent e, a heading goes with it: dh = -(e . h) g.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from geocalib.cameras.base import DepthJet
from geocalib.cameras.camera import Camera
from geocalib.fields import Free, Rays, UpField, up_field, up_jacobian
from geocalib.lines.segments import Bundle


@dataclass(frozen=True)
class Sight:
    """N segments of each of B pictures as seen against K directions."""

    residual: Tensor
    """(B, K, N) sines of angles in the picture."""
    cosine: Tensor
    """(B, K, N) their cosines, not negative."""
    valid: Tensor
    """(B, 1, N) whether the camera sees the middle."""
    nearness: Tensor
    """(B, K, N) 1 / pixels from the middle of a segment to where its direction vanishes."""
    rays: Rays
    """(B K, N): of the middles, once for every direction."""
    seen: UpField
    camera: Camera
    directions: Tensor
    """(B, K, 3)."""

    def jacobian(self, moves: Tensor, free: Free) -> Tensor:
        """(B, P, K, N) derivatives of the residuals: in how the directions move, (B, K, 3, M),
        and then in the free ones of log f, distortion and principal point."""
        batch, count = self.directions.shape[:2]
        flat = self.directions.flatten(0, 1)
        # Whatever the directions do takes the place of what gravity does.
        every = Free(True, free.focal, free.distortion, free.principal_point)
        columns = up_jacobian(self.rays, self.seen, self.camera, flat, moves.flatten(0, 1), every)
        stacked = torch.stack(columns, 1).reshape(batch, count, len(columns), -1)
        return stacked.transpose(1, 2) * self.cosine[:, None]


def look(camera: Camera, bundle: Bundle, directions: Tensor) -> Sight:
    """Segments of B cameras against unit directions (B, K, 3) in their frames."""
    batch, count = directions.shape[:2]
    m = (bundle.middle - camera.c[:, :, None]) / camera.focal[:, :, None]
    s = (m * m).sum(1)
    jet = camera.model.jet(s, tuple(k[:, None] for k in camera.distortion.unbind(-1)))
    valid = torch.ones_like(s, dtype=torch.bool) if jet.valid is None else jet.valid
    flat = directions.flatten(0, 1)
    mx, my = (_repeated(part, count, batch) for part in m.unbind(1))
    along = mx * flat[:, :1] + my * flat[:, 1:2]
    rays = Rays(mx, my, _repeated(s, count, batch), _repeated_jet(jet, count, batch), along)
    cameras = camera[torch.arange(batch).repeat_interleave(count)]
    seen = up_field(rays, cameras, flat)
    x, y = (part.reshape(batch, count, -1) for part in (seen.x, seen.y))
    ox, oy = (part[:, None] for part in bundle.along.unbind(1))
    cosine = x * ox + y * oy
    sine = (y * ox - x * oy) * torch.where(cosine < 0, -1.0, 1.0)
    size = torch.hypot(seen.tx / cameras.aspect[:, None], seen.ty)
    nearness = (seen.h.abs() * size / cameras.f[:, None]).reshape(batch, count, -1)
    return Sight(sine, cosine.abs(), valid[:, None], nearness, rays, seen, cameras, directions)


def _repeated(values: Tensor, count: int, batch: int) -> Tensor:
    """(B, N) or what broadcasts to it, each row count times."""
    return values.expand(batch, -1).repeat_interleave(count, 0)


def _repeated_jet(jet: DepthJet, count: int, batch: int) -> DepthJet:
    def each(value: Tensor | None) -> Tensor | None:
        return None if value is None else _repeated(value, count, batch)

    return DepthJet(
        _repeated(jet.depth, count, batch),
        each(jet.d_s),
        each(jet.d_ss),
        tuple(_repeated(d, count, batch) for d in jet.d_k),
        tuple(_repeated(d, count, batch) for d in jet.d_ks),
        each(jet.valid),
    )


def directions_of(gravity: Tensor, headings: Tensor) -> Tensor:
    """(B, 1 + 2 Y, 3): gravity (B, 3), then each of the headings (B, Y, 3) and, after it, the one
    at a right angle to it."""
    turned = torch.linalg.cross(gravity[:, None].expand_as(headings), headings)
    level = torch.stack([headings, turned], 2).flatten(1, 2)
    return torch.cat([gravity[:, None], level], 1)


def moves_of(directions: Tensor, basis: Tensor) -> Tensor:
    """(B, K, 3, M) how the directions move with gravity along each column of a basis (B, 3, a),
    and with each heading that turns from h towards g x h."""
    gravity, level = directions[:, :1], directions[:, 1:]
    columns = []
    for e in basis.unbind(-1):
        columns.append(torch.cat([e[:, None], -(level @ e[..., None]) * gravity], 1))
    for at in range(1, directions.shape[1], 2):
        moved = torch.zeros_like(directions)
        moved[:, at], moved[:, at + 1] = directions[:, at + 1], -directions[:, at]
        columns.append(moved)
    if not columns:
        return directions.new_zeros(*directions.shape, 0)
    return torch.stack(columns, -1)
