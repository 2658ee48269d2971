"""Worlds within walls: rooms, halls and corridors."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from geocalib_lab.training.worlds import furniture
from geocalib_lab.training.worlds.solids import Lamp, Light, Shape, Sky, Vector, World
from geocalib_lab.training.worlds.stage import Place, Stage, white_light
from geocalib_lab.training.worlds.textures import Library

TRIES = 60
"""Places for the eye that are tried."""


def room(library: Library, rng: random.Random) -> World:
    """A room with furniture: wide or narrow, low or high."""
    corridor = rng.random() < 0.2
    across = rng.uniform(1.3, 2.4) if corridor else rng.uniform(2.6, 8.0)
    deep = rng.uniform(5, 16) if corridor else rng.uniform(2.8, 9.0)
    return _interior(library, rng, (across, rng.uniform(2.2, 3.6), deep), "synthetic_room")


def hall(library: Library, rng: random.Random) -> World:
    """A large, high room with columns: church, station, shop or works."""
    size = (rng.uniform(7, 16), rng.uniform(3.2, 8), rng.uniform(9, 28))
    return _interior(library, rng, size, "synthetic_hall")


def enclose(
    place: Place,
    rng: random.Random,
    size: Vector,
    along_first: Sequence[furniture.Maker] = furniture.AGAINST_WALL,
) -> list[Lamp]:
    """A room (across, high, deep) about a frame, its walls and ceiling furnished; its lamps.

    along_first: what stands along the wall at -z.
    """
    stage = place.stage
    across, tall, deep = size
    walls = stage.look(["plaster", "plaster", "paper", "brick", "plank", "tile", "marble"])
    floor = stage.look(
        ["plank", "plank", "tile", "paper", "marble", "asphalt"], gloss=rng.choice([0.0, 0.2, 0.6])
    )
    ceiling = stage.look(["plaster", "plaster", "plaster", "plank", "tile"])
    place.put(Shape.ROOM, (0, tall / 2, 0), size, walls, ceiling, floor)
    lamps = _ceiling(place, rng, size)
    fronts = [
        (place.at(0, -deep / 2, 0), across),
        (place.at(0, deep / 2, math.pi), across),
        (place.at(-across / 2, 0, math.pi / 2), deep),
        (place.at(across / 2, 0, -math.pi / 2), deep),
    ]
    trim = stage.look(["plaster", "plank"])
    for index, (wall, long) in enumerate(fronts):
        wall.box((long, rng.uniform(0.06, 0.15), 0.03), trim, z=0.015)
        makers = furniture.AGAINST_WALL if index else along_first
        lamps += _furnish_wall(wall, rng, long, tall, makers)
    return lamps


def _interior(library: Library, rng: random.Random, size: Vector, kind: str) -> World:
    stage = Stage(library, rng)
    place = stage.at(0, 0, rng.uniform(0, 2 * math.pi))
    across, tall, deep = size
    lamps = enclose(place, rng, size)
    if kind == "synthetic_hall" and rng.random() < 0.7:
        _colonnade(place, rng, size)
    if kind == "synthetic_room" and min(across, deep) > 3.5 and rng.random() < 0.35:
        _partition(place, rng, size)
    count = rng.randrange(1, 4) if kind == "synthetic_room" else rng.randrange(6, 13)
    for _ in range(count):
        x, z = rng.uniform(-0.36, 0.36) * across, rng.uniform(-0.4, 0.4) * deep
        makers = (
            (*furniture.FREE_STANDING, furniture.stairs, furniture.ramp)
            if tall > 3
            else furniture.FREE_STANDING
        )
        turn = rng.choice([0, math.pi / 2, math.pi, -math.pi / 2, rng.uniform(0, 6.3)])
        rng.choice(makers)(place.at(x, z, turn), rng)
    if rng.random() < 0.5:
        rug = stage.look("carpet")
        place.at(0, 0, rng.choice([0, rng.uniform(0, 3)])).box(
            (rng.uniform(0.3, 0.6) * across, 0.012, rng.uniform(0.3, 0.6) * deep), rug
        )
    return indoors(kind, stage, _eye(stage, place, rng, size), size, lamps)


def indoors(kind: str, stage: Stage, eye: Vector, size: Vector, lamps: list[Lamp]) -> World:
    """The world of a room (across, high, deep), in some light."""
    rng = stage.rng
    across, tall, deep = size
    ambient = rng.uniform(0.05, 0.4)
    dusk = Sky(
        white_light(ambient),
        white_light(ambient * rng.uniform(0.6, 1.2)),
        white_light(ambient * rng.uniform(0.4, 1.0)),
        0,
        0.0,
        1.0,
        1.0,
        0.0,
    )
    slant, turn = rng.uniform(0.05, 0.5), rng.uniform(0, 6.3)
    towards = (math.sin(slant) * math.sin(turn), -math.cos(slant), math.sin(slant) * math.cos(turn))
    reach = 0.55 * math.hypot(across, deep) + 0.5 * tall + 1
    light = Light(towards, white_light(rng.uniform(0.2, 1.0)), rng.uniform(0.2, 0.7), reach)
    return World(
        kind,
        eye,
        tuple(stage.solids),
        dusk,
        light,
        tuple(lamps[:4]),
        0.0,
        rng.uniform(0.12, 0.4),
        stage.library.pick("noise", rng),
    )


def _eye(stage: Stage, place: Place, rng: random.Random, size: Vector) -> Vector:
    across, tall, deep = size
    for _ in range(TRIES):
        height = (
            min(rng.uniform(0.5, 3.0), tall - 0.4) if rng.random() < 0.3 else rng.uniform(1.1, 1.8)
        )
        eye = place.point(
            rng.uniform(-0.42, 0.42) * across,
            min(height, tall - 0.4),
            rng.uniform(-0.42, 0.42) * deep,
        )
        if stage.is_free(eye):
            return eye
    return place.point(0, tall - 0.3, 0)


def _ceiling(place: Place, rng: random.Random, size: Vector) -> list[Lamp]:
    """Beams, slants and lamps; the light of some lamps."""
    stage = place.stage
    across, tall, deep = size
    if rng.random() < 0.35:
        look, count = stage.look(["plank", "plaster"]), rng.randrange(2, 7)
        thick = rng.uniform(0.1, 0.3) * max(1.0, tall / 4)
        for index in range(count):
            z = (index + 0.5) / count * deep - deep / 2
            place.box((across, thick, thick * rng.uniform(0.6, 1.2)), look, z=z, base=tall - thick)
    if rng.random() < 0.2:
        slope = rng.uniform(0.3, 0.8)
        look = stage.look(["plaster", "plank"])
        place.leaning((across * 1.5, 0.2, deep * 1.2), look, across / 2, tall, 0, 0, slope)
    warm = rng.uniform(0.5, 1.0)
    lamps = []
    columns, rows = (1, rng.choice([1, 1, 2])) if across < 6 else (2, rng.choice([2, 3]))
    style = rng.randrange(3)
    shape = rng.uniform(0.15, 0.5)
    for i in range(columns):
        for j in range(rows):
            x = ((i + 0.5) / columns - 0.5) * across
            z = ((j + 0.5) / rows - 0.5) * deep
            look = stage.look(
                "plaster", tint=(1.0, 0.6 + 0.4 * warm, 0.3 + 0.7 * warm), glow=rng.uniform(1, 6)
            )
            drop = rng.uniform(0.2, 0.9) if tall > 2.6 else 0.1
            if style == 0:
                place.box((1.2 * shape + 0.2, 0.06, 2 * shape), look, x, z, tall - 0.06)
                drop = 0.1
            elif style == 1:
                place.ball((shape, shape, shape), look, x, tall - drop, z)
                place.pillar(0.02, drop, stage.painted(), x, z, tall - drop)
            else:
                place.pillar(shape, shape * 0.6, look, x, z, tall - drop)
                place.pillar(0.02, drop, stage.painted(), x, z, tall - drop)
            strength = rng.uniform(0.5, 2.5) * (1 + tall / 4)
            colour = (strength, strength * (0.6 + 0.4 * warm), strength * (0.3 + 0.7 * warm))
            lamps.append(Lamp(place.point(x, tall - drop - 0.4, z), colour))
    rng.shuffle(lamps)
    return lamps[:3]


def _furnish_wall(
    wall: Place, rng: random.Random, long: float, tall: float, makers: Sequence[furniture.Maker]
) -> list[Lamp]:
    """Windows, doors, pictures and furniture along a wall that z leads away from."""
    stage = wall.stage
    lamps = []
    slots = max(1, round(long / rng.uniform(1.4, 3.0)))
    pane, leaf, sash = (
        stage.look("window", glow=rng.uniform(0.6, 3)),
        stage.look("door"),
        stage.look("plaster"),
    )
    drape = stage.look("curtain")
    window_tall, window_base = rng.uniform(1.0, tall * 0.62), rng.uniform(0.3, 0.95)
    window_tall = min(window_tall, tall - window_base - 0.15)
    habit = rng.random()
    for slot in range(min(slots, 7)):
        x = ((slot + 0.5) / slots - 0.5) * long
        room = long / slots
        if rng.random() < 0.4 * habit + 0.15:
            across = min(rng.uniform(0.7, 2.0), room * 0.8)
            wall.box((across + 0.16, window_tall + 0.16, 0.05), sash, x, 0.025, window_base - 0.08)
            wall.box((across, window_tall, 0.06), pane, x, 0.03, window_base)
            wall.box((across + 0.3, 0.04, 0.22), sash, x, 0.11, window_base - 0.1)
            if rng.random() < 0.4:
                for side in (-1, 1):
                    wall.box(
                        (0.35, window_tall + 0.3, 0.1),
                        drape,
                        x + side * across / 2,
                        0.13,
                        max(0.02, window_base - 0.15),
                    )
            bright = rng.uniform(0.5, 2.5)
            place = wall.point(x, window_base + window_tall / 2, 0.7)
            lamps.append(Lamp(place, (0.9 * bright, 0.95 * bright, bright)))
        elif rng.random() < 0.25:
            across = min(rng.uniform(0.75, 1.0), room * 0.9)
            door_tall = min(rng.uniform(1.95, 2.2), tall - 0.15)
            wall.box((across + 0.2, door_tall + 0.1, 0.05), sash, x, 0.025)
            wall.box((across, door_tall, 0.07), leaf, x, 0.035)
        elif rng.random() < 0.65:
            rng.choice(makers)(wall.at(x, 0.45), rng)
        if rng.random() < 0.45:
            across, high = rng.uniform(0.25, 0.9), rng.uniform(0.25, 0.9)
            base = rng.uniform(1.2, max(1.25, tall - high - 0.2))
            frame, art = stage.painted(), stage.look("poster")
            at = x + rng.uniform(-0.3, 0.3) * room
            wall.box((across + 0.08, high + 0.08, 0.025), frame, at, 0.0125, base - 0.04)
            wall.box((across, high, 0.03), art, at, 0.015, base)
    return lamps[:1]


def _colonnade(place: Place, rng: random.Random, size: Vector) -> None:
    """Two rows of columns along the hall, with beams on them."""
    across, tall, deep = size
    look = place.stage.look(["marble", "plaster", "brick", "plank"])
    count, wide, x = rng.randrange(3, 7), rng.uniform(0.25, 0.8), rng.uniform(0.2, 0.35) * across
    square = rng.random() < 0.5
    for side in (-x, x):
        for index in range(count):
            z = ((index + 0.5) / count - 0.5) * deep
            if square:
                place.box((wide, tall, wide), look, side, z)
            else:
                place.pillar(wide, tall, look, side, z)
        place.box((wide * 1.1, 0.4, deep), look, side, base=tall - 0.4)


def _partition(place: Place, rng: random.Random, size: Vector) -> None:
    """Walls that make the room L-shaped, or leave a passage."""
    stage = place.stage
    across, tall, deep = size
    look = stage.look(["plaster", "brick", "paper"])
    if rng.random() < 0.5:
        wide, long = rng.uniform(0.25, 0.45) * across, rng.uniform(0.25, 0.5) * deep
        side, end = rng.choice([-1, 1]), rng.choice([-1, 1])
        place.box((wide, tall, long), look, side * (across - wide) / 2, end * (deep - long) / 2)
    else:
        z, door = rng.uniform(-0.25, 0.25) * deep, rng.uniform(0.9, 1.8)
        left = rng.uniform(0.2, 0.8) * (across - door)
        right = across - door - left
        place.box((left, tall, 0.15), look, -across / 2 + left / 2, z)
        place.box((right, tall, 0.15), look, across / 2 - right / 2, z)
        place.box((across, max(0.1, tall - 2.1), 0.15), look, 0, z, 2.1)
