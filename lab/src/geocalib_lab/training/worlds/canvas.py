"""A square on which tileable textures are drawn, with noise and random numbers at hand."""

from __future__ import annotations

import colorsys
import math
import random
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

Colour = tuple[float, float, float]

NOISES = 10
"""Different fields of noise on a canvas; each use moves one at random."""


@dataclass(frozen=True)
class Canvas:
    """S x S texels; u grows to the right and v downwards, both from 0 to 1."""

    u: Tensor
    """(1, S)."""
    v: Tensor
    """(S, 1)."""
    noises: Tensor
    """(NOISES, S, S) of mean 0 and standard deviation 1; the first is smooth, the last rough."""
    rng: random.Random

    @classmethod
    def create(cls, size: int, seed: int, device: torch.device | str) -> Canvas:
        generator = torch.Generator().manual_seed(seed)
        centres = (torch.arange(size, device=device) + 0.5) / size
        fields = []
        for index in range(NOISES):
            gain = 0.45 + 0.45 * index / (NOISES - 1)
            fields.append(_fractal(size, gain, generator, device))
        return cls(centres[None], centres[:, None], torch.stack(fields), random.Random(seed))

    @property
    def size(self) -> int:
        """How many texels a side has."""
        return self.u.shape[1]

    def noise(self, roughness: float) -> Tensor:
        """(S, S) fractal noise; roughness from 0 to 1."""
        field = self.noises[round(roughness * (NOISES - 1))]
        shifts = self.rng.randrange(self.size), self.rng.randrange(self.size)
        return field.roll(shifts, (0, 1))

    def table(self, rows: int, columns: int) -> Tensor:
        """(rows, columns) uniform from 0 to 1."""
        generator = torch.Generator().manual_seed(self.rng.getrandbits(40))
        return torch.rand(rows, columns, generator=generator).to(self.u.device)

    def inside(self, distance: Tensor) -> Tensor:
        """1 where a distance, in sides of the square, is positive, 0 elsewhere, with a soft step
        about a texel wide."""
        return (distance * self.size / 1.5 + 0.5).clamp(0, 1)

    def rectangle(self, left: float, top: float, right: float, bottom: float) -> Tensor:
        """1 within the rectangle, 0 without."""
        return rectangle(self, self.u, self.v, left, top, right, bottom)

    def disc(self, x: float, y: float, radius: float) -> Tensor:
        """1 within the disc, 0 without."""
        return self.inside(radius - torch.sqrt((self.u - x) ** 2 + (self.v - y) ** 2))

    def flat(self, colour: Colour) -> Tensor:
        """(3, S, S) of one colour."""
        return paint_of(colour, self.u.device).expand(3, self.size, self.size)


def rectangle(
    canvas: Canvas, u: Tensor, v: Tensor, left: float, top: float, right: float, bottom: float
) -> Tensor:
    """1 where coordinates u, v lie within the rectangle, 0 elsewhere."""
    across = torch.minimum(u - left, right - u)
    return canvas.inside(torch.minimum(across, torch.minimum(v - top, bottom - v)))


def paint_of(colour: Colour, device: torch.device) -> Tensor:
    """A colour as a tensor (3, 1, 1)."""
    return torch.tensor(colour, device=device)[:, None, None]


def over(below: Tensor, colour: Tensor | Colour, mask: Tensor) -> Tensor:
    """The picture (3, S, S) with a colour on it where the mask (S, S) is 1."""
    above = colour if isinstance(colour, Tensor) else paint_of(colour, below.device)
    return torch.lerp(below, above.expand_as(below), mask.expand(below.shape[1:]))


def any_colour(rng: random.Random) -> Colour:
    """A colour a made or grown thing may have; greys, whites and earth tones are common."""
    family = rng.random()
    if family < 0.3:
        return _hsv(rng.uniform(0.05, 0.65), rng.uniform(0, 0.08), rng.uniform(0.35, 0.97))
    if family < 0.6:
        return _hsv(rng.uniform(0.02, 0.14), rng.uniform(0.15, 0.6), rng.uniform(0.3, 0.9))
    if family < 0.8:
        return _hsv(rng.random(), rng.uniform(0.1, 0.4), rng.uniform(0.5, 0.95))
    if family < 0.92:
        return _hsv(rng.random(), rng.uniform(0.5, 0.95), rng.uniform(0.35, 0.9))
    return _hsv(rng.random(), rng.uniform(0, 0.3), rng.uniform(0.14, 0.3))


def light_colour(rng: random.Random) -> Colour:
    """A pale colour, as of plaster and paper."""
    return _hsv(
        rng.choice([0.08, 0.12, 0.15, 0.55, rng.random()]),
        rng.uniform(0, 0.2),
        rng.uniform(0.7, 0.97),
    )


def wood_colour(rng: random.Random) -> Colour:
    """From pale pine to dark walnut."""
    return _hsv(rng.uniform(0.04, 0.11), rng.uniform(0.25, 0.7), rng.uniform(0.25, 0.85))


def leaf_colour(rng: random.Random) -> Colour:
    """Green, sometimes yellow or red as in autumn."""
    hue = rng.uniform(0.19, 0.36) if rng.random() < 0.8 else rng.uniform(0.02, 0.16)
    return _hsv(hue, rng.uniform(0.25, 0.65), rng.uniform(0.3, 0.65))


def grey_colour(rng: random.Random, low: float = 0.25, high: float = 0.7) -> Colour:
    """Nearly without hue, as stone, asphalt and metal."""
    return _hsv(rng.uniform(0.05, 0.65), rng.uniform(0, 0.1), rng.uniform(low, high))


def shade(colour: Colour, factor: float) -> Colour:
    """The colour, darker or lighter."""
    red, green, blue = (min(1.0, max(0.0, part * factor)) for part in colour)
    return red, green, blue


def _hsv(hue: float, saturation: float, value: float) -> Colour:
    return colorsys.hsv_to_rgb(hue, saturation, value)


def _fractal(
    size: int, gain: float, generator: torch.Generator, device: torch.device | str
) -> Tensor:
    """Octaves of smooth random fields, each ``gain`` times as strong as the coarser one."""
    total = torch.zeros(size, size, device=device)
    for octave in range(2, int(math.log2(size)) + 1):
        cells = 2**octave
        grid = torch.randn(1, 1, cells, cells, generator=generator).to(device)
        if cells < size:
            # A margin from the other side makes the field go on across the border.
            grid = functional.pad(grid, (3, 3, 3, 3), mode="circular")
            grown = functional.interpolate(
                grid, scale_factor=size // cells, mode="bicubic", align_corners=False
            )
            margin = 3 * (size // cells)
            grid = grown[..., margin:-margin, margin:-margin]
        total += gain ** (octave - 2) * grid[0, 0]
    return (total - total.mean()) / total.std()
