"""Where a world is put together: solids with looks, placed in turned frames."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from geocalib_lab.training.worlds.solids import (
    WHITE,
    Look,
    Shape,
    Solid,
    Vector,
    turned,
)
from geocalib_lab.training.worlds.textures import Library

TILES = {
    "brick": 0.8,
    "tile": 1.2,
    "plank": 1.6,
    "plaster": 3.0,
    "paper": 1.2,
    "gravel": 1.6,
    "grass": 2.2,
    "asphalt": 3.0,
    "sand": 3.0,
    "metal": 1.6,
    "marble": 2.0,
    "bark": 1.2,
    "roof": 2.4,
    "leaves": 1.6,
}
"""Metres that a tile of a material spans; pictures of things span the face."""

ENDLESS = 1e6
"""Metres from the middle to the end of the ground."""


@dataclass
class Stage:
    """The solids of a world in the making."""

    library: Library
    rng: random.Random
    solids: list[Solid] = field(default_factory=list)

    def look(
        self,
        kinds: str | Sequence[str],
        tile: tuple[float, float] | None = None,
        tint: Vector | None = None,
        glow: float = 0.0,
        gloss: float = 0.0,
    ) -> Look:
        """Any texture of any of the kinds, in its usual size if none is given."""
        kind = kinds if isinstance(kinds, str) else self.rng.choice(kinds)
        if tile is None and kind in TILES:
            side = TILES[kind] * self.rng.uniform(0.6, 1.5)
            tile = (side, side)
        return Look(self.library.pick(kind, self.rng), tile, tint or self.tint(), glow, gloss)

    def tint(self) -> Vector:
        """A faint colour cast, drawn at random."""
        low = self.rng.uniform(0.6, 0.95)
        red, green, blue = (self.rng.uniform(low, 1.05) for _ in range(3))
        return red, green, blue

    def painted(self) -> Look:
        """Plaster, planks, cloth or metal of any colour, for furniture and clutter."""
        tint = tuple(self.rng.uniform(0.15, 1.0) for _ in range(3))
        return self.look(
            ["plaster", "plank", "paper", "metal", "plaster"], tint=(tint[0], tint[1], tint[2])
        )

    def ground(self, look: Look) -> None:
        """Level ground that extends without end."""
        axes = np.diag([ENDLESS, 0.5, ENDLESS])
        self.solids.append(Solid(Shape.BOX, (0.0, 0.5, 0.0), axes, look, look, look))

    def at(self, x: float, z: float, yaw: float = 0.0) -> Place:
        """A frame on the ground."""
        return Place(self, x, z, yaw)

    def is_free(self, point: Vector, margin: float = 0.35) -> bool:
        """Whether an eye may be there."""
        return all(
            solid.holds(point, margin) == (solid.shape is Shape.ROOM) for solid in self.solids
        )


@dataclass(frozen=True)
class Place:
    """A level frame whose origin is on the ground; z is ahead, x to the right."""

    stage: Stage
    x: float
    z: float
    yaw: float

    def at(self, x: float, z: float, yaw: float = 0.0) -> Place:
        """A frame within this one."""
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        return Place(
            self.stage, self.x + cos * x + sin * z, self.z - sin * x + cos * z, self.yaw + yaw
        )

    def point(self, x: float, height: float, z: float) -> Vector:
        """World coordinates of a point of this frame."""
        there = self.at(x, z)
        return there.x, -height, there.z

    def put(
        self,
        shape: Shape,
        where: Vector,
        size: Vector,
        side: Look,
        top: Look | None = None,
        bottom: Look | None = None,
        turn: NDArray[np.float64] | None = None,
        porous: bool = False,
    ) -> None:
        """A solid of full size (across, high, deep) whose middle is at (x, height, z)."""
        axes = turned(self.yaw) @ (np.eye(3) if turn is None else turn) @ np.diag(size) / 2
        top = top or side
        centre = self.point(*where)
        solid = Solid(shape, centre, axes, side, top, bottom or top, porous)
        self.stage.solids.append(solid)

    def box(
        self,
        size: Vector,
        side: Look,
        x: float = 0.0,
        z: float = 0.0,
        base: float = 0.0,
        top: Look | None = None,
    ) -> None:
        """An upright box (across, high, deep) that stands at a height."""
        self.put(Shape.BOX, (x, base + size[1] / 2, z), size, side, top)

    def leaning(
        self, size: Vector, side: Look, x: float, height: float, z: float, tilt: float, lean: float
    ) -> None:
        """A box that leans; its middle is at a height."""
        self.put(Shape.BOX, (x, height, z), size, side, turn=turned(0.0, tilt, lean))

    def pillar(
        self,
        width: float,
        tall: float,
        side: Look,
        x: float = 0.0,
        z: float = 0.0,
        base: float = 0.0,
        tilt: float = 0.0,
        lean: float = 0.0,
    ) -> None:
        """A round pillar whose foot is at a height."""
        turn = turned(0.0, tilt, lean)
        foot = turn @ np.array([0.0, -tall / 2, 0.0])
        where = (x + float(foot[0]), base - float(foot[1]), z + float(foot[2]))
        self.put(Shape.PILLAR, where, (width, tall, width), side, turn=turn)

    def ball(
        self,
        size: Vector,
        side: Look,
        x: float = 0.0,
        height: float = 0.0,
        z: float = 0.0,
        porous: bool = False,
    ) -> None:
        """An ellipsoid about (x, height, z)."""
        self.put(Shape.BALL, (x, height, z), size, side, porous=porous)

    def screen(
        self,
        width: float,
        tall: float,
        look: Look,
        x: float = 0.0,
        z: float = 0.0,
        base: float = 0.0,
    ) -> None:
        """A thin upright sheet with holes where its texture has them."""
        self.put(Shape.BOX, (x, base + tall / 2, z), (width, tall, 0.02), look, porous=True)

    def gable(self, size: Vector, slopes: Look, ends: Look, height: float) -> None:
        """A ridged roof over (across, high, deep), its eaves at a height, its ridge along z.

        It is a box squeezed to a rhombus, whose lower half is hidden in the house.
        """
        half, rise, deep = size[0] / 2, size[1], size[2] / 2
        rhombus = np.array([[half / 2, 0, half / 2], [-rise / 2, 0, rise / 2], [0, deep, 0]])
        axes = turned(self.yaw) @ rhombus
        centre = self.point(0, height, 0)
        self.stage.solids.append(Solid(Shape.BOX, centre, axes, slopes, ends, ends))


def white_light(strength: float) -> Vector:
    """Light of equal red, green and blue."""
    return (WHITE[0] * strength, WHITE[1] * strength, WHITE[2] * strength)
