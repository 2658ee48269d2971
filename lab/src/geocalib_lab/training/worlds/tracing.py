"""The first solid that each ray meets."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from geocalib_lab.training.worlds.scene import Part, Rays, Scene, Triple, surface
from geocalib_lab.training.worlds.solids import Shape
from geocalib_lab.training.worlds.textures import Library
from geocalib_lab.training.worlds.windows import Window

NEAREST = 0.02
"""Metres; nothing nearer to a ray's start is met."""


def nearest(
    scene: Scene, library: Library, rays: Rays, windows: Sequence[Sequence[Window]]
) -> tuple[Tensor, Tensor]:
    """Distances (R, C), infinite where nothing is met, in lengths of the rays' directions, and
    numbers (R, C) int32 of the solids.

    windows: for each solid, the parts of the grid that may see it.
    """
    device = library.texels.device
    distance = torch.full(rays.shape, math.inf, device=device)
    number = torch.zeros(rays.shape, dtype=torch.int32, device=device)
    for index, solid in enumerate(scene.solids):
        for window in windows[index]:
            part, best = rays.within(window), distance[window]
            found, met = _meet(solid.shape, scene.inverses[index], scene.origins[index], part)
            closer = met & (found < best)
            if solid.porous:
                closer &= _is_solid(scene, library, part, found, index)
            best.copy_(torch.where(closer, found, best))
            number[window].masked_fill_(closer, index)
    return distance, number


def _meet(
    shape: Shape, inverse: NDArray[np.float64], origin: NDArray[np.float64], rays: Rays
) -> tuple[Tensor, Tensor]:
    """Distances to a solid, and whether it is met."""
    rows = inverse.tolist()
    start = [_combine(r, rays.start) + o for r, o in zip(rows, origin.tolist(), strict=True)]
    way = [_combine(row, rays.direction) for row in rows]
    if shape is Shape.BALL:
        enter, leave = _round(start, way)
    elif shape is Shape.PILLAR:
        enter, leave = _round(start[::2], way[::2])
        above, below = _slab(start[1], way[1])
        enter, leave = torch.maximum(enter, above), torch.minimum(leave, below)
    else:
        (x0, x1), (y0, y1), (z0, z1) = (_slab(s, w) for s, w in zip(start, way, strict=True))
        enter = torch.maximum(torch.maximum(x0, y0), z0)
        leave = torch.minimum(torch.minimum(x1, y1), z1)
    if shape is Shape.ROOM:
        return leave, leave > NEAREST
    # Comparisons with nan, where a round solid is missed, are false.
    return enter, (enter < leave) & (enter > NEAREST)


def _combine(row: Sequence[float], parts: Triple) -> Part:
    """A scalar product. As few operations as possible, as this is done often."""
    total: Part = 0.0
    for factor, part in zip(row, parts, strict=True):
        if isinstance(part, Tensor) and isinstance(total, Tensor):
            total = torch.add(total, part, alpha=factor) if factor else total
        elif factor:
            total = factor * part + total if total else factor * part
    return total


def _slab(start: Part, way: Part) -> tuple[Tensor, Tensor]:
    """Where rays enter and leave -1 <= coordinate <= 1."""
    slowness: Part = 1 / way if isinstance(way, Tensor) or way else 1e12
    reach: Part = slowness.abs() if isinstance(slowness, Tensor) else abs(slowness)
    middle = -start * slowness
    enter, leave = middle - reach, middle + reach
    assert isinstance(enter, Tensor)
    assert isinstance(leave, Tensor)
    return enter, leave


def _round(start: Sequence[Part], way: Sequence[Part]) -> tuple[Tensor, Tensor]:
    """Where rays enter and leave the unit circle or sphere; nan where they miss it."""
    a, b, c = _product(way, way), _product(start, way), _product(start, start) - 1
    inside = b * b - a * c
    assert isinstance(inside, Tensor)
    root = inside.sqrt()
    return (-b - root) / a, (root - b) / a


def _product(first: Sequence[Part], second: Sequence[Part]) -> Part:
    total = first[0] * second[0]
    for one, other in zip(first[1:], second[1:], strict=True):
        total = total + one * other
    return total


def _is_solid(scene: Scene, library: Library, rays: Rays, distance: Tensor, index: int) -> Tensor:
    """Whether the texture of a solid is solid where rays meet it; anything where they do not."""
    reached = torch.nan_to_num(distance, 1.0, 1.0, 1.0)
    number = torch.full(distance.shape, index, dtype=torch.int32, device=distance.device)
    met = surface(scene, rays, reached, number)
    layer, spacing = met.face[0].int(), reached.abs() * rays.spread / met.face[11]
    return library.look_up(layer, met.u, met.v, spacing)[..., 3] > 0.5
