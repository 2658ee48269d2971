"""All textures of a set of worlds, packed in one piece of the device's memory."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from geocalib_lab.training.worlds import patterns, pictures, prints
from geocalib_lab.training.worlds.canvas import Canvas

Drawer = Callable[[Canvas], Tensor]

KINDS: dict[str, tuple[Drawer, int]] = {
    "noise": (patterns.noise, 1),
    "cloud": (patterns.cloud, 3),
    "brick": (patterns.brick, 5),
    "tile": (patterns.tile, 5),
    "plank": (patterns.plank, 5),
    "plaster": (patterns.plaster, 5),
    "paper": (patterns.paper, 6),
    "gravel": (patterns.gravel, 4),
    "grass": (patterns.grass, 3),
    "asphalt": (patterns.asphalt, 3),
    "sand": (patterns.sand, 3),
    "metal": (patterns.metal, 3),
    "marble": (patterns.marble, 2),
    "bark": (patterns.bark, 2),
    "roof": (patterns.roof, 3),
    "leaves": (patterns.leaves, 4),
    "facade": (pictures.facade, 10),
    "shopfront": (pictures.shopfront, 3),
    "window": (pictures.window, 4),
    "door": (pictures.door, 4),
    "poster": (pictures.poster, 8),
    "sign": (pictures.sign, 4),
    "books": (pictures.books, 3),
    "cabinet": (pictures.cabinet, 4),
    "curtain": (pictures.curtain, 3),
    "carpet": (pictures.carpet, 3),
    "road": (pictures.road, 2),
    "crossing": (pictures.crossing, 1),
    "fence": (pictures.fence, 4),
    "keys": (prints.keys, 3),
    "page": (prints.page, 4),
}
"""How each kind of texture is drawn, and how many different ones a library holds."""


@dataclass(frozen=True)
class Library:
    """Square tileable textures, each in all sizes down to one texel."""

    texels: Tensor
    """(T,) int32: red, green, blue and how solid the texture is there."""
    offset: Tensor
    """(levels,) where each size starts; within it the textures follow one another."""
    size: int
    """Texels along a side of the largest size, a power of two."""
    layers: dict[str, range]
    """The numbers of the textures of each kind."""

    @classmethod
    def draw(cls, size: int, seed: int, device: torch.device | str) -> Library:
        """A new set of textures."""
        canvas = Canvas.create(size, seed, device)
        drawings: list[Tensor] = []
        layers = {}
        for kind, (drawer, count) in KINDS.items():
            layers[kind] = range(len(drawings), len(drawings) + count)
            drawings += [_with_mask(drawer(canvas)) for _ in range(count)]
        level = torch.stack(drawings).clamp(0, 1)
        parts = []
        while True:
            bytes_ = (255 * level).round().to(torch.uint8).permute(0, 2, 3, 1).flatten()
            parts.append(bytes_.view(torch.int32))
            if level.shape[-1] == 1:
                break
            level = functional.avg_pool2d(level, 2)
        starts = [0]
        for part in parts[:-1]:
            starts.append(starts[-1] + len(part))
        return cls(
            torch.cat(parts), torch.tensor(starts, dtype=torch.int32).to(device), size, layers
        )

    def pick(self, kind: str, rng: random.Random) -> int:
        """The number of any texture of a kind."""
        return rng.choice(self.layers[kind])

    def look_up(self, layer: Tensor, u: Tensor, v: Tensor, spacing: Tensor) -> Tensor:
        """(..., 4) from 0 to 1 at u, v, in tiles; spacing: of the samples, in tiles.

        Interpolated in the size whose texels are nearest to the spacing.
        """
        levels = len(self.offset)
        level = torch.log2(spacing * self.size + 1e-6).round().clamp(0, levels - 1).int()
        side = torch.bitwise_right_shift(torch.full_like(level, self.size), level)
        x, y = (u - u.floor()) * side - 0.5, (v - v.floor()) * side - 0.5
        x_floor, y_floor = x.floor(), y.floor()
        along, down = (x - x_floor).unsqueeze(-1), (y - y_floor).unsqueeze(-1)
        wrap = side - 1
        left, above = x_floor.int() & wrap, y_floor.int() & wrap
        right, below = (left + 1) & wrap, (above + 1) & wrap
        start = self.offset.index_select(0, level.flatten()).view_as(level) + layer * side * side
        above, below = start + above * side, start + below * side
        upper = torch.lerp(self._fetch(above + left), self._fetch(above + right), along)
        lower = torch.lerp(self._fetch(below + left), self._fetch(below + right), along)
        return torch.lerp(upper, lower, down) * (1 / 255)

    def _fetch(self, where: Tensor) -> Tensor:
        texels = self.texels.index_select(0, where.flatten())
        return texels.unsqueeze(-1).view(torch.uint8).view(*where.shape, 4).float()


def _with_mask(drawing: Tensor) -> Tensor:
    """(4, S, S): a drawing without a mask is solid everywhere."""
    if len(drawing) == 4:
        return drawing
    return torch.cat([drawing, torch.ones_like(drawing[:1])])
