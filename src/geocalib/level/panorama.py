"""How an equirectangular panorama stands, by the gravity of views cut from it, and upright views.

A network's errors differ from view to view, and those that all views share, such as of pitch,
cancel where views look all around; the lean of the panorama is what they have in common. A first
round of views finds it roughly; those of the second stand upright by it, as networks are surest of
such. It has to stand roughly upright: one that lies on its side is taken for upright.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from geocalib.arrays import Array
from geocalib.cameras import Camera
from geocalib.errors import PanoramaError
from geocalib.geometry.fields import ALONG_PITCH, ALONG_ROLL
from geocalib.geometry.gravity import from_roll_pitch, to_roll_pitch, world_from_camera
from geocalib.imaging.panorama import Pixels, cut, read_panorama, shrunk
from geocalib.imaging.read import ImageSource
from geocalib.level.estimate import down_of
from geocalib.pipeline.calibrator import Calibrator
from geocalib.pipeline.options import LinesMode
from geocalib.records import dataclass
from geocalib.result.calibration import Calibration
from geocalib.result.uncertainty import Uncertainty
from geocalib.solver.result import Status

FIRST, VIEWS = 8, 24
"""Views of the first and of the second round."""
FEWEST = 4
"""Views that a tilt can be found from."""
SIDE = 512
"""Pixels on each side of a view, at most."""
SMALLEST_SIDE = 224
FOV_DEG = 75.0
"""Horizontal and vertical field of view of a view, degrees."""
PITCHES_DEG = (-12.0, 12.0, 0.0)
"""Taken in turn: views with the horizon in three heights."""
ALIKE, LEAST_DEG = 2.0, 0.2
"""By which sigmas grow, as views overlap and err alike where they do, and what they cannot fall
below: so that panoramas that were held out for validation, turned at random, are off by as much as
their sigmas say."""


@dataclass(frozen=True)
class UprightView:
    """An upright view within a panorama."""

    heading_deg: float
    """To the right of where the panorama's middle column looks."""
    pixels: Pixels
    """(h, w, 3) RGB."""
    calibration: Calibration
    """Its camera, which is exact, and gravity, with the sigma of the panorama's level."""


@dataclass(frozen=True)
class PanoramaLevel:
    """The direction down in a panorama, in its frame: x right, y down, z ahead, where its middle
    column looks."""

    down: Array
    """(3,) unit vector."""
    sigma_deg: float
    """One sigma of it, along its most uncertain direction."""
    views: int
    """How many views were calibrated."""
    outliers: int
    """How many of them had no say."""

    @property
    def roll_deg(self) -> float:
        """That of a camera that looks where the middle column does."""
        return math.degrees(float(to_roll_pitch(self.down)[0]))

    @property
    def pitch_deg(self) -> float:
        """That of a camera that looks where the middle column does."""
        return math.degrees(float(to_roll_pitch(self.down)[1]))

    def upright_views(
        self, panorama: ImageSource, count: int = 8, fov_deg: float = FOV_DEG
    ) -> Iterator[UprightView]:
        """Square pictures of level pinhole cameras that look all around, as fine on their axes as
        the panorama (its file, or a picture in memory). fov_deg: across and down."""
        if count < 1:
            raise PanoramaError(f"{count} views were requested; request at least 1")
        if not 5 <= fov_deg <= 150:
            raise PanoramaError(f"views are 5 to 150 degrees wide, got {fov_deg:g}")
        pixels = read_panorama(panorama).pixels
        camera = _camera(pixels, fov_deg)
        free = (ALONG_ROLL, ALONG_PITCH)
        covariance = np.eye(2) * math.radians(self.sigma_deg) ** 2
        gravity = np.array([0.0, 1.0, 0.0])
        found = Calibration(
            image=None,
            cameras=camera,
            gravity=gravity,
            sigma=Uncertainty.of(camera, gravity, covariance, free),
            covariance=covariance,
            parameters=free,
            status=str(Status.CONVERGED),
        )
        for number in range(count):
            heading = 2 * math.pi * number / count
            turn = world_from_camera(gravity, np.array(heading))
            picture = cut(pixels, camera, _upright(self.down).T @ turn)
            yield UprightView(math.degrees(heading), picture, found)


def level_of(calibrator: Calibrator, panorama: ImageSource) -> PanoramaLevel:
    """The level of a panorama, given as a file or a picture in memory."""
    photo = read_panorama(panorama)
    camera = _camera(photo.pixels, FOV_DEG, SIDE)
    pixels = shrunk(photo.pixels, float(camera.f[0]))
    down = np.array([0.0, 1.0, 0.0])
    rounds: tuple[tuple[int, LinesMode], ...] = ((FIRST, "off"), (VIEWS, "auto"))
    # Straight lines are worth their time where views stand upright.
    for count, lines in rounds:
        turns = _upright(down).T @ looks_around(count)
        pictures = [cut(pixels, camera, turn) for turn in turns]
        outcomes = calibrator.calibrate(
            pictures,
            "pinhole",
            focal=float(camera.f[0]),
            any_rotation="off",
            lines=lines,
            prior="none",
        )
        pairs = zip(turns, outcomes, strict=True)
        seen = [(turn.T, found) for turn, found in pairs if isinstance(found, Calibration)]
        if len(seen) < FEWEST:
            raise PanoramaError(f"{photo.name}: only {len(seen)} of its views have an answer")
        found = down_of([rotation for rotation, _ in seen], [each for _, each in seen])
        down = found.direction
    sigma = math.hypot(ALIKE * found.sigma_deg, LEAST_DEG)
    return PanoramaLevel(down, sigma, count, count - len(seen) + len(found.outliers))


def looks_around(count: int, pitches_deg: Sequence[float] = PITCHES_DEG) -> Array:
    """(N, 3, 3) rotations from the cameras of views that look all around, with some pitches in
    turn, to a level frame."""
    number = np.arange(count)
    pitch = np.radians(np.array(pitches_deg)[number % len(pitches_deg)])
    return world_from_camera(from_roll_pitch(np.zeros(count), pitch), 2 * np.pi * number / count)


def _upright(down: Array) -> Array:
    """(3, 3) from a panorama's frame to the level one that looks the same way."""
    return world_from_camera(down)


def _camera(pixels: Pixels, fov_deg: float, most: int | None = None) -> Camera:
    """One as fine on its axis as a panorama, with a square image of at most so many pixels."""
    half = math.tan(0.5 * math.radians(fov_deg))
    side = max(SMALLEST_SIDE, round(2 * half * pixels.shape[1] / (2 * math.pi)))
    side = side if most is None else min(side, most)
    return Camera.create("pinhole", 0.5 * side / half, (side, side), dtype=np.float64)
