"""The heading of the dominant walls, from the straight segments of all photos.

The plane through a camera and one of its segments cuts the horizontal plane in one direction: that
of the edge itself, if the edge is level. Edges of walls that are parallel, or at right angles, name
the same heading modulo 90 degrees, whatever photo they are in; all others are scattered.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from geocalib.arrays import Array
from geocalib.cameras import Camera
from geocalib.geometry.segments import Segments

QUARTER = math.pi / 2

BINS = 360
"""Number of bins in a quarter of a turn."""

WIDTH = 4
"""Bins to either side that belong to one heading: a degree."""

FLAT = math.sin(math.radians(10))
"""Planes that are steeper, as those of upright edges, and planes that are nearly level, as those
of the horizon, say nothing of a heading."""

LEAST_SHARE = 3.0
"""How much more than its share the best heading must have of all, to be that of walls."""


def votes(segments: Segments, camera: Camera, world: Array) -> tuple[Array, Array]:
    """The heading that each segment would have as a level edge, radians (N,), and its weight (N,).

    world: (3, 3) rotation from the camera frame to a level world with z up.
    """
    rays, valid = camera.unproject(segments.ends[None])
    normal = np.cross(rays[0, :, 0], rays[0, :, 1]) @ world.T
    length = np.linalg.norm(normal, axis=-1)
    normal = normal / np.maximum(length, 1e-12)[:, None]
    level = np.hypot(normal[:, 0], normal[:, 1])
    good = valid[0].all(-1) & (np.abs(normal[:, 2]) > FLAT) & (level > FLAT)
    return np.arctan2(-normal[:, 0], normal[:, 1])[good], (length * level**2)[good]


def dominant_heading(found: Iterable[tuple[Array, Array]]) -> float | None:
    """The heading of the walls, radians within 45 degrees of 0, from the votes of all photos;
    None if there are no walls that stand out."""
    parts = list(found)
    angle = np.concatenate([angle for angle, _ in parts]) if parts else np.empty(0)
    weight = np.concatenate([weight for _, weight in parts]) if parts else np.empty(0)
    if not len(angle) or weight.sum() <= 0:
        return None
    place = np.floor(np.mod(angle, QUARTER) / QUARTER * BINS).astype(int) % BINS
    histogram = np.bincount(place, weight, BINS)
    shifts = range(-WIDTH, WIDTH + 1)
    around = np.sum([np.roll(histogram, shift) for shift in shifts], axis=0)
    best = int(np.argmax(around))
    if around[best] < LEAST_SHARE * around.mean():
        return None
    # The mean of four times the angle does not jump at a quarter of a turn.
    near = np.minimum((place - best) % BINS, (best - place) % BINS) <= WIDTH
    mean = np.sum(weight[near] * np.exp(4j * angle[near]))
    return float(np.angle(mean)) / 4
