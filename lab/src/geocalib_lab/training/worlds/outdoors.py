"""Things that stand outdoors. Each is put at a frame's origin, its front towards +z."""

from __future__ import annotations

import math
import random

from geocalib_lab.training.worlds.pictures import BAYS
from geocalib_lab.training.worlds.solids import Look, Shape, Vector, turned
from geocalib_lab.training.worlds.stage import Place


def house(
    place: Place, rng: random.Random, bays: tuple[int, int], floors: int, lit: float
) -> Vector:
    """A building of so many bays across and deep; gives its size (across, high, deep)."""
    stage = place.stage
    bay, floor = rng.uniform(2.2, 4.2), rng.uniform(2.7, 3.8)
    across, tall, deep = bays[0] * bay, floors * floor, bays[1] * bay
    wall = stage.look("facade", (BAYS * bay, BAYS * floor), glow=0.6 * lit * rng.random())
    slab = stage.look(["asphalt", "gravel", "metal"])
    place.box((across, tall, deep), wall, top=slab)
    style = rng.random()
    if style < 0.4:
        eaves = rng.uniform(0.2, 0.6)
        tiles = stage.look(["roof", "roof", "metal"])
        along = rng.random() < 0.5
        width, length = (across, deep) if along else (deep, across)
        roof = place if along else place.at(0, 0, math.pi / 2)
        ends = stage.look(["plaster", "plank", "brick"])
        rise = rng.uniform(0.25, 0.6) * width
        roof.gable((width + 2 * eaves, rise, length - 0.02), tiles, ends, tall)
        place.box(
            (rng.uniform(0.5, 0.9), rng.uniform(1, 2.5), 0.6),
            stage.look("brick"),
            across * rng.uniform(-0.3, 0.3),
            0,
            tall + 0.6 * rise,
        )
    elif style < 0.85:
        out = rng.uniform(0.1, 0.6)
        place.box(
            (across + out, rng.uniform(0.2, 0.7), deep + out),
            stage.look(["plaster", "marble"]),
            base=tall,
            top=slab,
        )
    front = deep / 2
    if rng.random() < 0.45:
        shop = stage.look("shopfront", (2 * bay, 3.0), glow=1.5 * lit)
        place.box((across, 3.0, 0.16), shop, z=front + 0.02)
        if rng.random() < 0.5:
            awning = stage.look("paper")
            place.leaning((across * 0.7, 0.05, 1.6), awning, 0, 2.7, front + 0.7, -0.35, 0)
    else:
        x = rng.uniform(-0.3, 0.3) * across
        place.box((1.4, 2.5, 0.12), stage.look("plaster"), x, front)
        place.box((1.0, 2.2, 0.2), stage.look("door"), x, front)
        place.box((1.6, 0.18, 1.2), stage.look(["asphalt", "marble"]), x, front + 0.5)
    if rng.random() < 0.4:
        _balconies(place, rng, (bays[0], floors), (bay, floor), front)
    if rng.random() < 0.3:
        base = stage.look(["brick", "marble", "gravel"])
        place.box((across + 0.12, rng.uniform(0.4, 1), deep + 0.12), base)
    return across, tall, deep


def far_houses(place: Place, rng: random.Random, nearest: float) -> None:
    """Simple buildings all around, at any angle, no nearer than so many metres."""
    stage = place.stage
    for _ in range(rng.randrange(4, 9)):
        angle, away = rng.uniform(0, 2 * math.pi), nearest + rng.uniform(0, 60)
        spot = place.at(away * math.sin(angle), away * math.cos(angle), rng.uniform(0, 6.3))
        across, deep = 3.0 * rng.randrange(3, 8), 3.0 * rng.randrange(2, 6)
        tall = 3.0 * rng.choice([1, 2, 3, 4, 6, 10])
        spot.box((across, tall, deep), stage.look("facade", (6.0, 6.0)), top=stage.look("asphalt"))
        if tall < 15 and rng.random() < 0.6:
            rise = rng.uniform(0.3, 0.6) * across
            spot.gable(
                (across + 0.6, rise, deep - 0.02), stage.look("roof"), stage.look("plaster"), tall
            )


def _balconies(
    place: Place,
    rng: random.Random,
    count: tuple[int, int],
    step: tuple[float, float],
    front: float,
) -> None:
    slab, rail = place.stage.look("asphalt"), place.stage.look("fence", (1.2, 1.0))
    every, wide = rng.choice([1, 2]), rng.uniform(0.8, 1.1) * step[0]
    for floor in range(1, min(count[1], 4)):
        for bay in range(0, min(count[0], 4), every):
            x = (bay + 0.5 - count[0] / 2) * step[0]
            place.box((wide, 0.15, 1.2), slab, x, front + 0.6, floor * step[1])
            place.screen(wide, 1.0, rail, x, front + 1.18, floor * step[1] + 0.15)


def tree(place: Place, rng: random.Random, parts: int) -> None:
    """A trunk, sometimes leaning, with a crown of leafy clumps; or a fir."""
    stage = place.stage
    tall = rng.uniform(3, 14)
    lean, tilt = (rng.gauss(0, 0.12) if rng.random() < 0.4 else 0.0 for _ in range(2))
    bark, green = stage.look("bark"), stage.look("leaves")
    core = Look(
        green.layer, green.tile, (green.tint[0] * 0.5, green.tint[1] * 0.5, green.tint[2] * 0.5)
    )
    place.pillar(tall * rng.uniform(0.03, 0.07), tall * 0.75, bark, tilt=tilt, lean=lean)
    head = turned(0.0, tilt, lean) @ [0.0, -0.7 * tall, 0.0]
    x, height, z = float(head[0]), -float(head[1]), float(head[2])
    if rng.random() < 0.2:
        for level in range(parts):
            share = level / parts
            wide = tall * 0.42 * (1.1 - share)
            place.ball(
                (wide, tall * 0.35, wide),
                green,
                x * (0.4 + share),
                tall * (0.3 + 0.62 * share),
                z,
                porous=True,
            )
        return
    crown = tall * rng.uniform(0.35, 0.6)
    place.ball((crown * 0.8, crown * 0.65, crown * 0.8), core, x, height, z)
    for index in range(parts):
        size = crown * rng.uniform(0.5, 0.95)
        angle = 2 * math.pi * (index + rng.random()) / parts
        away = crown * rng.uniform(0.15, 0.5)
        place.ball(
            (size, size * rng.uniform(0.6, 1), size),
            green,
            x + away * math.sin(angle),
            height + rng.uniform(-0.25, 0.4) * crown,
            z + away * math.cos(angle),
            porous=True,
        )


def bush(place: Place, rng: random.Random) -> None:
    """A low leafy clump, or a clipped hedge."""
    look = place.stage.look("leaves", (0.9, 0.9))
    if rng.random() < 0.3:
        size = (rng.uniform(2, 8), rng.uniform(0.6, 1.8), rng.uniform(0.5, 1))
        place.box(size, look)
        return
    for _ in range(2):
        wide = rng.uniform(0.6, 1.8)
        place.ball(
            (wide, wide * 0.9, wide),
            look,
            rng.uniform(-0.5, 0.5),
            wide * 0.3,
            rng.uniform(-0.5, 0.5),
            porous=True,
        )


def car(place: Place, rng: random.Random) -> None:
    """A car or van along z: body, cabin, wheels and lights."""
    stage = place.stage
    paint = stage.look("plaster", (9.0, 9.0), tint=stage.painted().tint, gloss=0.5)
    glass = stage.look("plaster", tint=(0.08, 0.1, 0.12), gloss=0.9)
    wheel = stage.look("asphalt", tint=(0.15, 0.15, 0.15))
    long, van = rng.uniform(3.6, 4.8), rng.random() < 0.25
    roof = rng.uniform(1.9, 2.4) if van else rng.uniform(1.35, 1.7)
    place.box((1.75, 0.55, long), paint, base=0.3)
    slant = 0.0 if van else 0.35
    place.leaning((1.6, roof - 0.85, long * 0.42), glass, 0, (roof + 0.8) / 2, -0.1 * long, 0, 0)
    place.box((1.62, 0.06, long * (0.62 if van else 0.4)), paint, z=-0.1 * long, base=roof - 0.06)
    for side in (-1, 1):
        place.leaning(
            (1.58, 0.05, 1.0),
            glass,
            0,
            0.5 * (roof + 0.85),
            -0.1 * long + side * 0.27 * long,
            -side * (0.9 - slant),
            0,
        )
        for x in (-0.82, 0.82):
            turn = turned(0.0, 0.0, math.pi / 2)
            place.put(
                Shape.PILLAR, (x, 0.31, side * long * 0.31), (0.62, 0.22, 0.62), wheel, turn=turn
            )
    place.box((1.5, 0.12, long + 0.06), stage.look("plaster", glow=0.4), base=0.62)


def lamp_post(place: Place, rng: random.Random, lit: float) -> None:
    """A pole with an arm and a lamp."""
    stage = place.stage
    tall, arm = rng.uniform(3.5, 8), rng.uniform(0.3, 1.8)
    look = stage.look("metal", tint=stage.painted().tint)
    place.pillar(0.14, tall, look)
    place.box((0.08, 0.08, arm), look, z=arm / 2, base=tall - 0.08)
    place.box((0.3, 0.15, 0.5), stage.look("plaster", glow=0.2 + 6 * lit), z=arm, base=tall - 0.2)


def sign_post(place: Place, rng: random.Random) -> None:
    """A sign on a pole, or a billboard on two."""
    stage = place.stage
    steel = stage.look("metal")
    if rng.random() < 0.6:
        place.pillar(0.07, 2.6, steel)
        place.box((0.7, rng.uniform(0.5, 0.9), 0.03), stage.look("sign"), z=0.05, base=1.9)
        return
    across, tall = rng.uniform(2, 5), rng.uniform(1.4, 3)
    for x in (-0.35, 0.35):
        place.pillar(0.14, 2 + tall, steel, x * across)
    place.box((across, tall, 0.1), stage.look(["poster", "sign"]), z=0.1, base=rng.uniform(0.8, 2))


def fence(place: Place, rng: random.Random, long: float) -> None:
    """A fence or a wall along x."""
    stage = place.stage
    tall = rng.uniform(0.7, 2.0)
    if rng.random() < 0.6:
        place.screen(long, tall, stage.look("fence", (tall * 1.3, tall)))
        for x in (-long / 2, 0, long / 2):
            place.box((0.1, tall + 0.1, 0.1), stage.look("plank"), x, 0.04)
    else:
        place.box(
            (long, tall, 0.25),
            stage.look(["brick", "gravel", "plaster"]),
            top=stage.look("asphalt"),
        )
        place.box((long + 0.1, 0.1, 0.4), stage.look(["asphalt", "marble"]), base=tall)


def bench(place: Place, rng: random.Random) -> None:
    """A seat with a back of slats."""
    stage = place.stage
    wood, iron = stage.look("plank"), stage.painted()
    place.box((1.6, 0.05, 0.45), wood, base=0.42)
    place.leaning((1.6, 0.4, 0.04), wood, 0, 0.75, -0.28, -0.2, 0)
    for x in (-0.65, 0.65):
        place.box((0.06, 0.42, 0.4), iron, x)


def rock(place: Place, rng: random.Random) -> None:
    """A boulder: a round lump or a tilted block."""
    look = place.stage.look(["gravel", "asphalt", "sand", "marble"], (2.0, 2.0))
    wide = rng.uniform(0.4, 3.0)
    size = (wide, wide * rng.uniform(0.4, 0.9), wide * rng.uniform(0.6, 1.2))
    if rng.random() < 0.5:
        place.ball(size, look, 0, size[1] * 0.2)
    else:
        place.leaning(
            size, look, 0, size[1] * 0.25, 0, rng.uniform(-0.6, 0.6), rng.uniform(-0.6, 0.6)
        )
