"""Worlds out of town: fields, woods and shores."""

from __future__ import annotations

import math
import random

from geocalib_lab.training.worlds import outdoors
from geocalib_lab.training.worlds.furniture import person
from geocalib_lab.training.worlds.solids import Vector, World
from geocalib_lab.training.worlds.stage import Place, Stage
from geocalib_lab.training.worlds.textures import Library
from geocalib_lab.training.worlds.weather import any_weather

TRIES = 80
"""Places for the eye that are tried."""


def nature(library: Library, rng: random.Random) -> World:
    """Meadow, wood, desert, snow or sea, with hills, trees, rocks and a hut."""
    stage = Stage(library, rng)
    weather = any_weather(library, rng, 45.0)
    place = stage.at(0, 0, rng.uniform(0, 2 * math.pi))
    wet = rng.random() < 0.25
    soil = stage.look(["grass", "grass", "sand", "gravel"])
    if wet:
        water = stage.look("cloud", (6.0, 3.0), (0.05, 0.12, 0.16), gloss=1.0)
        stage.ground(water)
        shore = rng.uniform(8, 30)
        place.box((400.0, 0.3, 200.0), soil, z=100 - shore, top=soil)
    else:
        stage.ground(soil)
        if rng.random() < 0.6:
            hills(place, rng)
    if rng.random() < 0.5:
        track = stage.look(["gravel", "sand", "asphalt", "plank"])
        place.at(0, 0, rng.uniform(-0.5, 0.5)).box(
            (rng.uniform(1, 4), 0.32 if wet else 0.03, rng.uniform(20, 200)), track
        )
    _grow(place, rng, 5.0 if wet else 0.0)
    if rng.random() < 0.4:
        spot = place.at(rng.uniform(-10, 10), rng.uniform(3, 14), rng.uniform(0, 6.3))
        bays = (rng.randrange(1, 4), rng.randrange(1, 4))
        outdoors.house(spot, rng, bays, rng.choice([1, 1, 2]), weather.night)
    if rng.random() < 0.5:
        spot = place.at(rng.uniform(-5, 5), rng.uniform(3, 12), rng.uniform(0, 6.3))
        outdoors.fence(spot, rng, rng.uniform(5, 30))
    if rng.random() < 0.4:
        person(place.at(rng.uniform(-5, 5), rng.uniform(2, 9), rng.uniform(0, 6.3)), rng)
    for _ in range(rng.randrange(0, 4)):
        spot = place.at(rng.uniform(-8, 8), rng.uniform(1, 9), rng.uniform(0, 6.3))
        rng.choice([outdoors.bench, outdoors.sign_post, _hut, outdoors.car])(spot, rng)
    return World(
        "synthetic_nature",
        _eye(stage, place, rng),
        tuple(stage.solids),
        weather.sky,
        weather.light,
        (),
        weather.haze,
        weather.exposure,
        library.pick("noise", rng),
    )


def hills(place: Place, rng: random.Random) -> None:
    """Rolling ground: wide, flat mounds half sunk in it."""
    look = place.stage.look(["grass", "grass", "sand", "gravel"], (4.0, 4.0))
    for _ in range(rng.randrange(3, 9)):
        angle, away = rng.uniform(0, 2 * math.pi), rng.uniform(30, 160)
        wide = away * rng.uniform(0.6, 1.5)
        size = (wide, wide * rng.uniform(0.04, 0.22), wide * rng.uniform(0.5, 1.4))
        spot = place.at(away * math.sin(angle), away * math.cos(angle), rng.uniform(0, 3))
        spot.ball(size, look, 0, -0.1 * size[1])
    if rng.random() < 0.5:
        # A long slope on one side.
        wide, angle = rng.uniform(60, 160), rng.uniform(0.04, 0.25)
        foot = wide / 2 * math.cos(angle) + rng.uniform(4, 25)
        place.at(0, 0, rng.uniform(0, 6.3)).leaning(
            (wide * rng.uniform(1, 2), 1.0, wide),
            look,
            0,
            wide / 2 * math.sin(angle),
            foot,
            angle,
            0,
        )


def _grow(place: Place, rng: random.Random, nearest: float) -> None:
    """Trees near and far, bushes and rocks; more at the front of the frame, away from a shore."""
    dense = rng.random()
    for _ in range(rng.randrange(3, 6 + round(12 * dense))):
        angle, away = (
            rng.uniform(0, 2 * math.pi),
            rng.choice([rng.uniform(2, 9), rng.uniform(5, 18), rng.uniform(6, 40)]),
        )
        x, z = away * math.sin(angle), away * math.cos(angle)
        spot = place.at(x, abs(z) + nearest if nearest else z, rng.uniform(0, 6.3))
        outdoors.tree(spot, rng, rng.randrange(3, 6) if away < 14 else 2)
    for _ in range(rng.randrange(2, 9)):
        maker = rng.choice([outdoors.bush, outdoors.rock, outdoors.rock])
        maker(place.at(rng.uniform(-10, 10), rng.uniform(-6, 12), rng.uniform(0, 6.3)), rng)


def _hut(place: Place, rng: random.Random) -> None:
    """A small cabin of boards with a steep roof."""
    stage = place.stage
    size = (rng.uniform(2, 5), rng.uniform(2, 3), rng.uniform(2, 5))
    place.box(size, stage.look(["plank", "brick", "metal"]))
    slopes, ends = stage.look(["roof", "plank", "metal"]), stage.look("plank")
    rise = rng.uniform(0.3, 0.9) * size[0]
    place.gable((size[0] + 0.6, rise, size[2] - 0.02), slopes, ends, size[1])
    place.box((0.9, 1.9, 0.1), stage.look("door"), 0, size[2] / 2)


def _eye(stage: Stage, place: Place, rng: random.Random) -> Vector:
    for _ in range(TRIES):
        height = rng.uniform(4, 40) if rng.random() < 0.15 else rng.uniform(0.9, 2.2)
        eye = place.point(rng.uniform(-6, 6), height, rng.uniform(-4, 8))
        if stage.is_free(eye):
            return eye
    return place.point(0.0, 45.0, 0.0)
