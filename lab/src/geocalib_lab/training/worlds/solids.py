"""What a world is made of. Metres; x right, y DOWN, z ahead; the ground is at y = 0, so that a
thing at height h has y = -h."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = tuple[float, float, float]
WHITE: Vector = (1.0, 1.0, 1.0)

_SIGNS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])


class Shape(enum.IntEnum):
    """The unit solids; each is stretched and turned by its axes."""

    BOX = 0
    """|x|, |y|, |z| <= 1."""
    BALL = 1
    """x^2 + y^2 + z^2 <= 1."""
    PILLAR = 2
    """x^2 + z^2 <= 1, |y| <= 1."""
    ROOM = 3
    """A box seen from within."""


@dataclass(frozen=True)
class Look:
    """What a face looks like."""

    layer: int
    """Number of the texture."""
    tile: tuple[float, float] | None = None
    """Metres across and down that the texture spans, from a corner of the face on; None: it
    spans the face."""
    tint: Vector = WHITE
    glow: float = 0.0
    """Light it gives by itself."""
    gloss: float = 0.0
    """How much it mirrors the sky, from 0 to 1."""


@dataclass(frozen=True)
class Solid:
    """A unit solid in its place: its points are centre + axes @ local."""

    shape: Shape
    centre: Vector
    axes: NDArray[np.float64]
    """(3, 3); the columns are the halves of its edges, not always at right angles."""
    side: Look
    top: Look
    bottom: Look
    porous: bool = False
    """Whether rays pass where its texture is not solid."""

    def corners(self) -> NDArray[np.float64]:
        """(8, 3) of the box around it."""
        return np.asarray(self.centre) + _SIGNS @ self.axes.T

    def holds(self, point: Vector, margin: float) -> bool:
        """Whether a point is within it or, about, nearer than the margin."""
        local = np.linalg.solve(self.axes, np.asarray(point) - np.asarray(self.centre))
        slack = margin / np.linalg.norm(self.axes, axis=0)
        if self.shape is Shape.ROOM:
            return bool(np.all(np.abs(local) < 1 - slack))
        if self.shape is Shape.BALL:
            return bool(np.linalg.norm(local / (1 + slack)) < 1)
        return bool(np.all(np.abs(local) < 1 + slack))


@dataclass(frozen=True)
class Lamp:
    """A point that shines alike to all sides."""

    place: Vector
    colour: Vector
    """Light one metre away."""


@dataclass(frozen=True)
class Ridge:
    """Far mountains all around: a silhouette above the horizon."""

    waves: tuple[tuple[int, float, float], ...]
    """(periods around, amplitude, phase) of its height as a tangent of elevation."""
    height: float
    """Mean tangent of elevation."""
    layer: int
    tint: Vector
    haze: float
    """From 0, clear, to 1, lost in the horizon's colour."""


@dataclass(frozen=True)
class Sky:
    """The colours of a sky, as linear light."""

    zenith: Vector
    horizon: Vector
    ground: Vector
    """Light from below."""
    cloud_layer: int
    cloud_cover: float
    """From 0, none, to 1, overcast."""
    cloud_size: float
    """Tiles per unit of the tangent plane overhead."""
    cloud_light: float
    glow: float
    """Brightness around the sun."""
    ridges: tuple[Ridge, ...] = ()


@dataclass(frozen=True)
class Light:
    """The strongest light, from far away, which throws shadows."""

    towards: Vector
    """Unit vector to where it comes from."""
    colour: Vector
    softness: float
    """Share of it that reaches shadows."""
    reach: float
    """Metres around the eye within which shadows are thrown."""


@dataclass(frozen=True)
class World:
    """All there is, seen from an eye."""

    kind: str
    eye: Vector
    solids: tuple[Solid, ...]
    sky: Sky
    light: Light
    lamps: tuple[Lamp, ...] = ()
    haze: float = 0.0
    """Share lost per metre."""
    exposure: float = 0.4
    """Mean brightness that the picture gets."""
    noise_layer: int = 0


def turned(yaw: float, tilt: float = 0.0, lean: float = 0.0) -> NDArray[np.float64]:
    """(3, 3) rotation: a lean about z, then a tilt about x, then a yaw about the vertical that
    turns +z towards +x; radians."""
    cy, sy = math.cos(yaw), math.sin(yaw)
    cx, sx = math.cos(tilt), math.sin(tilt)
    cz, sz = math.cos(lean), math.sin(lean)
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    about_z = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    matrix: NDArray[np.float64] = about_y @ about_x @ about_z
    return matrix
