"""The light and the sky of outdoor worlds."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from geocalib_lab.training.worlds.solids import Light, Ridge, Sky, Vector
from geocalib_lab.training.worlds.textures import Library


@dataclass(frozen=True)
class Weather:
    """Sky, sun and how far one sees."""

    sky: Sky
    light: Light
    haze: float
    exposure: float
    night: float
    """From 0 by day to 1 by night: how bright lamps and windows are lit."""


def any_weather(library: Library, rng: random.Random, reach: float) -> Weather:
    """Sun, clouds, overcast, evening, fog or night."""
    mood = rng.choice(
        ["clear", "clear", "fair", "fair", "overcast", "evening", "fog", "night", "fair"]
    )
    height = math.radians(rng.uniform(4, 18) if mood == "evening" else rng.uniform(20, 75))
    turn = rng.uniform(0, 2 * math.pi)
    towards = (
        math.cos(height) * math.sin(turn),
        -math.sin(height),
        math.cos(height) * math.cos(turn),
    )
    cover = {
        "clear": rng.uniform(0, 0.3),
        "fair": rng.uniform(0.3, 0.75),
        "evening": rng.uniform(0.2, 0.7),
    }
    zenith, horizon, sun, softness = _colours(mood, rng)
    sky = Sky(
        zenith,
        horizon,
        _scaled(horizon, rng.uniform(0.2, 0.5)),
        library.pick("cloud", rng),
        cover.get(mood, rng.uniform(0.75, 1.0)),
        rng.uniform(0.12, 0.6),
        rng.uniform(0.9, 1.8),
        rng.uniform(0.2, 0.6) if mood in ("clear", "fair", "evening") else 0.0,
        _ridges(library, rng),
    )
    haze = rng.uniform(0.003, 0.012) if mood == "fog" else rng.choice([0.0003, 0.001, 0.003])
    night = rng.uniform(0.6, 1) if mood == "night" else rng.choice([0.0, 0.0, 0.2])
    exposure = rng.uniform(0.08, 0.2) if mood == "night" else rng.uniform(0.14, 0.4)
    return Weather(sky, Light(towards, sun, softness, reach), haze, exposure, night)


def _colours(mood: str, rng: random.Random) -> tuple[Vector, Vector, Vector, float]:
    """Zenith, horizon, sun, and the share of sunlight in shadows."""
    if mood == "night":
        return (0.02, 0.03, 0.07), (0.07, 0.07, 0.1), (0.06, 0.07, 0.1), 0.5
    if mood in ("overcast", "fog"):
        grey = rng.uniform(0.7, 1.1)
        return (grey * 0.9, grey * 0.95, grey), (grey, grey, grey), (0.25, 0.25, 0.25), 0.7
    if mood == "evening":
        warm = rng.uniform(0.3, 0.8)
        return (
            (0.2, 0.3, 0.55),
            (1.1, 1.1 - 0.5 * warm, 1.0 - 0.8 * warm),
            (1.8, 1.8 - 0.9 * warm, 1.8 - 1.4 * warm),
            0.02,
        )
    deep = rng.uniform(0.3, 1.0)
    sun = rng.uniform(1.2, 3.0)
    return (
        (0.5 - 0.35 * deep, 0.65 - 0.3 * deep, 0.95 - 0.1 * deep),
        (rng.uniform(0.7, 0.95), 0.9, 1.0),
        (sun, 0.95 * sun, 0.85 * sun),
        0.02,
    )


def _scaled(colour: Vector, factor: float) -> Vector:
    return colour[0] * factor, colour[1] * factor, colour[2] * factor


def _ridges(library: Library, rng: random.Random) -> tuple[Ridge, ...]:
    """Far hills or mountains behind one another, the farthest first; often none."""
    count = rng.choice([0, 0, 1, 2, 3])
    steep = rng.choice([0.02, 0.05, 0.15])
    ridges = []
    for index in range(count):
        waves = []
        for _ in range(14):
            periods = rng.randrange(1, 60)
            amplitude = rng.uniform(0.3, 1) * steep / (1 + periods / 4)
            waves.append((periods, amplitude, rng.uniform(0, 2 * math.pi)))
        height = steep * rng.uniform(0.2, 1.0) * (1 - index / 4)
        haze = 0.85 - 0.25 * index - rng.uniform(0, 0.2)
        tint = (rng.uniform(0.2, 0.5), rng.uniform(0.3, 0.6), rng.uniform(0.25, 0.6))
        layer = library.pick(rng.choice(["grass", "gravel", "sand", "cloud"]), rng)
        ridges.append(Ridge(tuple(waves), height, layer, tint, haze))
    if rng.random() < 0.35:
        ridges.append(_treeline(library, rng))
    return tuple(ridges)


def _treeline(library: Library, rng: random.Random) -> Ridge:
    """A wood in the middle distance, of ragged height."""
    height = rng.uniform(0.015, 0.07)
    waves = []
    for periods in (3, 7, 19, 43, 97, 163, 251, 389):
        amplitude = height * rng.uniform(0.05, 0.2)
        waves.append((periods + rng.randrange(3), amplitude, rng.uniform(0, 2 * math.pi)))
    tint = (rng.uniform(0.4, 0.9), rng.uniform(0.5, 0.9), rng.uniform(0.3, 0.7))
    layer = library.pick("leaves", rng)
    return Ridge(tuple(waves), height, layer, tint, rng.uniform(0.05, 0.4))
