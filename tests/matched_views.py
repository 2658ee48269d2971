"""Photos of a cloud of points with matches of which some are wrong, and with the true pose."""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from geocalib.cameras import Camera
from geocalib.localize.rotation import from_vector

Array = npt.NDArray[np.float64]

PINHOLE = Camera.create("pinhole", f=800.0, size=(1000, 800))


@dataclass(frozen=True, eq=False)
class View:
    """Matches of one photo; the first ones are right."""

    camera: Camera
    pixels: Array
    points: Array
    rotation: Array
    centre: Array

    def errors(self, rotation: Array, centre: Array) -> tuple[float, float]:
        """Of a pose: degrees and metres."""
        turn = cv2.Rodrigues(rotation @ self.rotation.T)[0]
        distance = np.linalg.norm(centre - self.centre)
        return math.degrees(np.linalg.norm(turn)), float(distance)


def make_view(
    seed: int = 0,
    right: int = 40,
    wrong: int = 0,
    noise: float = 0.0,
    camera: Camera = PINHOLE,
    origin: npt.ArrayLike = (0.0, 0.0, 0.0),
) -> View:
    """Points 2 to 10 m away, pixel noise on the right matches, random points for the wrong ones."""
    generator = np.random.default_rng(seed)
    rotation = from_vector(generator.normal(0, 0.7, 3))
    centre = generator.uniform(-1, 1, 3) + origin
    pixels = generator.uniform(0, camera.size[0], (right + wrong, 2))
    rays, valid = (part[0] for part in camera.unproject(pixels[None]))
    assert valid.all()
    points = (rays * generator.uniform(2, 10, (len(rays), 1))) @ rotation + centre
    points[right:] = generator.permutation(points[right:]) + generator.normal(size=(wrong, 3))
    pixels[:right] += generator.normal(0, noise, (right, 2))
    return View(camera, pixels, points, rotation, centre)
