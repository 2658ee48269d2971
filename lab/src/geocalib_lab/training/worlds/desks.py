"""Worlds at arm's length: a desk, counter, bench, table or corner full of things."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from geocalib_lab.training.worlds import furniture, things
from geocalib_lab.training.worlds.rooms import enclose, indoors
from geocalib_lab.training.worlds.solids import Vector, World
from geocalib_lab.training.worlds.stage import Place, Stage
from geocalib_lab.training.worlds.textures import Library

TRIES = 80
"""Places for the eye that are tried."""

CLEARANCE = 0.18
"""Metres from the eye to the nearest thing, about."""


@dataclass(frozen=True)
class Top:
    """A level surface full of things, about a frame; its back is towards -z."""

    place: Place
    across: float
    deep: float
    height: float


def desk(library: Library, rng: random.Random) -> World:
    """A room seen from close above a surface that is densely covered with things."""
    stage = Stage(library, rng)
    room = stage.at(0, 0, rng.uniform(0, 2 * math.pi))
    size = (rng.uniform(2.6, 6.0), rng.uniform(2.3, 3.2), rng.uniform(2.8, 6.0))
    lamps = enclose(room, rng, size, (_wall_board,))
    top = rng.choice([_office, _office, _kitchen, _bench, _low_table, _corner])(room, rng, size)
    for _ in range(rng.randrange(0, 3)):
        x, z = rng.uniform(-0.36, 0.36) * size[0], rng.uniform(0.2, 0.4) * size[2]
        rng.choice(furniture.FREE_STANDING)(room.at(x, z, rng.uniform(0, 6.3)), rng)
    return indoors("synthetic_desk", stage, _eye(top, rng), size, lamps)


def _spot(room: Place, rng: random.Random, size: Vector, across: float, deep: float) -> Place:
    """Against the wall at -z, or free in the room at any angle."""
    slack = max(0.0, (size[0] - across) / 2)
    if rng.random() < 0.65:
        return room.at(rng.uniform(-slack, slack), -size[2] / 2 + deep / 2 + 0.02)
    return room.at(0.3 * rng.uniform(-slack, slack), -0.15 * size[2], rng.uniform(0, 6.3))


def _office(room: Place, rng: random.Random, size: Vector) -> Top:
    """A desk with one or two screens, drawers and a chair; often a second board around the
    corner."""
    stage = room.stage
    top = Top(room, rng.uniform(1.0, 2.0), rng.uniform(0.6, 0.95), rng.uniform(0.66, 0.8))
    place = _spot(room, rng, size, top.across, top.deep)
    board = stage.look(["plank", "plaster", "plaster", "marble"], gloss=rng.choice([0.0, 0.3]))
    place.box((top.across, 0.03, top.deep), board, base=top.height - 0.03)
    _stand(place, rng, top)
    side = rng.choice([-1, 1])
    if rng.random() < 0.5:
        wing = place.at(side * (top.across / 2 - 0.3), top.deep / 2 + 0.5)
        wing.box((0.6, 0.03, 1.0), board, base=top.height - 0.03)
        wing.box((0.5, top.height - 0.03, 0.4), stage.look("cabinet"), z=0.25)
        things.scatter(wing, rng, (0.55, 0.95), top.height, 11, things.OFFICE)
    free = place.at(-side * 0.25, 0)
    for index in range(rng.choice([0, 1, 1, 2])):
        x = (index - 0.3) * 0.65 + rng.uniform(-0.1, 0.1)
        spot = free.at(x, rng.uniform(-0.3, -0.15) * top.deep, rng.uniform(-0.5, 0.5))
        things.screen(spot, rng, top.height)
    if rng.random() < 0.6:
        spot = free.at(rng.uniform(-0.2, 0.2), 0.3 * top.deep, rng.gauss(0, 0.3))
        things.keyboard(spot, rng, top.height)
    count = rng.randrange(18, 40)
    things.scatter(place, rng, (top.across, top.deep), top.height, count, things.OFFICE)
    away = top.deep / 2 + rng.uniform(0.15, 0.7)
    furniture.chair(place.at(rng.uniform(-0.5, 0.5), away, math.pi + rng.gauss(0, 0.7)), rng)
    _on_the_floor(place.at(rng.uniform(-1, 1), top.deep / 2 + 0.8), rng, things.OFFICE)
    return Top(place, top.across, top.deep, top.height)


def _stand(place: Place, rng: random.Random, top: Top) -> None:
    """Drawers, boards or legs under a desk."""
    stage, tall = place.stage, top.height - 0.03
    for x in (-top.across / 2 + 0.22, top.across / 2 - 0.22):
        if rng.random() < 0.45:
            place.box((0.4, tall, top.deep - 0.06), stage.look("cabinet"), x)
        else:
            for z in (-0.42, 0.42):
                place.box((0.05, tall, 0.05), stage.painted(), x * 1.15, z * top.deep)


def _kitchen(room: Place, rng: random.Random, size: Vector) -> Top:
    """A counter with cupboards, a sink or hob, and dishes."""
    stage = room.stage
    across, height = rng.uniform(1.6, min(3.2, size[0])), rng.uniform(0.84, 0.95)
    slack = (size[0] - across) / 2
    place = room.at(rng.uniform(-slack, slack), -size[2] / 2 + 0.33)
    front = stage.look("cabinet")
    slab = stage.look(["marble", "plank", "plaster", "metal"], gloss=0.4)
    place.box((across, height - 0.04, 0.6), front)
    place.box((across + 0.04, 0.04, 0.64), slab, base=height - 0.04)
    place.box((across, 0.5, 0.02), stage.look(["tile", "tile", "brick"]), z=-0.3, base=height)
    if rng.random() < 0.6:
        place.box((across, 0.7, 0.33), front, z=-0.14, base=height + 0.5)
    basin = place.at(rng.uniform(-0.35, 0.35) * across, 0.03)
    basin.box((0.55, 0.006, 0.42), stage.look("metal", gloss=0.5), base=height)
    if rng.random() < 0.5:
        for x in (-0.13, 0.13):
            basin.pillar(0.18, 0.008, things.dark(stage, 0.5), x, 0.08, height)
            basin.pillar(0.14, 0.008, things.dark(stage, 0.5), x, -0.1, height)
    else:
        basin.box((0.42, 0.008, 0.32), things.dark(stage), base=height)
        basin.pillar(0.03, 0.3, stage.look("metal", gloss=0.6), 0, -0.2, height)
        basin.box((0.025, 0.025, 0.2), stage.look("metal", gloss=0.6), 0, -0.1, height + 0.28)
    count = rng.randrange(24, 48)
    things.scatter(place, rng, (across, 0.58), height, count, things.KITCHEN)
    _on_the_floor(place.at(rng.uniform(-0.6, 0.6), 1.0), rng, things.KITCHEN)
    return Top(place, across, 0.6, height)


def _bench(room: Place, rng: random.Random, size: Vector) -> Top:
    """A workbench of thick planks, with tools, a rack of boards behind it and crates below."""
    stage = room.stage
    top = Top(room, rng.uniform(1.2, 2.4), rng.uniform(0.55, 0.9), rng.uniform(0.75, 1.0))
    place = _spot(room, rng, size, top.across, top.deep)
    wood = stage.look(["plank", "metal", "plank"])
    place.box((top.across, 0.07, top.deep), wood, base=top.height - 0.07)
    for x in (-0.46, 0.46):
        for z in (-0.42, 0.42):
            tall = rng.choice([top.height - 0.07, 1.9]) if z < 0 else top.height - 0.07
            place.box((0.08, tall, 0.08), wood, x * top.across, z * top.deep)
    things.packet(place.at(rng.uniform(-0.4, 0.4), 0, 0.4), rng, 0.0)
    for height in (top.height + 0.35, top.height + 0.7)[: rng.randrange(0, 3)]:
        place.box((top.across, 0.02, 0.22), wood, z=-top.deep / 2 + 0.11, base=height)
        shelf = place.at(0, -top.deep / 2 + 0.11)
        things.scatter(shelf, rng, (top.across, 0.2), height + 0.02, 6, things.WORKSHOP)
    count = rng.randrange(20, 44)
    things.scatter(place, rng, (top.across, top.deep), top.height, count, things.WORKSHOP)
    _on_the_floor(place.at(rng.uniform(-0.6, 0.6), top.deep / 2 + 0.6), rng, things.WORKSHOP)
    return Top(place, top.across, top.deep, top.height)


def _low_table(room: Place, rng: random.Random, size: Vector) -> Top:
    """A dining or coffee table with chairs or a sofa."""
    stage = room.stage
    across, deep, height = rng.uniform(0.8, 1.7), rng.uniform(0.6, 1.0), rng.choice([0.42, 0.74])
    place = room.at(rng.uniform(-0.4, 0.4), rng.uniform(-0.5, 0.2), rng.uniform(0, 6.3))
    board = stage.look(["plank", "paper", "marble", "plaster"], gloss=0.2)
    if rng.random() < 0.3:
        deep = across = min(across, 1.2)
        place.pillar(across, 0.03, board, base=height - 0.03)
        place.pillar(0.1, height - 0.03, stage.painted())
        # Things keep within the disc.
        across = deep = 0.7 * across
    else:
        place.box((across, 0.03, deep), board, base=height - 0.03)
        for x in (-0.45, 0.45):
            for z in (-0.43, 0.43):
                place.box((0.05, height - 0.03, 0.05), board, x * across, z * deep)
    kind = rng.choice([things.KITCHEN, things.OFFICE, things.NURSERY])
    things.scatter(place, rng, (across, deep), height, rng.randrange(14, 34), kind)
    if height < 0.5:
        furniture.sofa(place.at(0, -deep / 2 - 0.75), rng)
    else:
        for side in (-1, 1):
            turn = rng.gauss(0, 0.3) + (math.pi if side > 0 else 0.0)
            spot = place.at(rng.uniform(-0.3, 0.3), side * (deep / 2 + 0.2), turn)
            furniture.chair(spot, rng)
    _on_the_floor(place.at(rng.uniform(-0.5, 0.5), deep / 2 + 0.9), rng, things.NURSERY)
    return Top(place, across, deep, height)


def _corner(room: Place, rng: random.Random, size: Vector) -> Top:
    """The floor in a corner of the room, with things strewn over it."""
    stage = room.stage
    across, deep = rng.uniform(1.2, 2.2), rng.uniform(1.2, 2.0)
    side = rng.choice([-1, 1])
    place = room.at(side * (size[0] - across) / 2, -(size[2] - deep) / 2)
    if rng.random() < 0.5:
        rug = stage.look(["carpet", "paper"])
        place.at(0, 0, rng.uniform(-0.5, 0.5)).box((0.8 * across, 0.01, 0.7 * deep), rug)
    crates = place.at(side * (across / 2 - 0.3), -deep / 2 + 0.3)
    for turn in (rng.gauss(0, 0.2), rng.uniform(0, 6)):
        furniture.clutter(crates.at(0, 0, turn), rng)
        crates = place.at(rng.uniform(-0.3, 0.3) * across, rng.uniform(-0.3, 0.1) * deep)
    kind = rng.choice([things.NURSERY, things.NURSERY, things.WORKSHOP, things.OFFICE])
    things.scatter(place, rng, (across, deep), 0.01, rng.randrange(22, 44), kind)
    return Top(place, across, deep, 0.0)


def _wall_board(place: Place, rng: random.Random) -> None:
    """A board on the wall with things on it; the wall is 0.45 m behind the frame."""
    across, height = rng.uniform(0.5, 1.0), rng.uniform(1.25, 1.7)
    board = place.at(0, -0.33)
    board.box((across, 0.02, 0.22), place.stage.look("plank"), base=height)
    things.scatter(board, rng, (across, 0.2), height + 0.02, 4, things.OFFICE)


def _on_the_floor(
    place: Place, rng: random.Random, kinds: Sequence[tuple[things.Thing, float]]
) -> None:
    things.scatter(place, rng, (1.6, 1.0), 0.0, rng.randrange(2, 11), kinds)


def _eye(top: Top, rng: random.Random) -> Vector:
    """A free place for the eye, 0.3 to 1 m above the surface, over it or before it."""
    stage = top.place.stage
    for _ in range(TRIES):
        x = rng.uniform(-0.45, 0.45) * top.across
        z = top.deep / 2 + rng.uniform(-0.8 * top.deep, 0.2)
        eye = top.place.point(x, top.height + rng.uniform(0.3, 1.0), z)
        if stage.is_free(eye, CLEARANCE):
            return eye
    return top.place.point(0.0, top.height + 1.1, top.deep / 2)
