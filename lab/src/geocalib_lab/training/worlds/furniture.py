"""Things that stand in rooms. Each is put at a frame's origin, its back towards -z."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from geocalib_lab.training.worlds.solids import Look
from geocalib_lab.training.worlds.stage import Place

Maker = Callable[[Place, random.Random], None]


def _legs(place: Place, across: float, deep: float, tall: float, look: Look) -> None:
    thick = 0.05
    for x in (-across / 2 + thick, across / 2 - thick):
        for z in (-deep / 2 + thick, deep / 2 - thick):
            place.box((thick, tall, thick), look, x, z)


def table(place: Place, rng: random.Random) -> None:
    """A table, often with things on it and chairs around."""
    stage = place.stage
    across, deep, tall = rng.uniform(0.7, 2.2), rng.uniform(0.6, 1.1), rng.uniform(0.42, 0.8)
    board = stage.look(["plank", "marble", "plaster"], gloss=0.3)
    place.box((across, 0.04, deep), board, base=tall)
    if rng.random() < 0.7:
        _legs(place, across, deep, tall, stage.painted())
    else:
        place.pillar(0.12, tall, stage.painted())
    for _ in range(rng.randrange(4)):
        x, z = rng.uniform(-0.4, 0.4) * across, rng.uniform(-0.4, 0.4) * deep
        if rng.random() < 0.5:
            size = (rng.uniform(0.1, 0.35), rng.uniform(0.02, 0.3), rng.uniform(0.1, 0.3))
            place.at(x, z, rng.uniform(-1, 1)).box(size, stage.painted(), base=tall + 0.04)
        else:
            place.pillar(
                rng.uniform(0.06, 0.15), rng.uniform(0.1, 0.3), stage.painted(), x, z, tall + 0.04
            )
    if tall > 0.65:
        for side in (-1, 1):
            if rng.random() < 0.6:
                chair(
                    place.at(
                        rng.uniform(-0.2, 0.2),
                        side * (deep / 2 + 0.25),
                        0.1 * side + (math.pi if side > 0 else 0),
                    ),
                    rng,
                )


def chair(place: Place, rng: random.Random) -> None:
    """A chair, or a stool."""
    look = place.stage.painted()
    side = rng.uniform(0.38, 0.5)
    place.box((side, 0.05, side), place.stage.painted(), base=0.43)
    _legs(place, side, side, 0.43, look)
    if rng.random() < 0.8:
        place.leaning((side, 0.5, 0.04), look, 0, 0.72, -side / 2 - 0.03, rng.uniform(-0.2, 0.0), 0)


def sofa(place: Place, rng: random.Random) -> None:
    """A sofa or armchair with cushions."""
    stage = place.stage
    cloth = stage.look(["paper", "plaster", "paper"], tint=stage.painted().tint)
    across, deep = rng.choice([0.9, 1.6, 2.2]), rng.uniform(0.8, 1.0)
    place.box((across, 0.42, deep), cloth)
    place.box((across, 0.85, 0.2), cloth, z=-deep / 2 + 0.1)
    for x in (-across / 2 + 0.1, across / 2 - 0.1):
        place.box((0.2, 0.62, deep), cloth, x)
    for _ in range(rng.randrange(3)):
        x = rng.uniform(-0.35, 0.35) * across
        place.leaning((0.4, 0.4, 0.12), stage.look("paper"), x, 0.62, -0.15, -0.35, 0.1)


def bed(place: Place, rng: random.Random) -> None:
    """A bed with its head towards -z."""
    stage = place.stage
    across = rng.choice([0.9, 1.4, 1.8])
    wood = stage.look(["plank", "plaster"])
    place.box((across, 0.25, 2.0), wood, base=0.08)
    place.box((across - 0.04, 0.22, 1.94), stage.look("paper"), base=0.33)
    place.box((across, rng.uniform(0.7, 1.3), 0.06), wood, z=-1.0)
    for x in (-across / 4, across / 4):
        place.ball((across / 2.3, 0.2, 0.45), stage.look(["plaster", "paper"]), x, 0.6, -0.7)


def shelf(place: Place, rng: random.Random) -> None:
    """Books, drawers or a wardrobe against a wall."""
    stage = place.stage
    kind = rng.choice(["books", "books", "cabinet", "door"])
    tall = rng.uniform(1.8, 2.1) if kind == "door" else rng.uniform(0.7, 2.2)
    size = (rng.uniform(0.6, 2.2), tall, rng.uniform(0.25, 0.6))
    place.box(size, stage.look(kind), top=stage.look("plank"))
    place.box((size[0] + 0.04, 0.03, size[2] + 0.04), stage.look("plank"), base=tall)
    for _ in range(rng.randrange(3)):
        x = rng.uniform(-0.4, 0.4) * size[0]
        place.box((0.2, rng.uniform(0.1, 0.3), 0.2), stage.painted(), x, base=tall + 0.03)


def counter(place: Place, rng: random.Random) -> None:
    """Kitchen units: drawers below, cupboards above, tiles between."""
    stage = place.stage
    across = rng.uniform(1.5, 3.5)
    front = stage.look("cabinet")
    place.box((across, 0.86, 0.6), front)
    place.box((across + 0.04, 0.04, 0.64), stage.look(["marble", "plank"], gloss=0.4), base=0.86)
    place.box((across, 0.5, 0.02), stage.look(["tile", "brick"]), z=-0.29, base=0.9)
    place.box((across, 0.7, 0.35), front, z=-0.12, base=1.45)
    place.box(
        (0.6, rng.uniform(1.7, 2.0), 0.62),
        stage.look(["cabinet", "metal"], gloss=0.3),
        x=across / 2 + 0.32,
    )


def plant(place: Place, rng: random.Random) -> None:
    """Add a pot with a plant in leaf."""
    stage = place.stage
    tall = rng.uniform(0.2, 0.5)
    place.pillar(tall, tall, stage.painted())
    look = stage.look("leaves", (0.5, 0.5))
    for _ in range(rng.randrange(2, 5)):
        size = rng.uniform(0.3, 0.7)
        place.ball(
            (size, size * rng.uniform(0.7, 1.6), size),
            look,
            rng.uniform(-0.15, 0.15),
            tall + rng.uniform(0.2, 0.7),
            rng.uniform(-0.15, 0.15),
            porous=True,
        )


def floor_lamp(place: Place, rng: random.Random) -> None:
    """A stand with a shining shade."""
    tall = rng.uniform(1.2, 1.8)
    place.pillar(0.3, 0.03, place.stage.painted())
    place.pillar(0.03, tall, place.stage.painted())
    shade = place.stage.look("plaster", glow=rng.uniform(0.5, 2.5))
    place.pillar(rng.uniform(0.25, 0.45), 0.3, shade, base=tall)


def desk(place: Place, rng: random.Random) -> None:
    """A desk with a screen and papers."""
    stage = place.stage
    place.box((1.4, 0.04, 0.7), stage.look("plank", gloss=0.2), base=0.72)
    place.box((0.4, 0.7, 0.6), stage.look("cabinet"), x=0.45)
    place.box((0.04, 0.72, 0.65), stage.painted(), x=-0.66)
    place.box((0.55, 0.34, 0.03), stage.look("poster", glow=0.6), z=-0.15, base=0.9)
    place.box((0.08, 0.16, 0.06), stage.painted(), z=-0.17, base=0.75)
    place.at(-0.3, 0.1, 0.3).box((0.21, 0.01, 0.3), stage.look("sign"), base=0.76)
    chair(place.at(0.0, 0.7, math.pi + rng.uniform(-0.8, 0.8)), rng)


def clutter(place: Place, rng: random.Random) -> None:
    """Boxes in a heap, some turned, some leaning."""
    stage = place.stage
    height = 0.0
    for _ in range(rng.randrange(1, 4)):
        size = (rng.uniform(0.2, 0.7), rng.uniform(0.12, 0.5), rng.uniform(0.2, 0.6))
        look = stage.look(["plank", "plaster", "poster", "sign", "cabinet"])
        place.at(0, 0, rng.uniform(-0.6, 0.6)).box(size, look, base=height)
        height += size[1]
    if rng.random() < 0.5:
        size = (rng.uniform(0.3, 0.8), rng.uniform(0.6, 1.6), 0.04)
        lean = rng.uniform(0.1, 0.4)
        place.leaning(size, stage.painted(), 0.5, 0.5 * size[1], 0.0, -lean, rng.uniform(-0.2, 0.2))


def person(place: Place, rng: random.Random) -> None:
    """An upright figure: legs, trunk, arms and head."""
    stage = place.stage
    tall = rng.uniform(1.2, 1.95)
    trousers, coat = stage.painted(), stage.painted()
    skin = rng.choice([(0.75, 0.55, 0.42), (0.5, 0.33, 0.22), (0.85, 0.66, 0.55)])
    step = rng.uniform(0, 0.25)
    for side in (-1, 1):
        place.pillar(0.15, 0.5 * tall, trousers, side * 0.09, 0, tilt=side * step)
        place.pillar(0.09, 0.36 * tall, coat, side * 0.25, 0, base=0.46 * tall, lean=side * 0.1)
    place.ball((0.46, 0.46 * tall, 0.3), coat, 0, 0.66 * tall)
    place.ball((0.18, 0.14 * tall, 0.2), stage.look("plaster", tint=skin), 0, 0.93 * tall)


def column(place: Place, rng: random.Random) -> None:
    """A round or square column to any ceiling, with base and capital."""
    stage = place.stage
    wide = rng.uniform(0.25, 0.8)
    look = stage.look(["marble", "plaster", "brick", "tile"])
    if rng.random() < 0.5:
        place.pillar(wide, 9.0, look)
    else:
        place.box((wide, 9.0, wide), look)
    place.box((wide * 1.3, 0.2, wide * 1.3), look)


def stairs(place: Place, rng: random.Random) -> None:
    """Steps up along +z, with a landing and a slanted rail."""
    stage = place.stage
    steps, rise, run = rng.randrange(4, 10), rng.uniform(0.14, 0.19), rng.uniform(0.25, 0.4)
    across = rng.uniform(0.9, 4.0)
    tread, front = (
        stage.look(["plank", "marble", "tile", "asphalt"]),
        stage.look(["plaster", "plank", "marble"]),
    )
    for step in range(steps):
        deep = run * (steps - step)
        place.box((across, rise, deep), front, 0, run * step + deep / 2, rise * step, top=tread)
    slope = -((rise**2 + run**2) ** 0.5) * steps
    angle = math.atan(rise / run)
    for side in (-1, 1):
        x = side * (across / 2 - 0.05)
        place.leaning(
            (0.05, 0.05, -slope),
            stage.painted(),
            x,
            rise * steps / 2 + 0.95,
            run * steps / 2,
            angle,
            0,
        )
        for at in (0, steps - 1):
            place.box((0.04, 0.9, 0.04), stage.painted(), x, run * (at + 0.5), rise * (at + 0.5))


def ramp(place: Place, rng: random.Random) -> None:
    """A slanted board, walkway or roof on the floor."""
    long, angle = rng.uniform(1.5, 6), rng.uniform(0.1, 0.45)
    look = place.stage.look(["plank", "asphalt", "metal"])
    place.leaning(
        (rng.uniform(0.8, 3), 0.12, long), look, 0, 0.5 * long * math.sin(angle), 0, angle, 0
    )


AGAINST_WALL: tuple[Maker, ...] = (
    shelf,
    shelf,
    sofa,
    bed,
    counter,
    desk,
    plant,
    floor_lamp,
    clutter,
)
FREE_STANDING: tuple[Maker, ...] = (table, table, chair, sofa, clutter, person, column, plant, desk)
