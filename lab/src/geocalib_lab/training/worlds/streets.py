"""Worlds in town: streets, squares and courtyards."""

from __future__ import annotations

import math
import random

from geocalib_lab.training.worlds import outdoors
from geocalib_lab.training.worlds.furniture import clutter, person, ramp, stairs
from geocalib_lab.training.worlds.solids import Lamp, Vector, World
from geocalib_lab.training.worlds.stage import Place, Stage
from geocalib_lab.training.worlds.textures import Library
from geocalib_lab.training.worlds.weather import Weather, any_weather

TRIES = 80
"""Places for the eye that are tried."""


def street(library: Library, rng: random.Random) -> World:
    """Houses along a road, some of them askew, with cars, poles, trees and people."""
    stage = Stage(library, rng)
    weather = any_weather(library, rng, 45.0)
    stage.ground(stage.look(["asphalt", "grass", "gravel", "tile"]))
    place = stage.at(0, 0, rng.uniform(0, 2 * math.pi))
    half, path = rng.uniform(2.5, 7), rng.uniform(1.2, 4)
    lane = stage.look("road", (2 * half, rng.uniform(5, 9)))
    place.box((2 * half, 0.02, 160.0), lane, top=lane)
    if rng.random() < 0.4:
        zebra = stage.look("crossing")
        place.box((2 * half, 0.03, 3.0), zebra, z=rng.uniform(-12, 12))
    paving = stage.look(["tile", "gravel", "brick", "asphalt"])
    for side in (-1, 1):
        place.box((path, 0.14, 160.0), paving, side * (half + path / 2), top=paving)
        place.box((0.15, 0.16, 160.0), stage.look("asphalt"), side * (half + 0.07))
        _row_of_houses(place, rng, side, half + path, weather.night)
    outdoors.far_houses(place, rng, 45.0)
    lamps = _street_things(place, rng, half, path, weather.night)
    eye = _eye(stage, place, rng, (half + path, 14.0))
    return _world("synthetic_street", stage, eye, weather, lamps)


def _row_of_houses(place: Place, rng: random.Random, side: int, edge: float, lit: float) -> None:
    z = rng.uniform(-34, -26)
    facing = -side * math.pi / 2
    while z < 34:
        bays = (rng.randrange(2, 7), rng.randrange(2, 5))
        floors = rng.choice([1, 2, 2, 3, 4, 5, 7])
        askew = rng.gauss(0, 0.35) if rng.random() < 0.25 else 0.0
        depth = bays[1] * 1.7 + rng.choice([0.0, 0.0, rng.uniform(0, 5)])
        depth += 0.5 * bays[0] * 3 * abs(math.sin(askew))
        middle = z + bays[0] * 1.6
        x = side * (edge + depth + 0.5)
        size = outdoors.house(place.at(x, middle, facing + askew), rng, bays, floors, lit)
        z = middle + size[0] / 2 + rng.choice([0.0, 0.0, rng.uniform(1, 8)])


def _street_things(
    place: Place, rng: random.Random, half: float, path: float, lit: float
) -> list[Lamp]:
    stage = place.stage
    lamps = []
    kerb = half + 0.5
    for _ in range(rng.randrange(1, 5)):
        side = rng.choice([-1, 1])
        turn = rng.choice([0, math.pi]) + rng.gauss(0, 0.05)
        outdoors.car(place.at(side * (half - 1.1), rng.uniform(-25, 25), turn), rng)
    step = rng.uniform(8, 16)
    for index in range(rng.randrange(2, 6)):
        side = rng.choice([-1, 1])
        z = (index - 2) * step
        outdoors.lamp_post(place.at(side * kerb, z, -side * math.pi / 2), rng, lit)
        if lit > 0.5:
            lamps.append(Lamp(place.point(side * (kerb - 1), 5, z), (6.0, 4.5, 2.5)))
    for _ in range(rng.randrange(0, 4)):
        spot = place.at(rng.choice([-1, 1]) * kerb, rng.uniform(-20, 20), rng.uniform(0, 6.3))
        rng.choice([outdoors.sign_post, outdoors.bench, clutter, outdoors.bush])(spot, rng)
    for _ in range(rng.randrange(0, 4)):
        spot = place.at(
            rng.choice([-1, 1]) * (kerb + 0.3), rng.uniform(-20, 20), rng.uniform(0, 6.3)
        )
        outdoors.tree(spot, rng, 3)
    for _ in range(rng.randrange(0, 4)):
        x = rng.choice([-1, 1]) * (half + rng.uniform(0.3, 0.9) * path)
        person(place.at(x, rng.uniform(-12, 12), rng.uniform(0, 6.3)), rng)
    if rng.random() < 0.3:
        wire = stage.look("plaster", tint=(0.1, 0.1, 0.1))
        for x in (-0.6, 0.6):
            place.box((0.03, 0.03, 120.0), wire, x, base=rng.uniform(5, 7))
    return lamps[:3]


def plaza(library: Library, rng: random.Random) -> World:
    """A square with buildings at all angles, stairs, ramps, columns and statues."""
    stage = Stage(library, rng)
    weather = any_weather(library, rng, 45.0)
    stage.ground(stage.look(["tile", "gravel", "brick", "asphalt", "marble"]))
    place = stage.at(0, 0, rng.uniform(0, 2 * math.pi))
    count = rng.randrange(5, 9)
    radius = rng.uniform(6, 20)
    for index in range(count):
        angle = 2 * math.pi * (index + rng.uniform(-0.2, 0.2)) / count
        away = radius * rng.uniform(0.9, 1.3) + 7
        spot = place.at(away * math.sin(angle), away * math.cos(angle))
        facing = spot.at(0, 0, angle + math.pi + rng.gauss(0, 0.3))
        bays = (rng.randrange(3, 8), rng.randrange(2, 5))
        outdoors.house(facing, rng, bays, rng.choice([1, 2, 3, 4, 6, 9]), weather.night)
    outdoors.far_houses(place, rng, radius + 28)
    makers = [
        stairs,
        ramp,
        outdoors.bench,
        outdoors.sign_post,
        person,
        outdoors.bush,
        clutter,
        _statue,
        _arcade,
        outdoors.car,
    ]
    for _ in range(rng.randrange(5, 10)):
        x, z = rng.uniform(-0.8, 0.8) * radius, rng.uniform(-0.8, 0.8) * radius
        turn = rng.choice([0, math.pi / 2, rng.uniform(0, 6.3)])
        rng.choice(makers)(place.at(x, z, turn), rng)
    for _ in range(rng.randrange(0, 3)):
        spot = place.at(rng.uniform(-0.8, 0.8) * radius, rng.uniform(-0.8, 0.8) * radius)
        outdoors.tree(spot, rng, 4)
    lamps = []
    for _ in range(rng.randrange(1, 4)):
        x, z = rng.uniform(-0.7, 0.7) * radius, rng.uniform(-0.7, 0.7) * radius
        outdoors.lamp_post(place.at(x, z, rng.uniform(0, 6.3)), rng, weather.night)
        if weather.night > 0.5:
            lamps.append(Lamp(place.point(x, 5, z), (8.0, 6.5, 4.0)))
    eye = _eye(stage, place, rng, (0.7 * radius, 0.7 * radius))
    return _world("synthetic_plaza", stage, eye, weather, lamps)


def _statue(place: Place, rng: random.Random) -> None:
    plinth = rng.uniform(0.8, 2.5)
    place.box((1.4, plinth, 1.4), place.stage.look(["marble", "brick"]))
    place.box((1.7, 0.2, 1.7), place.stage.look("marble"), base=plinth)
    place.pillar(0.5, rng.uniform(2, 8), place.stage.look("marble"), base=plinth + 0.2)


def _arcade(place: Place, rng: random.Random) -> None:
    """A row of columns under a beam."""
    look, count = place.stage.look(["marble", "plaster", "plank"]), rng.randrange(3, 6)
    step, tall = rng.uniform(1.8, 3.5), rng.uniform(2.6, 5)
    for index in range(count):
        place.pillar(0.4, tall, look, (index - (count - 1) / 2) * step)
    place.box((count * step, 0.6, 0.8), look, base=tall)


def _eye(stage: Stage, place: Place, rng: random.Random, reach: tuple[float, float]) -> Vector:
    """A free place for the eye: mostly at the height of a person, sometimes far above."""
    for _ in range(TRIES):
        height = (
            rng.choice([rng.uniform(3, 12), rng.uniform(5, 40)])
            if rng.random() < 0.15
            else rng.uniform(0.9, 2.2)
        )
        eye = place.point(rng.uniform(-1, 1) * reach[0], height, rng.uniform(-1, 1) * reach[1])
        if stage.is_free(eye):
            return eye
    return place.point(0.0, 45.0, 0.0)


def _world(kind: str, stage: Stage, eye: Vector, weather: Weather, lamps: list[Lamp]) -> World:
    return World(
        kind,
        eye,
        tuple(stage.solids),
        weather.sky,
        weather.light,
        tuple(lamps),
        weather.haze,
        weather.exposure,
        stage.library.pick("noise", stage.rng),
    )
