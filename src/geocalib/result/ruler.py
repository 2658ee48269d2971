"""How high a camera stands above the ground, by a known length on its photograph.

With gravity and lens known, a pixel below the horizon has one place on the level ground, in units
of the camera's height. A length between two such places, or of what stands upright on one of them,
tells that height, and with it the scale of the scene.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from geocalib.arrays import Array, quiet
from geocalib.cameras import Camera
from geocalib.errors import ConfigError
from geocalib.geometry import gravity as sphere
from geocalib.geometry.drawn import END
from geocalib.geometry.fields import ALONG_PITCH, ALONG_ROLL, CX, CY, LOG_ASPECT, LOG_F
from geocalib.geometry.ruler import Ruler, RulerKind
from geocalib.records import dataclass, replace
from geocalib.result.uncertainty import with_sigma

STEP = 1e-5
"""By which unknowns are moved to see how the height follows; pixels by a hundred times that."""

LEAN = math.radians(15)
"""By how much an upright length may be seen to lean: beyond it, it was not meant."""


@dataclass(frozen=True)
class MeasuredRuler:
    """A known length, and the height of the camera by it."""

    x0: float
    y0: float
    x1: float
    y1: float
    """Pixels, in the frame of the record."""
    kind: str
    metres: float
    camera_height: float
    """Metres above the ground."""
    camera_height_sigma: float
    """Metres, one sigma: of gravity, lens and where a person puts the ends."""

    @property
    def ruler(self) -> Ruler:
        """The length as it was marked."""
        return Ruler(self.x0, self.y0, self.x1, self.y1, self.metres, self.kind)

    def mapped(self, place: Callable[[float, float], tuple[float, float]]) -> MeasuredRuler:
        """The same on a picture whose pixels lie elsewhere."""
        (x0, y0), (x1, y1) = place(self.x0, self.y0), place(self.x1, self.y1)
        return replace(self, x0=x0, y0=y0, x1=x1, y1=y1)

    def __str__(self) -> str:
        height, sigma = self.camera_height, self.camera_height_sigma
        digits = max(0, 2 - math.floor(math.log10(height)))
        return f"camera {with_sigma(height, sigma, f'.{digits}f', ' m')} above the ground"


def measured(
    ruler: Ruler, camera: Camera, gravity: Array, covariance: Array, parameters: Sequence[str]
) -> MeasuredRuler:
    """The height of a camera (a batch of 1) with gravity (3,), and the covariance (P, P) of their
    free parameters. An error says why a ruler tells none."""
    ends = np.array(ruler.ends, np.float64)
    _check(ruler, camera, gravity, ends)
    pixels = len(parameters)
    # By rows: as it is, and each unknown and each number of the ends moved to both sides.
    steps = np.array([100 * STEP if name in (CX, CY) else STEP for name in parameters])
    steps = np.concatenate([steps, np.full(4, 100 * STEP)])
    moves = np.concatenate([np.zeros((1, len(steps))), np.diag(steps), -np.diag(steps)])
    cameras, down = _moved(camera, gravity, parameters, moves[:, :pixels])
    places = ends + moves[:, pixels:].reshape(-1, 2, 2)
    heights = _heights(ruler, *_level(cameras, down, places))
    slopes = (heights[1 : len(steps) + 1] - heights[len(steps) + 1 :]) / (2 * steps)
    by_camera, by_ends = slopes[:pixels], slopes[pixels:]
    spread = END * float(camera.size.max())
    variance = by_camera @ covariance @ by_camera + spread**2 * by_ends @ by_ends
    return MeasuredRuler(
        float(ruler.x0),
        float(ruler.y0),
        float(ruler.x1),
        float(ruler.y1),
        str(ruler.kind),
        float(ruler.metres),
        float(heights[0]),
        math.sqrt(variance) if variance >= 0 else math.nan,
    )


def _check(ruler: Ruler, camera: Camera, gravity: Array, ends: Array) -> None:
    """Raise an error where the ends have no place in the scene."""
    width, height = camera.size[0].tolist()
    for x, y in ruler.ends:
        if not (0 <= x <= width and 0 <= y <= height):
            raise ConfigError(
                f"ruler ends at ({x:g}, {y:g}), outside the picture of {width:g}x{height:g} pixels"
            )
    rays, seen = camera.unproject(ends[None])
    down = rays[0] @ gravity
    for (x, y), valid, drop in zip(ruler.ends, seen[0].tolist(), down.tolist(), strict=True):
        if not valid:
            raise ConfigError(f"ruler ends at ({x:g}, {y:g}), where the lens shows nothing")
        if ruler.kind == RulerKind.GROUND and drop <= 0:
            raise ConfigError(
                f"ruler ends at ({x:g}, {y:g}), above the horizon: no ground is there"
            )
    if ruler.kind == RulerKind.GROUND:
        return
    if down.max() <= 0:
        raise ConfigError("ruler stands above the horizon: its foot must be on the ground below")
    normal = np.cross(rays[0, 0], rays[0, 1])
    upright = abs(float(normal @ gravity)) < math.sin(LEAN) * float(np.linalg.norm(normal))
    drop, level = _level(camera, gravity[None], ends[None])
    same_side = float(level[0, 0] @ level[0, 1]) > 0
    if not (upright and same_side and 0 < _heights(ruler, drop, level)[0] < math.inf):
        raise ConfigError("ruler is to stand upright, but its ends are not seen above each other")


def _moved(
    camera: Camera, gravity: Array, parameters: Sequence[str], moves: Array
) -> tuple[Camera, Array]:
    """The camera and gravity (R, 3) with free parameters moved by (R, P)."""
    rows, by = len(moves), dict(zip(parameters, moves.T, strict=True))
    none = np.zeros(rows)
    along = np.stack([by.get(ALONG_ROLL, none), by.get(ALONG_PITCH, none)], 1)
    bends = [by.get(name, none) for name in camera.model.parameters]
    moved = replace(
        camera,
        f=camera.f * np.exp(by.get(LOG_F, none)),
        c=camera.c + np.stack([by.get(CX, none), by.get(CY, none)], 1),
        distortion=camera.distortion + np.stack(bends, 1)
        if bends
        else camera.distortion[[0] * rows],
        size=camera.size[[0] * rows],
        aspect=camera.aspect * np.exp(by.get(LOG_ASPECT, none)),
    )
    return moved, sphere.move(np.tile(gravity, (rows, 1)), along)


def _level(camera: Camera, gravity: Array, ends: Array) -> tuple[Array, Array]:
    """How far rays at (R, 2, 2) pixels go down (R, 2), and (R, 2, 3) level, for unit length."""
    rays, _ = camera.unproject(ends)
    down = np.vecdot(rays, gravity[:, None])
    return down, rays - down[..., None] * gravity[:, None]


@quiet
def _heights(ruler: Ruler, down: Array, level: Array) -> Array:
    """(R,) the camera's height by the parts of the rays of both ends."""
    if ruler.kind == RulerKind.GROUND:
        places = level / down[..., None]
        return np.asarray(ruler.metres / np.linalg.norm(places[:, 1] - places[:, 0], axis=-1))
    far = np.linalg.norm(level, axis=-1)
    # The foot is the end that is seen farther down.
    foot = int(np.argmax(down[0] / far[0]))
    ahead = level[:, foot] / far[:, [foot]]
    distance = far[:, foot] / down[:, foot]
    # Where the other ray is above the foot, or as near to that as it comes along the heading.
    drop = distance * down[:, 1 - foot] / np.vecdot(level[:, 1 - foot], ahead)
    return np.asarray(ruler.metres / (1 - drop))
