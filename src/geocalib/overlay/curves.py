"""Where the lines on a photo run: pure geometry, in pixels of the picture drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from geocalib.cameras import Camera
from geocalib.geometry.fields import perspective_field
from geocalib.geometry.gravity import world_from_camera
from geocalib.overlay.draw import Array, array

STEPS_DEG = (1, 2, 5, 10, 15)
"""Degrees from one line of equal latitude to the next: the first with few enough lines."""
MOST_LINES = 6
AZIMUTHS = 1441
"""Points around a circle of equal latitude, four per degree."""
FAR = 20
"""A line is followed up to that many image sides away."""


@dataclass(frozen=True)
class Mark:
    """Where on the border, and where to, an arrow points at a horizon that is out of view."""

    point: Array
    """(2,) pixels."""
    direction: Array
    """(2,) unit vector out of the image."""
    angle_deg: float
    """From the point to the horizon."""


def level_curves(camera: Camera, gravity: Array) -> dict[int, Array]:
    """The lines of equal latitude in view, by their degrees: pixels (N, 2), NaN between pieces.

    camera: one; gravity (3,). The horizon, 0, is not among them.
    """
    _, latitude, valid = perspective_field(camera, gravity[None], _lattice(camera, 48)[None])
    if not valid.any():
        return {}
    seen = np.rad2deg(latitude[valid])
    low, high = seen.min().item(), seen.max().item()
    step = next((s for s in STEPS_DEG if (high - low) / s <= MOST_LINES), STEPS_DEG[-1])
    levels = range(step * math.ceil(low / step), math.floor(high) + 1, step)
    return {level: _circle(camera, gravity, level) for level in levels if 0 < abs(level) < 90}


def inside(curve: Array, camera: Camera, margin: Array | float = 0.0) -> Array:
    """The points of a curve (N, 2) that the image shows, that far from its border."""
    size = array(camera.size[0])
    with np.errstate(invalid="ignore"):
        shown = ((curve >= margin) & (curve <= size - margin)).all(-1)
    return curve[shown]


def scene_right(gravity: Array) -> Array:
    """(2,) unit image direction of the scene's right, in the middle of the image."""
    return array(world_from_camera(gravity)[0, :2])


def up_arrows(camera: Camera, gravity: Array, spacing: float) -> tuple[Array, Array]:
    """Points (2, N) about that far apart, and the up-vectors (2, N) there."""
    points = _lattice(camera, spacing=spacing)
    up, latitude, valid = perspective_field(camera, gravity[None], points[None])
    # Next to the zenith and the nadir arrows would turn about each other.
    good = valid[0] & (np.abs(latitude[0]) < math.radians(88))
    return array(points[good].T), array(up[0, good].T)


def horizon_mark(camera: Camera, gravity: Array) -> Mark:
    """The way from the middle of the image to a horizon that it does not show."""
    size = array(camera.size[0])
    # Looking up (gravity has a part towards the viewer) the horizon is where things fall to.
    direction = -np.sign(gravity[2].item() or 1.0) * array(gravity[:2])
    length = np.linalg.norm(direction)
    direction = direction / length if length > 1e-6 else np.array([0.0, 1.0])
    with np.errstate(divide="ignore"):
        reach = (0.5 * size / np.abs(direction)).min()
    point = 0.5 * size + reach * direction
    at = point[None, None]
    _, latitude, valid = perspective_field(camera, gravity[None], at)
    angle = abs(math.degrees(latitude.item())) if valid.item() else math.nan
    return Mark(point, direction, angle)


def broken(points: Array, valid: Array, camera: Camera) -> Array:
    """Pixels (N, 2) with NaN where a line through them has to break."""
    reach = FAR * camera.size.max()
    good = valid & (np.abs(points) < reach).all(-1)
    curve = np.where(good[:, None], points, np.nan)
    # Behind a very wide lens, neighbours on a circle lie on opposite sides of the picture.
    jump = np.linalg.norm(np.diff(curve, axis=0), axis=-1) > camera.size.max().item()
    return np.insert(curve, np.nonzero(jump)[0] + 1, np.nan, axis=0)


def _circle(camera: Camera, gravity: Array, level: int) -> Array:
    azimuth = np.linspace(-math.pi, math.pi, AZIMUTHS)
    latitude = math.radians(level)
    ground, height = math.cos(latitude), np.full(AZIMUTHS, -math.sin(latitude))
    rays = np.stack([ground * np.sin(azimuth), height, ground * np.cos(azimuth)], -1)
    points, valid = camera.project((rays @ world_from_camera(gravity))[None])
    return broken(points[0], valid[0], camera)


def _lattice(camera: Camera, count: int | None = None, spacing: float = 1.0) -> Array:
    """(N, 2) points over the image: so many each way, or so far apart."""
    axes = []
    for length in camera.size[0].tolist():
        number = count or max(1, round(length / spacing))
        axes.append((np.arange(number) + 0.5) * length / number)
    return np.stack(np.meshgrid(*axes, indexing="xy"), -1).reshape(-1, 2)
