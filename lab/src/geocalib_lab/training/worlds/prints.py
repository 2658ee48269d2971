"""Textures of what lies on desks. Drawn as the patterns are."""

from __future__ import annotations

from torch import Tensor

from geocalib_lab.training.worlds import patterns
from geocalib_lab.training.worlds.canvas import (
    Canvas,
    any_colour,
    grey_colour,
    light_colour,
    over,
    paint_of,
    shade,
)
from geocalib_lab.training.worlds.pictures import poster, text


def keys(canvas: Canvas) -> Tensor:
    """Rows of keys on a plate, as of a keyboard, a telephone or a calculator."""
    rng = canvas.rng
    rows, columns = rng.choice([(5, 14), (6, 18), (5, 4)])
    gap = rng.uniform(0.004, 0.012)
    depth, tone = patterns.lay(canvas, rows, columns, gap, 0.0, 0.04)
    plate = grey_colour(rng, 0.08, 0.8)
    cap = rng.choice([light_colour(rng), grey_colour(rng, 0.08, 0.3), shade(plate, 1.2)])
    ink = (0.9, 0.9, 0.9) if sum(cap) < 1.4 else (0.15, 0.15, 0.18)
    picture = over(
        canvas.flat(shade(plate, 0.5)),
        paint_of(cap, canvas.u.device) * tone,
        canvas.inside(depth),
    )
    fx, fy = canvas.u * columns % 1, canvas.v * rows % 1
    letter = ((fx - 0.4).abs() < 0.12) & ((fy - 0.4).abs() < 0.14)
    picture = over(picture, ink, 0.8 * letter.float())
    if rng.random() < 0.7:
        # The bar to put spaces with.
        picture = over(picture, cap, canvas.rectangle(0.28, 1 - 0.8 / rows, 0.62, 1 - 0.2 / rows))
    return picture * (1 + 0.03 * canvas.noise(0.9))


def page(canvas: Canvas) -> Tensor:
    """A printed sheet: lines of words, a heading, often a picture or a table."""
    rng = canvas.rng
    picture = canvas.flat((0.95, 0.95, rng.uniform(0.85, 0.96)))
    ink = rng.choice([(0.1, 0.1, 0.12), (0.1, 0.1, 0.12), any_colour(rng)])
    picture = over(picture, ink, text(canvas, 0.12, 0.06, rng.uniform(0.4, 0.85), 0.13, 1))
    top, columns = 0.2, rng.choice([1, 1, 2])
    if rng.random() < 0.5:
        bottom = rng.uniform(0.35, 0.6)
        frame = canvas.rectangle(rng.uniform(0.1, 0.4), top, rng.uniform(0.6, 0.9), bottom)
        picture = over(picture, poster(canvas), frame)
        top = bottom + 0.04
    lines = max(3, round((0.92 - top) / rng.uniform(0.025, 0.05)))
    for column in range(columns):
        left = 0.1 + 0.8 * column / columns
        words = text(canvas, left, top, left + 0.8 / columns - 0.03, 0.92, lines)
        picture = over(picture, shade(ink, 1.5), 0.85 * words)
    return picture * (1 + 0.01 * canvas.noise(0.9))
