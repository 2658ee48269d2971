"""The solids of a world, seen from its eye, as tables on the device; and their surfaces."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from geocalib_lab.training.worlds.solids import Look, Shape, Solid, Vector
from geocalib_lab.training.worlds.windows import Window

Part = float | Tensor
Triple = tuple[Part, Part, Part]

ENDLESS = 1e4
"""Metres of half a face beyond which its texture is counted from the middle."""


@dataclass(frozen=True)
class Rays:
    """A grid (R, C) of rays: starts and directions whose parts are numbers or tensors that
    broadcast to it."""

    start: Triple
    direction: Triple
    shape: tuple[int, int]
    spread: float
    """Radians between neighbours."""

    def within(self, window: Window) -> Rays:
        """The rays of a part of the grid."""

        def cut(part: Part) -> Part:
            if not isinstance(part, Tensor):
                return part
            rows = slice(None) if part.shape[0] == 1 else window[0]
            columns = slice(None) if part.shape[1] == 1 else window[1]
            return part[rows, columns]

        shape = (window[0].stop - window[0].start, window[1].stop - window[1].start)
        sx, sy, sz = (cut(part) for part in self.start)
        dx, dy, dz = (cut(part) for part in self.direction)
        return Rays((sx, sy, sz), (dx, dy, dz), shape, self.spread)


@dataclass(frozen=True)
class Scene:
    """P solids. Positions are relative to the eye."""

    solids: tuple[Solid, ...]
    inverses: NDArray[np.float64]
    """(P, 3, 3) from the world's to local axes."""
    origins: NDArray[np.float64]
    """(P, 3) the eye in local coordinates."""
    corners: NDArray[np.float64]
    """(P, 8, 3) of the boxes around the solids."""
    place: Tensor
    """(13, P): inverse by rows, origin, and the shape, where rooms count as boxes."""
    faces: Tensor
    """(12, 4 P) of sides x and z, top and bottom of each solid: layer, tiles along u and v per
    unit, u and v at zero, tint, glow, gloss, metres of a tile along u and v."""

    @classmethod
    def create(cls, solids: Sequence[Solid], eye: Vector, device: torch.device | str) -> Scene:
        """The solids as seen from an eye."""
        inverses = np.linalg.inv(np.stack([solid.axes for solid in solids]))
        centres = np.array([solid.centre for solid in solids]) - np.array(eye)
        origins = -(inverses @ centres[..., None])[..., 0]
        shapes = [Shape.BOX if s.shape is Shape.ROOM else s.shape for s in solids]
        place = np.concatenate(
            [inverses.reshape(-1, 9), origins, np.array(shapes, dtype=float)[:, None]], axis=1
        )
        faces = np.array([row for solid in solids for row in _faces(solid)])
        return cls(
            tuple(solids),
            inverses,
            origins,
            np.stack([solid.corners() for solid in solids]) - np.array(eye),
            torch.from_numpy(np.ascontiguousarray(place.T, dtype=np.float32)).to(device),
            torch.from_numpy(np.ascontiguousarray(faces.T, dtype=np.float32)).to(device),
        )


def _faces(solid: Solid) -> Iterator[list[float]]:
    half_x, half_y, half_z = np.sqrt((solid.axes * solid.axes).sum(0)).tolist()
    if solid.shape is Shape.PILLAR:
        around = math.pi * math.sqrt(half_x * half_z)
        yield _face(solid.side, around, half_y)
        yield _face(solid.side, around, half_y)
    else:
        yield _face(solid.side, half_z, half_y)
        yield _face(solid.side, half_x, half_y)
    yield _face(solid.top, half_x, half_z)
    yield _face(solid.bottom, half_x, half_z)


def _face(look: Look, half_u: float, half_v: float) -> list[float]:
    tile_u, tile_v = look.tile or (2 * half_u, 2 * half_v)
    per_u, per_v = half_u / tile_u, half_v / tile_v
    # Tiles are counted from a corner, but on the endless ground from the middle, where u and v
    # are exact.
    start_u, start_v = (per_u, per_v) if max(half_u, half_v) < ENDLESS else (0.0, 0.0)
    return [
        look.layer,
        per_u,
        per_v,
        start_u,
        start_v,
        *look.tint,
        look.glow,
        look.gloss,
        tile_u,
        tile_v,
    ]


@dataclass(frozen=True)
class Surface:
    """What rays meet, each of the rays' shape."""

    normal: tuple[Tensor, Tensor, Tensor]
    """Unit, out of the solid."""
    u: Tensor
    v: Tensor
    face: Tensor
    """(12, ...) columns of the scene's faces."""


def surface(scene: Scene, rays: Rays, distance: Tensor, number: Tensor) -> Surface:
    """The surface that rays meet at finite distances on the solids of given numbers."""
    place = scene.place.index_select(1, number.flatten()).view(13, *number.shape)
    x, y, z = (
        place[9 + row]
        + sum_along(place[3 * row : 3 * row + 3], rays.start)
        + distance * sum_along(place[3 * row : 3 * row + 3], rays.direction)
        for row in range(3)
    )
    shape = place[12]
    ball, pillar = shape == Shape.BALL, shape == Shape.PILLAR
    ax, ay, az = x.abs(), y.abs(), z.abs()
    # A ball has its texture from the faces of the cube around it: so it is nowhere drawn out.
    on_x = ~pillar & (ax >= ay) & (ax >= az)
    on_y = torch.where(pillar, ay > 0.9999, (ay > ax) & (ay >= az))
    on_z = ~(pillar | on_x | on_y)
    curved = pillar & ~on_y
    # Out of the solid: for a ball the place itself, for a pillar its level part.
    local = (
        torch.where(on_x | curved | ball, x, 0.0),
        torch.where(on_y | ball, y, 0.0),
        torch.where(on_z | curved | ball, z, 0.0),
    )
    normal = [sum_along(place[column:9:3], local) for column in range(3)]
    assert all(isinstance(part, Tensor) for part in normal)
    scale = torch.rsqrt(normal[0] ** 2 + normal[1] ** 2 + normal[2] ** 2 + 1e-20)
    turn = torch.atan2(z, x) * (1 / math.pi)
    u = torch.where(on_x, z, torch.where(curved, turn, x))
    v = torch.where(on_y, z, y)
    kind = torch.where(on_y, torch.where(y < 0, 2, 3), torch.where(on_x | curved, 0, 1))
    face = scene.faces.index_select(1, (4 * number + kind).flatten()).view(12, *number.shape)
    return Surface(
        (normal[0] * scale, normal[1] * scale, normal[2] * scale),
        u * face[1] + face[3],
        v * face[2] + face[4],
        face,
    )


def sum_along(factors: Tensor, parts: Triple) -> Tensor:
    """Products of factors (3, ...) and three numbers or tensors (...), summed."""
    return factors[0] * parts[0] + factors[1] * parts[1] + factors[2] * parts[2]
