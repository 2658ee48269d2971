"""Small things that lie and stand on tables, shelves and floors. Each is put at a frame's origin
on a surface at a height, its front towards +z."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from geocalib_lab.training.worlds.solids import Look, Shape, Vector, turned
from geocalib_lab.training.worlds.stage import Place, Stage

Thing = Callable[[Place, random.Random, float], None]

TRIES_EACH = 8
"""Spots that are tried for each thing."""


def scatter(
    place: Place,
    rng: random.Random,
    size: tuple[float, float],
    base: float,
    count: int,
    things: Sequence[tuple[Thing, float]],
) -> None:
    """Up to so many things, turned at will, on a surface (across, deep) at a height about a frame.

    things: each with the radius, in metres, that it keeps to itself; flat ones keep little, so
    that others stand on them.
    """
    tidy = rng.choice([0.1, 0.5, 6.3, 6.3])
    taken: list[tuple[float, float, float]] = []
    for _ in range(count):
        thing, radius = rng.choice(things)
        half_x, half_z = (max(0.0, side / 2 - 0.7 * radius) for side in size)
        for _ in range(TRIES_EACH):
            x, z = rng.uniform(-half_x, half_x), rng.uniform(-half_z, half_z)
            if all(math.hypot(x - a, z - b) > 0.75 * (radius + c) for a, b, c in taken):
                taken.append((x, z, radius))
                thing(place.at(x, z, rng.uniform(-tidy, tidy)), rng, base)
                break


def dark(stage: Stage, gloss: float = 0.0) -> Look:
    """The paint of black or grey plastic."""
    tone = stage.rng.uniform(0.02, 0.25)
    return stage.look("plaster", tint=(tone, tone, tone * 1.1), gloss=gloss)


def screen(place: Place, rng: random.Random, base: float) -> None:
    """A monitor on its foot, on or off, tilted a little."""
    stage = place.stage
    case = dark(stage) if rng.random() < 0.8 else stage.painted()
    across, tall = rng.uniform(0.36, 0.7), rng.uniform(0.24, 0.4)
    neck, tilt = rng.uniform(0.05, 0.16), rng.uniform(-0.3, 0.05)
    if rng.random() < 0.5:
        place.pillar(rng.uniform(0.18, 0.28), 0.015, case, base=base)
    else:
        place.box((0.24, 0.015, 0.18), case, base=base)
    place.box((0.07, neck + 0.1, 0.03), case, z=-0.04, base=base)
    middle = base + neck + tall / 2
    lit = stage.look(["poster", "page"], glow=rng.uniform(0.3, 1.2))
    glass = dark(stage, 0.6) if rng.random() < 0.5 else lit
    place.leaning((across, tall, 0.04), case, 0, middle, 0, tilt, 0)
    place.leaning((across - 0.04, tall - 0.04, 0.044), glass, 0, middle, 0.001, tilt, 0)


def laptop(place: Place, rng: random.Random, base: float) -> None:
    """A laptop, open more or less wide."""
    stage = place.stage
    case = stage.look(["metal", "plaster"], tint=stage.painted().tint)
    across, deep, tilt = rng.uniform(0.28, 0.38), rng.uniform(0.2, 0.26), rng.uniform(-0.7, 0.0)
    place.box((across, 0.02, deep), case, base=base)
    place.box((across - 0.04, 0.001, deep * 0.5), stage.look("keys"), z=-0.04, base=base + 0.02)
    rise, back = deep / 2 * math.cos(tilt), -deep / 2 + deep / 2 * math.sin(tilt)
    lid = base + 0.02 + rise
    glass = stage.look(["poster", "page"], glow=rng.uniform(0.2, 1.0))
    place.leaning((across, deep, 0.008), case, 0, lid, back, tilt, 0)
    place.leaning((across - 0.02, deep - 0.02, 0.01), glass, 0, lid, back, tilt, 0)


def keyboard(place: Place, rng: random.Random, base: float) -> None:
    """A keyboard, often with a mouse beside it."""
    stage = place.stage
    across, deep = rng.uniform(0.28, 0.47), rng.uniform(0.11, 0.19)
    slope, case = rng.uniform(0.0, 0.08), stage.look("plaster", tint=stage.tint())
    turn = turned(0.0, -slope)
    where = (0.0, base + 0.012 + slope * deep / 2, 0.0)
    place.put(Shape.BOX, where, (across, 0.022, deep), case, stage.look("keys"), turn=turn)
    if rng.random() < 0.7:
        x = across / 2 + rng.uniform(0.06, 0.12)
        place.at(x, rng.uniform(-0.05, 0.05), rng.uniform(-0.5, 0.5)).ball(
            (0.06, 0.05, 0.11), dark(stage), 0, base + 0.01
        )


def gadget(place: Place, rng: random.Random, base: float) -> None:
    """A telephone, calculator, drive or remote control."""
    stage = place.stage
    size = (rng.uniform(0.05, 0.2), rng.uniform(0.01, 0.06), rng.uniform(0.1, 0.22))
    place.box(size, dark(stage), base=base, top=stage.look(["keys", "plaster", "poster"]))


def books(place: Place, rng: random.Random, base: float) -> None:
    """A book or a stack of them, each turned a little otherwise."""
    stage = place.stage
    spread, height = rng.choice([0.1, 0.5, 1.5]), base
    for _ in range(rng.choice([1, 1, 2, 3, 5])):
        size = (rng.uniform(0.11, 0.24), rng.uniform(0.008, 0.055), rng.uniform(0.17, 0.31))
        spot = place.at(
            rng.uniform(-0.02, 0.02), rng.uniform(-0.02, 0.02), rng.uniform(-spread, spread)
        )
        paper = stage.look("plaster", tint=(0.95, 0.93, rng.uniform(0.7, 0.95)))
        edges = paper if rng.random() < 0.6 else stage.painted()
        spot.box(size, edges, base=height, top=stage.look(["poster", "poster", "sign", "page"]))
        height += size[1]


def row_of_books(place: Place, rng: random.Random, base: float) -> None:
    """Books that stand side by side, the last ones leaning."""
    stage = place.stage
    x, count, slant = 0.0, rng.randrange(3, 7), 0.0
    for index in range(count):
        thick, tall, deep = rng.uniform(0.015, 0.06), rng.uniform(0.17, 0.3), 0.2
        if index == count - 2 and rng.random() < 0.6:
            slant = rng.uniform(0.1, 0.4)
        # The lower left edge of a leaning book keeps its place on the board.
        rise = tall / 2 * math.cos(slant) + thick / 2 * math.sin(slant)
        x += thick / 2 + (tall / 2 * math.sin(slant) if slant else 0.0)
        cover = stage.look(["poster", "sign", "plaster"], tint=stage.painted().tint)
        place.leaning((thick, tall, deep), cover, x - 0.12, base + rise, 0, 0, -slant)
        x += thick / 2


def sheets(place: Place, rng: random.Random, base: float) -> None:
    """Sheets of paper that overlap, some of them cards and envelopes."""
    stage = place.stage
    for index in range(rng.choice([1, 1, 2, 3])):
        small = rng.choice([1.0, 1.0, 0.7, 0.45])
        look = stage.look(["page", "page", "page", "plaster", "poster"])
        spot = place.at(rng.uniform(-0.08, 0.08), rng.uniform(-0.08, 0.08), rng.uniform(-0.8, 0.8))
        height = base + 0.001 + 0.002 * index + rng.uniform(0, 0.001)
        spot.box((0.21 * small, 0.001, 0.297 * small), look, base=height)


def mug(place: Place, rng: random.Random, base: float) -> None:
    """A mug or glass, full or empty."""
    stage = place.stage
    wide, tall = rng.uniform(0.06, 0.1), rng.uniform(0.06, 0.15)
    inside = stage.look("plaster", tint=rng.choice([(0.12, 0.06, 0.03), (0.3, 0.3, 0.3)]))
    body = stage.look(["plaster", "poster", "paper"], (0.3, 0.3), stage.painted().tint, gloss=0.3)
    place.put(Shape.PILLAR, (0, base + tall / 2, 0), (wide, tall, wide), body)
    place.pillar(wide * 0.88, 0.001, inside, base=base + tall)
    if rng.random() < 0.6:
        place.box((0.035, tall * 0.6, 0.012), body, x=wide / 2 + 0.012, base=base + tall * 0.2)


def bottle(place: Place, rng: random.Random, base: float) -> None:
    """A bottle, can or jar."""
    stage = place.stage
    wide, tall = rng.uniform(0.05, 0.12), rng.uniform(0.08, 0.28)
    label = stage.look(["poster", "sign", "metal"], gloss=0.3)
    place.pillar(wide, tall, label, base=base)
    if rng.random() < 0.6:
        neck = wide * rng.uniform(0.3, 0.9)
        place.pillar(neck, tall * rng.uniform(0.1, 0.45), stage.painted(), base=base + tall)


def pen_pot(place: Place, rng: random.Random, base: float) -> None:
    """Pens in a pot, leaning all ways."""
    stage = place.stage
    place.pillar(rng.uniform(0.07, 0.1), 0.1, stage.painted(), base=base)
    for _ in range(rng.randrange(2, 5)):
        tilt, lean = rng.uniform(-0.35, 0.35), rng.uniform(-0.35, 0.35)
        place.pillar(0.009, rng.uniform(0.13, 0.19), stage.painted(), 0, 0, base, tilt, lean)


def packet(place: Place, rng: random.Random, base: float) -> None:
    """A box of cardboard, tin or plastic, upright or flat, now and then leaning."""
    stage = place.stage
    size = (rng.uniform(0.05, 0.3), rng.uniform(0.03, 0.3), rng.uniform(0.04, 0.25))
    print_ = stage.look(["poster", "sign", "page", "plaster", "paper", "metal"])
    if rng.random() < 0.15:
        lean = rng.uniform(0.1, 0.6)
        rise = (size[1] * math.cos(lean) + size[0] * math.sin(lean)) / 2
        place.leaning(size, print_, 0, base + rise, 0, 0, lean)
    else:
        place.box(size, print_, base=base, top=stage.look(["poster", "plaster", "sign"]))


def cable(place: Place, rng: random.Random, base: float) -> None:
    """A cable that winds over the surface."""
    look, piece = dark(place.stage), rng.uniform(0.05, 0.1)
    thick, bend = rng.uniform(0.004, 0.009), rng.uniform(-0.9, 0.9)
    for _ in range(rng.randrange(3, 7)):
        place.box((thick, thick, piece * 1.08), look, z=piece / 2, base=base + 0.002)
        place = place.at(0, piece, bend + rng.gauss(0, 0.4))


def desk_lamp(place: Place, rng: random.Random, base: float) -> None:
    """A lamp on two slanted arms."""
    stage = place.stage
    look, lower, upper = stage.painted(), rng.uniform(0.1, 0.5), rng.uniform(0.5, 1.3)
    place.pillar(0.17, 0.02, look, base=base)
    place.pillar(0.015, 0.35, look, 0, 0, base, tilt=lower)
    elbow = turned(0.0, lower) @ [0.0, -0.35, 0.0]
    z, height = float(elbow[2]), base - float(elbow[1])
    place.pillar(0.015, 0.3, look, 0, z, height, tilt=-upper)
    head = turned(0.0, -upper) @ [0.0, -0.3, 0.0]
    z, height = z + float(head[2]), height - float(head[1])
    shade = stage.look("plaster", glow=rng.choice([0.0, 2.0]))
    place.pillar(0.14, 0.12, shade, 0, z, height - 0.1, tilt=rng.uniform(-0.5, 0.5))


def pot_plant(place: Place, rng: random.Random, base: float) -> None:
    """Leaves in a small pot."""
    stage = place.stage
    wide = rng.uniform(0.08, 0.18)
    place.pillar(wide, wide * 0.9, stage.painted(), base=base)
    green = stage.look("leaves", (0.25, 0.25))
    for _ in range(2):
        crown = wide * rng.uniform(1.1, 1.8)
        x, z = rng.uniform(-0.4, 0.4) * wide, rng.uniform(-0.4, 0.4) * wide
        height = base + wide + 0.4 * crown
        place.ball((crown, crown * rng.uniform(0.7, 1.5), crown), green, x, height, z, porous=True)


def dish(place: Place, rng: random.Random, base: float) -> None:
    """A plate or bowl with food or fruit."""
    stage = place.stage
    wide = rng.uniform(0.13, 0.27)
    place.pillar(wide, rng.uniform(0.01, 0.06), stage.look("plaster", gloss=0.4), base=base)
    for _ in range(rng.randrange(0, 4)):
        side = rng.uniform(0.04, 0.09)
        x, z = rng.uniform(-0.25, 0.25) * wide, rng.uniform(-0.25, 0.25) * wide
        place.ball((side, side * rng.uniform(0.5, 1), side), stage.painted(), x, base + 0.05, z)


def toy(place: Place, rng: random.Random, base: float) -> None:
    """A ball, blocks on one another, or a doll."""
    stage, kind = place.stage, rng.randrange(3)
    if kind == 0:
        side = rng.uniform(0.05, 0.22)
        place.ball(
            (side, side, side), stage.look(["paper", "poster"], (0.3, 0.3)), 0, base + side / 2
        )
    elif kind == 1:
        side, height = rng.uniform(0.03, 0.08), base
        for _ in range(rng.randrange(2, 5)):
            place.at(0, 0, rng.uniform(0, 1.5)).box(
                (side, side, side), stage.painted(), base=height
            )
            height += side
    else:
        fur, side = stage.look("paper", (0.2, 0.2)), rng.uniform(0.08, 0.2)
        place.ball((side, side * 1.2, side), fur, 0, base + 0.55 * side)
        place.ball((0.75 * side,) * 3, fur, 0, base + 1.4 * side)
        for x in (-0.5, 0.5):
            place.ball(
                (side * 0.4, side * 0.4, side * 0.8), fur, x * side, base + 0.2 * side, side * 0.4
            )


def tools(place: Place, rng: random.Random, base: float) -> None:
    """Bars, tubes and handles that lie about."""
    stage = place.stage
    for _ in range(rng.randrange(1, 4)):
        spot = place.at(rng.uniform(-0.06, 0.06), rng.uniform(-0.06, 0.06), rng.uniform(0, 3.1))
        thick, long = rng.uniform(0.01, 0.035), rng.uniform(0.1, 0.35)
        if rng.random() < 0.5:
            spot.box((thick, thick, long), stage.look(["metal", "plank"]), base=base)
        else:
            lying: Vector = (0.0, base + thick / 2, 0.0)
            turn = turned(0.0, math.pi / 2)
            spot.put(Shape.PILLAR, lying, (thick, long, thick), stage.painted(), turn=turn)


OFFICE: tuple[tuple[Thing, float], ...] = (
    (books, 0.16),
    (books, 0.16),
    (sheets, 0.04),
    (sheets, 0.04),
    (sheets, 0.04),
    (mug, 0.06),
    (bottle, 0.06),
    (pen_pot, 0.07),
    (packet, 0.13),
    (packet, 0.13),
    (cable, 0.03),
    (cable, 0.03),
    (gadget, 0.1),
    (gadget, 0.1),
    (row_of_books, 0.18),
    (desk_lamp, 0.15),
    (pot_plant, 0.12),
    (laptop, 0.2),
    (keyboard, 0.2),
    (toy, 0.1),
)
KITCHEN: tuple[tuple[Thing, float], ...] = (
    (dish, 0.13),
    (dish, 0.13),
    (mug, 0.06),
    (mug, 0.06),
    (bottle, 0.06),
    (bottle, 0.06),
    (packet, 0.12),
    (packet, 0.12),
    (tools, 0.12),
    (sheets, 0.04),
    (pot_plant, 0.12),
)
WORKSHOP: tuple[tuple[Thing, float], ...] = (
    (tools, 0.12),
    (tools, 0.12),
    (packet, 0.13),
    (packet, 0.13),
    (bottle, 0.06),
    (cable, 0.03),
    (gadget, 0.1),
    (books, 0.16),
    (sheets, 0.04),
    (pen_pot, 0.07),
    (desk_lamp, 0.15),
)
NURSERY: tuple[tuple[Thing, float], ...] = (
    (toy, 0.1),
    (toy, 0.1),
    (toy, 0.1),
    (books, 0.16),
    (packet, 0.14),
    (packet, 0.14),
    (sheets, 0.04),
    (cable, 0.03),
    (mug, 0.06),
)
