"""Tileable textures of materials. Each draws (3, S, S) colours, or (4, S, S) with a mask of what
is solid, on a canvas, with parameters of its own choice."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from geocalib_lab.training.worlds.canvas import (
    Canvas,
    Colour,
    any_colour,
    grey_colour,
    leaf_colour,
    light_colour,
    over,
    paint_of,
    shade,
    wood_colour,
)


def lay(
    canvas: Canvas, rows: int, columns: int, gap: float, shift: float, lively: float
) -> tuple[Tensor, Tensor]:
    """Stones in rows: how far inside a stone (S, S), in sides of the square, and each stone's
    brightness (S, S) about 1. Every second row is moved by ``shift`` stones."""
    row = (canvas.v * rows).floor()
    across = canvas.u * columns + shift * (row % 2)
    column = across.floor()
    beside = 0.5 - (across - column - 0.5).abs()
    above = 0.5 - (canvas.v * rows - row - 0.5).abs()
    depth = torch.minimum(beside / columns, (above / rows).expand_as(beside)) - gap / 2
    tones = canvas.table(rows, columns)
    tone = tones[row.long().expand_as(column), column.long() % columns]
    return depth, 1 + lively * (tone - 0.5)


def _stones(canvas: Canvas, rows: int, columns: int, colour: Colour, joint: Colour) -> Tensor:
    rng = canvas.rng
    gap = rng.uniform(0.04, 0.14) / max(rows, columns)
    shift = rng.choice([0.0, 0.5, 0.5, 0.33])
    depth, tone = lay(canvas, rows, columns, gap, shift, rng.uniform(0.1, 0.7))
    grain = 1 + rng.uniform(0.05, 0.2) * canvas.noise(rng.uniform(0.6, 1))
    stones = paint_of(colour, canvas.u.device) * (tone * grain)
    joints = paint_of(joint, canvas.u.device) * (1 + 0.1 * canvas.noise(0.9))
    # A dark rim inside each stone looks like a rounded edge.
    rim = 1 - 0.35 * (1 - (depth / (0.15 / rows)).clamp(0, 1))
    return over(joints.expand(3, canvas.size, canvas.size), stones * rim, canvas.inside(depth))


def brick(canvas: Canvas) -> Tensor:
    """Bricks or blocks in mortar."""
    rng = canvas.rng
    rows = rng.choice([8, 12, 16])
    return _stones(canvas, rows, rows // rng.choice([2, 2, 4]), any_colour(rng), grey_colour(rng))


def tile(canvas: Canvas) -> Tensor:
    """Square or oblong tiles, sometimes in two colours."""
    rng = canvas.rng
    count = rng.choice([2, 4, 4, 6, 8])
    first = _stones(canvas, count, count, any_colour(rng), grey_colour(rng, 0.3, 0.9))
    if rng.random() < 0.5:
        return first
    odd = ((canvas.u * count).floor() + (canvas.v * count).floor()) % 2
    return over(first, first * paint_of(shade(any_colour(rng), 1.2), first.device), odd)


def plank(canvas: Canvas) -> Tensor:
    """Boards with grain along u."""
    rng = canvas.rng
    rows, columns = rng.choice([4, 6, 8, 12]), rng.choice([1, 2, 3])
    depth, tone = lay(
        canvas, rows, columns, rng.uniform(0.002, 0.006), rng.random(), rng.uniform(0.1, 0.6)
    )
    rings = torch.sin(
        (canvas.v * rows * rng.uniform(1, 4) + 0.25 * canvas.noise(0.2) + 3 * tone) * 2 * math.pi
    )
    colour = paint_of(wood_colour(rng), canvas.u.device)
    wood = colour * (tone * (1 + 0.08 * rings + 0.07 * _streaks(canvas)))
    return over(wood * 0.35, wood, canvas.inside(depth))


def _streaks(canvas: Canvas) -> Tensor:
    """Noise drawn out eightfold along u."""
    field = canvas.noise(0.9)
    return field[:, : canvas.size // 8].repeat_interleave(8, dim=1)


def plaster(canvas: Canvas) -> Tensor:
    """Painted wall, with some dirt."""
    rng = canvas.rng
    dirt = rng.uniform(0.0, 0.07) * canvas.noise(rng.uniform(0.2, 1))
    dirt = dirt + rng.uniform(0.01, 0.06) * canvas.noise(1.0)
    colour = light_colour(rng) if rng.random() < 0.6 else any_colour(rng)
    return paint_of(colour, canvas.u.device) * (1 + dirt)


def paper(canvas: Canvas) -> Tensor:
    """Wallpaper or cloth: stripes, checks, dots or a weave."""
    rng = canvas.rng
    first = light_colour(rng) if rng.random() < 0.6 else any_colour(rng)
    second = any_colour(rng)
    count = rng.choice([2, 4, 6, 8])
    x, y = canvas.u * count, canvas.v * count
    style = rng.randrange(5)
    if style == 0:
        mask = canvas.inside(((x % 1 - 0.5).abs() - rng.uniform(0.1, 0.4)) / count)
    elif style == 1:
        mask = 0.5 * canvas.inside(((x % 1 - 0.5).abs() - 0.25) / count) + 0.5 * canvas.inside(
            ((y % 1 - 0.5).abs() - 0.25) / count
        )
    elif style == 2:
        moved = x + 0.5 * (y.floor() % 2)
        apart = torch.sqrt((moved % 1 - 0.5) ** 2 + (y % 1 - 0.5) ** 2)
        mask = canvas.inside((rng.uniform(0.15, 0.4) - apart) / count)
    elif style == 3:
        wave = torch.sin(2 * math.pi * x) + torch.sin(2 * math.pi * (y + 0.2 * canvas.noise(0.0)))
        mask = canvas.inside((wave - rng.uniform(-0.5, 1)) / (7 * count))
    else:
        mask = canvas.inside(((y % 1 - 0.5).abs() - rng.uniform(0.1, 0.4)) / count)
    mask = mask.expand(canvas.size, canvas.size) * rng.uniform(0.3, 1)
    weave = 1 + 0.05 * torch.sin(2 * math.pi * 64 * canvas.u) * torch.sin(
        2 * math.pi * 64 * canvas.v
    )
    cloth = over(canvas.flat(first), second, mask) * weave
    return cloth * (1 + rng.uniform(0.01, 0.05) * canvas.noise(0.9))


def gravel(canvas: Canvas) -> Tensor:
    """Pebbles, cobbles or flagstones: cells about scattered points."""
    rng = canvas.rng
    count = rng.choice([6, 10, 16, 24])
    nearest, second, tone = _cells(canvas, count)
    stone = paint_of(grey_colour(rng) if rng.random() < 0.6 else any_colour(rng), canvas.u.device)
    body = stone * (0.7 + 0.6 * tone) * (1 + 0.12 * canvas.noise(0.9))
    joint = stone * rng.uniform(0.3, 0.6)
    mask = ((second - nearest) * rng.uniform(3, 10) - 0.2).clamp(0, 1)
    return torch.lerp(joint.expand_as(body), body, mask)


def _cells(canvas: Canvas, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Distances (S, S) to the nearest and second nearest of count x count scattered points, in
    their mean spacing, and a number (S, S) from 0 to 1 of the nearest."""
    x, y = (canvas.u * count).expand(canvas.size, -1), (canvas.v * count).expand(-1, canvas.size)
    column, row = x.floor().long(), y.floor().long()
    jitter_x, jitter_y, tones = (canvas.table(count, count) for _ in range(3))
    nearest = torch.full_like(x, 9.0)
    second, tone = nearest.clone(), torch.zeros_like(x)
    for i in (-1, 0, 1):
        for j in (-1, 0, 1):
            at = (row + i) % count, (column + j) % count
            apart = torch.hypot(column + j + jitter_x[at] - x, row + i + jitter_y[at] - y)
            second = torch.minimum(second, torch.maximum(nearest, apart))
            tone = torch.where(apart < nearest, tones[at], tone)
            nearest = torch.minimum(nearest, apart)
    return nearest, second, tone


def grass(canvas: Canvas) -> Tensor:
    """Short blades, with bare and lush patches."""
    rng = canvas.rng
    blades = canvas.noise(1.0)
    patches = canvas.noise(0.6)
    green, earth = leaf_colour(rng), shade(wood_colour(rng), 0.7)
    lush = paint_of(green, canvas.u.device) * (1 + 0.22 * blades)
    bare = paint_of(earth, canvas.u.device) * (1 + 0.2 * blades)
    return torch.lerp(lush, bare, (0.4 * patches - rng.uniform(0.2, 0.8)).clamp(0, 1))


def asphalt(canvas: Canvas) -> Tensor:
    """Fine grain with stains and cracks; also concrete."""
    rng = canvas.rng
    crack = (canvas.noise(0.3).abs() * 30).clamp(0, 1)
    tone = 1 + rng.uniform(0.06, 0.15) * canvas.noise(1.0) + 0.03 * canvas.noise(0.4)
    crack = 1 - rng.uniform(0, 0.5) * (1 - crack)
    return paint_of(grey_colour(rng, 0.25, 0.75), canvas.u.device) * (tone * crack)


def sand(canvas: Canvas) -> Tensor:
    """Sand, soil or snow, with ripples."""
    rng = canvas.rng
    ripple = torch.sin(2 * math.pi * (rng.choice([4, 8, 12]) * canvas.v + 0.3 * canvas.noise(0.2)))
    tone = 1 + rng.uniform(0, 0.1) * ripple + 0.08 * canvas.noise(0.9) + 0.06 * canvas.noise(0.3)
    colour = rng.choice([light_colour(rng), wood_colour(rng), (0.9, 0.92, 0.95)])
    return paint_of(colour, canvas.u.device) * tone


def metal(canvas: Canvas) -> Tensor:
    """Corrugated or ribbed sheet, with stains running down."""
    rng = canvas.rng
    ribs = rng.choice([6, 8, 12, 16])
    wave = torch.sin(2 * math.pi * ribs * canvas.u)
    profile = wave if rng.random() < 0.5 else (wave * 6).clamp(-1, 1)
    tone = 1 + 0.18 * profile + 0.1 * _streaks(canvas).T + 0.04 * canvas.noise(0.9)
    return paint_of(any_colour(rng), canvas.u.device) * tone


def marble(canvas: Canvas) -> Tensor:
    """The texture of veined stone."""
    rng = canvas.rng
    vein = (canvas.noise(0.3).abs() * rng.uniform(2, 8)).clamp(0, 1)
    stone = canvas.flat(light_colour(rng) if rng.random() < 0.6 else any_colour(rng))
    return over(stone, any_colour(rng), 0.6 * (1 - vein)) * (1 + 0.03 * canvas.noise(0.9))


def bark(canvas: Canvas) -> Tensor:
    """A rough texture, cracked along v."""
    rng = canvas.rng
    ridges = _streaks(canvas).T
    tone = 1 + 0.3 * ridges + 0.15 * canvas.noise(0.9)
    return paint_of(shade(wood_colour(rng), 0.8), canvas.u.device) * tone


def roof(canvas: Canvas) -> Tensor:
    """Rows of overlapping roof tiles."""
    rng = canvas.rng
    rows = rng.choice([6, 8, 10])
    depth, tone = lay(canvas, rows, rows, 0.0, rng.choice([0.0, 0.5]), rng.uniform(0.1, 0.5))
    slope = 0.6 + 0.4 * (canvas.v * rows % 1)
    bulge = 1 - 0.3 * (2 * (canvas.u * rows % 1) - 1) ** 2
    tone = tone * slope * bulge * (1 + 0.1 * canvas.noise(0.8)) * (0.8 + 0.2 * canvas.inside(depth))
    colour = rng.choice([(0.62, 0.3, 0.2), (0.35, 0.33, 0.34), any_colour(rng)])
    return paint_of(colour, canvas.u.device) * tone


def noise(canvas: Canvas) -> Tensor:
    """Fractal noise about one half, in three independent channels: detail for every surface."""
    channels = [0.5 + 0.16 * canvas.noise(rough) for rough in (0.85, 0.6, 1.0)]
    return torch.stack(channels)


def cloud(canvas: Canvas) -> Tensor:
    """Three fields of smoother noise about one half, for clouds, waves and patches."""
    return torch.stack([0.5 + 0.18 * canvas.noise(rough) for rough in (0.35, 0.15, 0.55)])


def leaves(canvas: Canvas) -> Tensor:
    """Foliage with gaps between the leaves."""
    rng = canvas.rng
    nearest, _, tone = _cells(canvas, rng.choice([12, 18, 26]))
    colour = paint_of(leaf_colour(rng), canvas.u.device)
    body = colour * (0.45 + 0.9 * tone) * (1.15 - 0.6 * nearest)
    clumps = 0.5 + 0.3 * canvas.noise(0.4) + 0.35 * (0.55 - nearest)
    return torch.cat([body, (4 * (clumps - rng.uniform(0.1, 0.4)) + 0.5).clamp(0, 1)[None]])
