"""Textures that are pictures of made things: facades, windows, doors, posters, signs, books,
fences. Drawn as the patterns are."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from geocalib_lab.training.worlds import patterns
from geocalib_lab.training.worlds.canvas import (
    Canvas,
    any_colour,
    grey_colour,
    light_colour,
    over,
    paint_of,
    rectangle,
    shade,
    wood_colour,
)

BAYS = 2
"""Windows across and down in the texture of a facade."""


def facade(canvas: Canvas) -> Tensor:
    """BAYS x BAYS windows in a wall, with frames, sills and the shadow of their reveals."""
    rng = canvas.rng
    wall = rng.choice([patterns.brick, patterns.plaster, patterns.plaster, patterns.asphalt])(
        canvas
    )
    u, v = canvas.u * BAYS % 1, canvas.v * BAYS % 1
    # The soft steps of a bay are BAYS times finer than the square's.
    half, top, bottom = rng.uniform(0.14, 0.42), rng.uniform(0.12, 0.3), rng.uniform(0.68, 0.95)
    left, right = 0.5 - half, 0.5 + half

    def box(x0: float, y0: float, x1: float, y1: float) -> Tensor:
        return rectangle(canvas, u, v, x0, y0, x1, y1)

    trim, frame = light_colour(rng), rng.choice([light_colour(rng), any_colour(rng)])
    if rng.random() < 0.5:
        edge = rng.uniform(0.02, 0.06)
        wall = over(wall, trim, box(left - edge, top - edge, right + edge, bottom + edge))
    if rng.random() < 0.3:
        wing = (half * 0.9, any_colour(rng))
        slats = shade(wing[1], 0.7)
        for x0, x1 in ((left - wing[0], left - 0.01), (right + 0.01, right + wing[0])):
            wall = over(wall, wing[1], box(x0, top, x1, bottom))
            gaps = canvas.inside((v * 24 % 1 - 0.7) / 24) * box(x0 + 0.02, top, x1 - 0.02, bottom)
            wall = over(wall, slats, gaps)
    if rng.random() < 0.4:
        wall = over(wall, trim, box(0, 0.0, 1, rng.uniform(0.02, 0.06)))
    wall = over(wall, frame, box(left, top, right, bottom))
    panes, rows = rng.choice([1, 2, 2, 3]), rng.choice([1, 1, 2, 3])
    bar = rng.uniform(0.012, 0.03)
    lit = canvas.table(BAYS, BAYS)
    bay = lit[(canvas.v * BAYS).long().expand(-1, canvas.size), (canvas.u * BAYS).long()]
    glass = _glass(canvas, bay, v)
    for i in range(panes):
        for j in range(rows):
            x0 = left + (right - left) * i / panes + bar
            x1 = left + (right - left) * (i + 1) / panes - bar
            y0 = top + (bottom - top) * j / rows + bar
            y1 = top + (bottom - top) * (j + 1) / rows - bar
            wall = over(wall, glass, box(x0, y0, x1, y1))
    reveal = rng.uniform(0.01, 0.05)
    shadow = torch.maximum(
        box(left, top, right, top + reveal), box(left, top, left + reveal * 0.7, bottom)
    )
    wall = wall * (1 - 0.6 * shadow)
    sill = box(left - 0.04, bottom, right + 0.04, bottom + 0.025)
    wall = wall * (1 - 0.4 * box(left - 0.03, bottom, right + 0.05, bottom + 0.05))
    return over(wall, shade(trim, 1.1), sill)


def _glass(canvas: Canvas, bay: Tensor, v: Tensor) -> Tensor:
    """Dark panes that mirror some sky, some with curtains."""
    rng = canvas.rng
    dark = paint_of(shade((0.35, 0.42, 0.5), rng.uniform(0.4, 1.3)), canvas.u.device)
    sheen = 0.6 + 0.5 * (1 - v) + 0.25 * bay + 0.08 * canvas.noise(0.1)
    folds = 0.85 + 0.1 * torch.sin(canvas.u * 2 * math.pi * 40)
    curtain = paint_of(light_colour(rng), canvas.u.device) * folds * 0.75
    return torch.lerp(dark * sheen, curtain.expand(3, canvas.size, -1), (bay > 0.6).float())


def shopfront(canvas: Canvas) -> Tensor:
    """A ground floor: large panes, a door and a band for the sign."""
    rng = canvas.rng
    picture = over(canvas.flat(any_colour(rng)), any_colour(rng), canvas.rectangle(0, 0, 1, 0.2))
    picture = over(picture, light_colour(rng), text(canvas, 0.1, 0.04, 0.9, 0.16, 1))
    goods = poster(canvas) * 0.7
    for left, right in ((0.04, 0.36), (0.4, 0.6), (0.64, 0.96)):
        bottom = 0.98 if left == 0.4 else 0.86
        picture = over(
            picture, shade(any_colour(rng), 0.5), canvas.rectangle(left, 0.24, right, bottom)
        )
        pane = canvas.rectangle(left + 0.015, 0.255, right - 0.015, bottom - 0.015)
        picture = over(picture, goods, pane)
    return picture * (1 + 0.03 * canvas.noise(0.9))


def window(canvas: Canvas) -> Tensor:
    """A bright view of the outside behind frame and bars."""
    rng = canvas.rng
    horizon = rng.uniform(0.45, 0.8)
    sky = torch.lerp(
        paint_of((0.6, 0.75, 0.95), canvas.u.device),
        paint_of((0.95, 0.95, 0.93), canvas.u.device),
        (canvas.v / horizon).clamp(0, 1).expand(canvas.size, canvas.size),
    )
    land = paint_of(any_colour(rng), canvas.u.device) * (0.7 + 0.1 * canvas.noise(0.7))
    view = over(sky, land, canvas.inside(canvas.v - horizon - 0.03 * canvas.noise(0.5)))
    for _ in range(rng.randrange(4)):
        x = rng.uniform(0, 0.9)
        block = canvas.rectangle(x, rng.uniform(0.2, horizon), x + rng.uniform(0.1, 0.3), 0.95)
        view = over(view, shade(any_colour(rng), 0.8), block)
    columns, rows = rng.choice([1, 2, 2, 3]), rng.choice([1, 1, 2, 3])
    bar = rng.uniform(0.012, 0.03)
    picture = canvas.flat(light_colour(rng) if rng.random() < 0.8 else wood_colour(rng)) * 0.8
    for i in range(columns):
        for j in range(rows):
            pane = canvas.rectangle(
                i / columns + bar, j / rows + bar, (i + 1) / columns - bar, (j + 1) / rows - bar
            )
            picture = over(picture, view, pane)
    return picture


def door(canvas: Canvas) -> Tensor:
    """A door leaf with panels and a handle."""
    rng = canvas.rng
    colour = rng.choice([wood_colour(rng), light_colour(rng), any_colour(rng)])
    picture = canvas.flat(colour) * (1 + 0.04 * canvas.noise(0.8))
    columns, rows = rng.choice([1, 2]), rng.choice([1, 2, 3])
    for i in range(columns):
        for j in range(rows):
            inset = (0.1 if columns == 1 else 0.05, 0.03)
            x0, x1 = (
                0.06 + 0.88 * i / columns + inset[0],
                0.06 + 0.88 * (i + 1) / columns - inset[0],
            )
            y0, y1 = 0.03 + 0.94 * j / rows + inset[1], 0.03 + 0.94 * (j + 1) / rows - inset[1]
            picture = over(picture, shade(colour, 0.6), canvas.rectangle(x0, y0, x1, y1))
            lit = canvas.rectangle(x0 + 0.02, y0 + 0.008, x1, y1)
            picture = over(picture, shade(colour, 1.15), lit)
            face = canvas.rectangle(x0 + 0.02, y0 + 0.008, x1 - 0.02, y1 - 0.008)
            picture = over(picture, shade(colour, 0.95), face)
    return over(picture, (0.75, 0.72, 0.6), canvas.disc(0.9, 0.52, 0.03))


def text(
    canvas: Canvas, left: float, top: float, right: float, bottom: float, lines: int
) -> Tensor:
    """(S, S) marks like words in lines, made of strokes."""
    rng = canvas.rng
    pitch = (bottom - top) / lines
    letters = max(3, round((right - left) / (0.6 * pitch)))
    line = ((canvas.v - top) / pitch).floor()
    letter = ((canvas.u - left) / (right - left) * letters).floor()
    fx = (canvas.u - left) / (right - left) * letters - letter
    fy = (canvas.v - top) / pitch - line
    inside = canvas.rectangle(left, top, right, bottom)
    column, row = (4 * fx).long().clamp(0, 3), (6 * fy).long().clamp(0, 5)
    glyphs = canvas.table(24, 24) > 0.45
    code = (letter.long() * 7 + line.long() * 13) % 11
    ink = glyphs[(row + code) % 24, (column + 2 * code).clamp(min=0) % 24]
    spaces = canvas.table(lines, letters) > 0.2
    here = spaces[line.long().clamp(0, lines - 1), letter.long().clamp(0, letters - 1)]
    body = (column < 3) & (row > 0) & (row < 5)
    return inside * (ink & here & body).float() if rng.random() < 0.9 else inside * body.float()


def poster(canvas: Canvas) -> Tensor:
    """A picture of discs, bars, blots and words."""
    rng = canvas.rng
    start, end = (paint_of(any_colour(rng), canvas.u.device) for _ in range(2))
    slope = canvas.v if rng.random() < 0.6 else canvas.u
    picture = torch.lerp(start, end, slope.expand(canvas.size, canvas.size))
    for _ in range(rng.randrange(2, 9)):
        colour, kind = any_colour(rng), rng.randrange(4)
        x, y, reach = rng.random(), rng.random(), rng.uniform(0.05, 0.35)
        if kind == 0:
            picture = over(picture, colour, canvas.disc(x, y, reach))
        elif kind == 1:
            bar = canvas.rectangle(x - reach, y - rng.uniform(0.02, 0.3), x + reach, y)
            picture = over(picture, colour, bar)
        elif kind == 2:
            side = canvas.u - x + rng.uniform(-2, 2) * (canvas.v - y)
            picture = over(picture, colour, canvas.inside(reach / 3 - side.abs()))
        else:
            picture = over(picture, colour, canvas.inside((canvas.noise(0.3) - 0.7) * 0.05))
    if rng.random() < 0.6:
        words = text(canvas, 0.1, rng.uniform(0.05, 0.6), 0.9, 0.95, rng.randrange(2, 9))
        picture = over(picture, any_colour(rng), words)
    return picture


def sign(canvas: Canvas) -> Tensor:
    """A plate with a rim and large words."""
    rng = canvas.rng
    ground, ink = any_colour(rng), rng.choice([(0.95, 0.95, 0.95), (0.08, 0.08, 0.08)])
    picture = over(canvas.flat(ink), ground, canvas.rectangle(0.03, 0.03, 0.97, 0.97))
    words = text(canvas, 0.1, 0.15, 0.9, 0.85, rng.choice([1, 2, 3]))
    return over(picture, ink, words) * (1 + 0.04 * canvas.noise(0.8))


def books(canvas: Canvas) -> Tensor:
    """Shelves full of spines of different heights and colours."""
    rng = canvas.rng
    rows, columns = rng.choice([3, 4, 5, 6]), rng.choice([16, 24, 32])
    wood = wood_colour(rng) if rng.random() < 0.7 else light_colour(rng)
    row, column = (canvas.v * rows).floor(), (canvas.u * columns).floor()
    at = row.long().expand(-1, canvas.size), column.long().expand(canvas.size, -1)
    tall, tone = canvas.table(rows, columns)[at], canvas.table(rows, columns)[at]
    palette = torch.tensor([any_colour(rng) for _ in range(columns)], device=canvas.u.device)
    spines = palette[(tone * (columns - 1)).long()].permute(2, 0, 1)
    fx, fy = canvas.u * columns % 1, canvas.v * rows % 1
    round_back = 1 - 0.5 * (2 * fx - 1) ** 4
    standing = (fy > 0.12 + 0.4 * tall * (tone > 0.1)) & (fy < 0.93)
    picture = canvas.flat(shade(wood, 0.4)) * (0.6 + 0.4 * fy)
    picture = over(picture, spines * round_back, standing.float())
    label = ((fy - 0.6).abs() < 0.05 + 0.05 * tall) & ((fx - 0.5).abs() < 0.35)
    picture = over(picture, (0.85, 0.8, 0.65), (label & standing & (tone > 0.5)).float())
    board = (fy > 0.93) | (((canvas.u * 2) % 1 - 0.5).abs() > 0.485)
    return over(picture, wood, board.float().expand(canvas.size, canvas.size))


def cabinet(canvas: Canvas) -> Tensor:
    """Fronts of drawers and cupboards with handles."""
    rng = canvas.rng
    rows, columns = rng.choice([1, 2, 3, 4]), rng.choice([2, 3, 4])
    colour = rng.choice([wood_colour(rng), light_colour(rng), any_colour(rng)])
    depth, tone = patterns.lay(canvas, rows, columns, 0.008, 0.0, 0.06)
    grain = 1 + 0.04 * canvas.noise(0.8)
    body = paint_of(colour, canvas.u.device) * (tone * grain)
    picture = over(body * 0.3, body, canvas.inside(depth))
    fx, fy = canvas.u * columns % 1, canvas.v * rows % 1
    handle = ((fx - 0.5).abs() < 0.2) & ((fy - 0.12).abs() < 0.02)
    return over(picture, grey_colour(rng, 0.2, 0.9), handle.float())


def curtain(canvas: Canvas) -> Tensor:
    """A picture of cloth in vertical folds."""
    rng = canvas.rng
    folds = torch.sin(2 * math.pi * (rng.choice([5, 8, 11]) * canvas.u) + 0.6 * canvas.noise(0.0))
    cloth = patterns.paper(canvas) if rng.random() < 0.4 else canvas.flat(any_colour(rng))
    return cloth * (0.85 + 0.2 * folds + 0.03 * canvas.noise(0.9))


def carpet(canvas: Canvas) -> Tensor:
    """A rug: borders around a field with a mirrored ornament."""
    rng = canvas.rng
    x, y = (canvas.u - 0.5).abs(), (canvas.v - 0.5).abs()
    rim = torch.maximum(x.expand(canvas.size, -1), y.expand(-1, canvas.size))
    picture = canvas.flat(any_colour(rng))
    for _ in range(rng.randrange(1, 6)):
        kx, ky = rng.choice([4, 6, 8, 12]), rng.choice([4, 6, 8, 12])
        wave = torch.cos(2 * math.pi * kx * x) + torch.cos(2 * math.pi * ky * y)
        picture = over(picture, any_colour(rng), canvas.inside((wave - rng.uniform(0, 1.4)) / 60))
    for _ in range(rng.randrange(1, 4)):
        inner = rng.uniform(0.34, 0.49)
        band = canvas.inside(rim - inner) * canvas.inside(inner + rng.uniform(0.01, 0.05) - rim)
        picture = over(picture, any_colour(rng), band)
    return picture * (1 + 0.06 * canvas.noise(1.0))


def road(canvas: Canvas) -> Tensor:
    """Asphalt with edge lines along v and dashes in the middle."""
    rng = canvas.rng
    paint = rng.choice([(0.9, 0.9, 0.88), (0.9, 0.9, 0.88), (0.85, 0.7, 0.2)])
    marks = canvas.rectangle(0.485, 0.2, 0.515, rng.choice([0.5, 0.7, 1.1]))
    if rng.random() < 0.6:
        marks = marks + canvas.rectangle(0.04, -1, 0.065, 2) + canvas.rectangle(0.935, -1, 0.96, 2)
    worn = (0.9 + 0.2 * canvas.noise(0.7)).clamp(0, 1)
    return over(patterns.asphalt(canvas), paint, marks.clamp(0, 1) * worn)


def crossing(canvas: Canvas) -> Tensor:
    """A picture of broad stripes on asphalt."""
    stripes = canvas.inside((0.25 - (canvas.u * 8 % 1 - 0.5).abs()) / 8)
    worn = (0.9 + 0.2 * canvas.noise(0.7)).clamp(0, 1)
    return over(patterns.asphalt(canvas), (0.9, 0.9, 0.88), stripes * worn)


def fence(canvas: Canvas) -> Tensor:
    """Pickets, bars or wire with gaps between."""
    rng = canvas.rng
    count = rng.choice([4, 8, 12])
    bars = canvas.inside((rng.uniform(0.08, 0.4) - (canvas.u * count % 1 - 0.5).abs()) / count)
    rails = canvas.rectangle(-1, 0.08, 2, 0.15) + canvas.rectangle(-1, 0.8, 2, 0.87)
    if rng.random() < 0.25:
        mesh = [(canvas.u * count + sign * canvas.v * count) % 1 for sign in (1, -1)]
        bars = canvas.inside((0.12 - (torch.stack(mesh) - 0.5).abs().amin(0)) / count)
    colour = rng.choice([wood_colour(rng), light_colour(rng), grey_colour(rng, 0.12, 0.5)])
    body = canvas.flat(colour) * (1 + 0.1 * canvas.noise(0.9))
    mask = (bars + rails).clamp(0, 1).expand(canvas.size, canvas.size)
    return torch.cat([body, mask[None]])
