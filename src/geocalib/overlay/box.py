"""A cube standing on the ground in front of the camera, where the picture shows it well.

Lengths are in heights of the camera above the ground, which one picture cannot tell.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from geocalib.cameras import Camera
from geocalib.geometry.gravity import world_from_camera
from geocalib.overlay.draw import Array, array

GOOD_SIZE = 0.32
"""How large the box should appear, as a share of the image's shorter side."""
TRIED_SIZES = (0.1, 0.16, 0.23, 0.3)
"""Sides tried, as that share, if seen from the front."""
PLACES = 25
"""Places tried along each side of the image."""
MARGIN = 0.03
"""Share of the image's sides that the box keeps off its border."""
LEAST_SLOPE = math.sin(math.radians(0.2))
"""Least slope of the ray to the box's foot: farther away the ground is a line."""
HIGHEST = 0.8
"""A box lower than the camera shows its lid."""
STEEPEST = math.sin(math.radians(45))
"""Largest slope of that ray: from above a box is not recognisable."""
GOOD_PLACE = (0.5, 0.62)
"""Preferred place of the box's middle, as shares of the image's sides."""
TURN_DEG = 32.0
"""Angle of the box to the line of sight, so that two walls are visible."""
SAMPLES = 25
"""Points along an edge, which a lens may bend."""

CORNERS = np.array(list(itertools.product((0, 1), repeat=3)))
"""(8, 3): x, y (1 is the ground) and z of each corner of the unit cube."""
EDGES = [
    (a, b)
    for a, b in itertools.combinations(range(8), 2)
    if int((CORNERS[a] != CORNERS[b]).sum()) == 1
]
"""Edges of the box, as pairs of corners."""


@dataclass(frozen=True)
class Face:
    """A side of the box that the camera sees."""

    outline: Array
    """(N, 2) pixels."""
    lid: bool


@dataclass(frozen=True)
class Box:
    """A cube's picture, in pixels."""

    corners: Array
    """(8, 2), as ``CORNERS``."""
    seen: tuple[Array, ...]
    """Edges (SAMPLES, 2) in view."""
    hidden: tuple[Array, ...]
    """Edges (SAMPLES, 2) behind the box itself."""
    faces: tuple[Face, ...]


def place_box(camera: Camera, gravity: Array) -> Box | None:
    """The best placed box under one camera and gravity (3,), or None: no room on the ground."""
    width, height = camera.size[0].tolist()
    short = min(width, height)
    x, y = (side * np.linspace(0, 1, PLACES + 2)[1:-1] for side in (width, height))
    pixels = np.stack(np.meshgrid(x, y, indexing="xy"), -1).reshape(-1, 2)
    level = world_from_camera(gravity)
    rays, valid = camera.unproject(pixels[None])
    rays = (rays[0] @ level.T)[valid[0]]
    rays = rays[rays[:, 1] > LEAST_SLOPE]
    feet = rays / rays[:, 1:2]
    distance = np.linalg.norm(feet, axis=-1)
    shares = short / camera.f * np.array(TRIED_SIZES)
    feet, sides = feet.repeat(len(shares), 0), np.outer(distance, shares).reshape(-1)
    if len(feet) == 0:
        return None

    # Corners tell whether a box fits: coarse, but the winner is checked along its edges.
    corners = _corners(feet, sides)
    points, valid = camera.project((corners @ level).reshape(1, -1, 3))
    points, valid = points.reshape(-1, 8, 2), valid.reshape(-1, 8)
    low, high = points.min(1), points.max(1)
    border = MARGIN * camera.size[0]
    fits = valid.all(1) & (low > border).all(1) & (high < camera.size[0] - border).all(1)
    extent = (high - low).max(1) / short
    place = 0.5 * (low + high) / camera.size[0]
    away = np.linalg.norm(place - GOOD_PLACE, axis=-1)
    steep = 1 / np.linalg.norm(feet, axis=-1)
    cost = (
        np.abs(np.log(extent / GOOD_SIZE))
        + 1.5 * away
        + 2 * (sides - HIGHEST).clip(min=0)
        + 2 * (steep - STEEPEST).clip(min=0)
    )
    cost = np.where(fits, cost, np.inf)
    for best in cost.argsort(kind="stable")[:10].tolist():
        if math.isfinite(cost[best].item()):
            box = _picture(camera, level, corners[best])
            if box is not None:
                return box
    return None


def _corners(feet: Array, sides: Array) -> Array:
    """(N, 8, 3) corners in the level frame of cubes on feet (N, 3), turned to the camera."""
    turn = np.arctan2(feet[:, 0], feet[:, 2]) + math.radians(TURN_DEG)
    # The middle of the floor is at the origin.
    x, y, z = (CORNERS - (0.5, 1.0, 0.5)).T
    sine, cosine = np.sin(turn)[:, None], np.cos(turn)[:, None]
    y = np.broadcast_to(y, (len(feet), 8))
    own = np.stack([cosine * x + sine * z, y, cosine * z - sine * x], -1)
    return feet[:, None] + sides[:, None, None] * own


def _picture(camera: Camera, level: Array, corners: Array) -> Box | None:
    """The box with corners (8, 3) in the level frame, or None if the lens does not show all."""
    ends = corners[np.array(EDGES)]
    along = np.linspace(0, 1, SAMPLES)[:, None, None]
    edges = (ends[:, 0] * (1 - along) + ends[:, 1] * along).swapaxes(0, 1)
    pixels, valid = camera.project((edges @ level)[None])
    if not valid.all():
        return None
    curve = {edge: array(pixels[0, i]) for i, edge in enumerate(EDGES)}
    middle = corners.mean(0)
    faces, seen = [], set()
    for axis, side in itertools.product(range(3), (0, 1)):
        own = np.flatnonzero(CORNERS[:, axis] == side)
        face = corners[own].mean(0)
        # The camera is at the origin: a face is seen if it is turned against its own place.
        if (face - middle) @ face < 0:
            a, b, c, d = own.tolist()
            seen.update([(a, b), (a, c), (b, d), (c, d)])
            loop = [curve[a, b], curve[b, d], curve[c, d][::-1], curve[a, c][::-1]]
            faces.append(Face(np.concatenate(loop), lid=(axis, side) == (1, 0)))
    points, _ = camera.project((corners @ level)[None])
    return Box(
        array(points[0]),
        tuple(curve[edge] for edge in EDGES if edge in seen),
        tuple(curve[edge] for edge in EDGES if edge not in seen),
        tuple(faces),
    )
