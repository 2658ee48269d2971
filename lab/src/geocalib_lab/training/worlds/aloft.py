"""Worlds seen from far above the ground: by a drone, from a balcony, from a roof."""

from __future__ import annotations

import math
import random

from geocalib_lab.training.worlds import outdoors
from geocalib_lab.training.worlds.nature import hills
from geocalib_lab.training.worlds.solids import Look, Vector, World
from geocalib_lab.training.worlds.stage import Place, Stage
from geocalib_lab.training.worlds.textures import Library
from geocalib_lab.training.worlds.weather import any_weather

CLEARANCE = 0.6
"""Metres from the eye to the nearest thing, about."""

REACH = 170.0
"""Metres around the middle within which houses and trees stand."""


def aloft(library: Library, rng: random.Random) -> World:
    """Roofs, roads, fields, woods and cars, 10 to 80 m below; the horizon is free."""
    stage = Stage(library, rng)
    height = 10 * 8 ** rng.random()
    weather = any_weather(library, rng, 1.2 * height + 60)
    place = stage.at(0, 0, rng.uniform(0, 2 * math.pi))
    stage.ground(stage.look(["grass", "grass", "sand", "asphalt"], (16.0, 16.0)))
    built = rng.choice([0.0, 0.15, 0.5, 1.0])
    _fields(place, rng)
    if not built and rng.random() < 0.6:
        hills(place, rng)
    roads = _roads(place, rng, 1 + round(4 * built))
    _houses(place, rng, roads, 3 + round(32 * built), built > 0.7)
    _woods(place, rng, round(rng.uniform(15, 50) * (1.3 - built)))
    eye = (
        _balcony(place, rng, height)
        if built and rng.random() < 0.25
        else _in_the_air(place, rng, height)
    )
    return World(
        "synthetic_aloft",
        eye,
        tuple(stage.solids),
        weather.sky,
        weather.light,
        (),
        # From above one sees far, or there is nothing to see.
        weather.haze * 10 / height,
        weather.exposure,
        library.pick("noise", rng),
    )


def _fields(place: Place, rng: random.Random) -> None:
    """Strips and patches of crops, meadow, soil and water, each a little higher than the last, so
    that no two are at one height."""
    stage = place.stage
    for index in range(rng.randrange(12, 24)):
        angle, away = rng.uniform(0, 2 * math.pi), rng.choice([90, 300]) * math.sqrt(rng.random())
        turn = rng.choice([0.0, 0.0, rng.uniform(-0.5, 0.5)])
        spot = place.at(away * math.sin(angle), away * math.cos(angle), turn)
        side = rng.uniform(3, 14)
        tint: Vector = (rng.uniform(0.35, 1.0), rng.uniform(0.5, 1.0), rng.uniform(0.2, 0.6))
        crop = stage.look(["grass", "sand", "plank", "bark", "grass"], (side, side), tint)
        if rng.random() < 0.12:
            crop = stage.look("cloud", (9.0, 9.0), (0.05, 0.12, 0.16), gloss=1.0)
        size = (
            rng.uniform(0.2, 0.8) * (40 + away),
            0.05 + 0.01 * index,
            rng.uniform(0.3, 1) * (40 + away),
        )
        spot.box(size, crop)


def _roads(place: Place, rng: random.Random, count: int) -> list[tuple[Place, float]]:
    """Roads that run along z in their frames, and half their breadths; cars on them."""
    stage = place.stage
    roads = []
    for index in range(count):
        half = rng.uniform(2.2, 6)
        turn = (index % 2) * math.pi / 2 + rng.choice([0.0, rng.gauss(0, 0.1)])
        road = place.at(0, 0, turn).at(
            (index // 2) * rng.choice([-45, 45]) + rng.uniform(-14, 14), 0
        )
        lane = stage.look(["road", "road", "road", "asphalt"], (2 * half, rng.uniform(6, 10)))
        road.box((2 * half, 0.4 + 0.01 * index, 700.0), lane)
        if rng.random() < 0.5:
            path = stage.look(["tile", "asphalt", "gravel"])
            for side in (-1, 1):
                road.box((2.0, 0.5, 300.0), path, side * (half + 1.0))
        for _ in range(rng.randrange(1, 5)):
            side = rng.choice([-1, 1])
            _car(road.at(side * 0.5 * half, rng.uniform(-60, 60), rng.gauss(0, 0.04)), rng)
        roads.append((road, half))
    return roads


def _car(place: Place, rng: random.Random) -> None:
    """A car as it looks from above: body, cabin, roof."""
    stage = place.stage
    paint = stage.look("plaster", (9.0, 9.0), stage.painted().tint, gloss=0.5)
    long, tall = rng.uniform(3.6, 5.2), rng.uniform(1.0, 1.6)
    place.box((1.8, 0.7, long), paint, base=0.5)
    place.box(
        (1.6, tall - 0.55, 0.5 * long), stage.look("plaster", tint=(0.05, 0.06, 0.08)), base=1.2
    )
    place.box((1.5, 0.05, 0.4 * long), paint, base=tall + 0.65)


def _houses(
    place: Place, rng: random.Random, roads: list[tuple[Place, float]], count: int, town: bool
) -> None:
    """Houses along the roads, most in line with them, and some anywhere."""
    stage = place.stage
    walls = [stage.look("facade", (6.0, 6.0)) for _ in range(5)]
    covers = [stage.look(["roof", "roof", "metal"], (4.0, 4.0)) for _ in range(4)]
    for index in range(count):
        road, half = rng.choice(roads)
        across, deep = 3.0 * rng.randrange(2, 6), 3.0 * rng.randrange(2, 5)
        tall = 3.0 * (rng.choice([2, 3, 4, 5, 7, 12]) if town else rng.choice([1, 1, 2, 2, 3]))
        side, along = rng.choice([-1, 1]), rng.gauss(0, 55)
        turn = -side * math.pi / 2 + rng.choice([0.0, 0.0, rng.gauss(0, 0.4)])
        set_back = half + 3 + deep / 2 + rng.choice([0.0, rng.uniform(0, 12), rng.uniform(0, 60)])
        spot = road.at(side * set_back, along, turn)
        if index < 3:
            bays = (rng.randrange(2, 6), rng.randrange(2, 4))
            outdoors.house(spot, rng, bays, round(tall / 3), 0.0)
        else:
            _block(spot, rng, (across, tall, deep), rng.choice(walls), rng.choice(covers))


def _block(place: Place, rng: random.Random, size: Vector, wall: Look, cover: Look) -> None:
    """A simple house: a ridged roof, or a flat one with something on it."""
    stage = place.stage
    across, tall, deep = size
    place.box(size, wall, top=stage.look(["asphalt", "gravel", "metal"]))
    if tall < 16 and rng.random() < 0.7:
        rise = rng.uniform(0.25, 0.55) * deep
        ends = stage.look(["plaster", "brick"])
        place.at(0, 0, math.pi / 2).gable((deep + 0.8, rise, across - 0.02), cover, ends, tall)
        place.box(
            (0.7, 1.4, 0.7), stage.look("brick"), 0.25 * across, 0.1 * deep, tall + 0.6 * rise
        )
    else:
        x, z = rng.uniform(-0.25, 0.25) * across, rng.uniform(-0.25, 0.25) * deep
        place.box((rng.uniform(1, 3), rng.uniform(0.8, 2.6), rng.uniform(1, 3)), wall, x, z, tall)


def _woods(place: Place, rng: random.Random, count: int) -> None:
    """Trees, in groves and alone; those near the middle in detail."""
    stage = place.stage
    greens = [stage.look("leaves", (3.0, 3.0)) for _ in range(4)]
    groves = [place.at(rng.gauss(0, 60), rng.gauss(0, 60)) for _ in range(rng.randrange(1, 5))]
    for index in range(count):
        if index % 3:
            spot = rng.choice(groves).at(rng.gauss(0, 14), rng.gauss(0, 14), rng.uniform(0, 6.3))
        else:
            spot = place.at(rng.uniform(-1, 1) * REACH, rng.uniform(-1, 1) * REACH)
        if index < 4:
            outdoors.tree(spot, rng, 3)
            continue
        wide, tall = rng.uniform(3, 9), rng.uniform(3, 11)
        spot.ball((wide, tall, wide), rng.choice(greens), 0, rng.uniform(0.4, 0.7) * tall)


def _in_the_air(place: Place, rng: random.Random, height: float) -> Vector:
    """A free place at that height, or above it."""
    x, z = rng.uniform(-25, 25), rng.uniform(-25, 25)
    while not place.stage.is_free(place.point(x, height, z), CLEARANCE):
        height += 3.0
    return place.point(x, height, z)


def _balcony(place: Place, rng: random.Random, height: float) -> Vector:
    """The eye stands on a balcony of a tall house, or leans out of its window."""
    stage = place.stage
    spot = place.at(rng.uniform(-25, 25), rng.uniform(-25, 25), rng.uniform(0, 2 * math.pi))
    across, deep, tall = rng.uniform(9, 25), rng.uniform(8, 14), height + rng.uniform(2, 25)
    front, floor = deep / 2, height - rng.uniform(1.3, 1.75)
    eye = spot.point(rng.uniform(-0.6, 0.6), height, front + rng.uniform(0.4, 0.9))
    if not stage.is_free(eye, CLEARANCE):
        return _in_the_air(place, rng, height)
    spot.box((across, tall, deep), stage.look("facade", (6.0, 6.0)), top=stage.look("asphalt"))
    if rng.random() < 0.6:
        wide, out = rng.uniform(2, 5), rng.uniform(1.1, 1.8)
        spot.box((wide, 0.2, out), stage.look(["asphalt", "tile"]), 0, front + out / 2, floor - 0.2)
        spot.screen(wide, 1.0, stage.look("fence", (1.2, 1.0)), 0, front + out, floor)
        spot.box((wide, 0.05, 0.06), stage.painted(), 0, front + out, floor + 1.0)
    return eye
