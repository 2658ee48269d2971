"""Three vanishing points at right angles by RANSAC over segments, without a network.

In the manner of the classical methods that the paper compares with: four segments give two
vanishing points, whose right angle gives the focal length, and the third direction with it; the
camera with most segments that point to one of the three wins, and is polished on those. The
vertical is the most upright of them. Distortion is not looked for, and nothing is expected of the
camera beforehand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Unpack

import numpy as np
import numpy.typing as npt

from geocalib.cameras import Camera
from geocalib.errors import ImageError
from geocalib.imaging import ImageSource, read_photo
from geocalib.lines.detect import SHORT_SIDE, detect
from geocalib.pipeline.options import Keywords
from geocalib.pipeline.prepare import path_of
from geocalib.result.calibration import Failure, Outcome
from geocalib_lab.evaluation.answers import without_sigmas
from geocalib_lab.evaluation.methods.identity import renamed
from geocalib_lab.evaluation.report import K1_MODELS
from geocalib_lab.evaluation.run import Calibrates

Array = npt.NDArray[np.float64]

TRIALS = 4000
MOST = 250
"""Segments that are looked at, the longest."""
FEWEST = 8
INLIER_PX = 1.5
"""How far, in pixels of a photograph of 1000 across, an end may be off the line from the middle of
its segment to the vanishing point."""
FOCAL_RANGE = (0.3, 5.0)
"""Focal lengths that are tried, in longer sides."""
ROUNDS = 10
"""Rounds of the final refinement."""
STEP = 1e-6
"""Step of numerical derivatives."""
CLOSE = 1e-7
SEED = 0


class OfSegments(ABC):
    """A calibrator of the segments that a photograph shows."""

    name: str
    description: str

    def __init__(self, calibrator: Calibrates) -> None:
        self.card = renamed(calibrator.card, self.name, self.description)

    @abstractmethod
    def search(self, ends: Array) -> tuple[float, Array] | None:
        """Focal length and the vertical (3,), up or down, in the camera frame; None: too few.

        ends (N, 2, 2): of segments, around the principal point, in units of the longer side.
        """

    def calibrate(
        self,
        images: Sequence[ImageSource],
        camera_model: str = "pinhole",
        **options: Unpack[Keywords],
    ) -> list[Outcome]:
        """Images one by one; nothing is known of them."""
        return [self._one(image, camera_model) for image in images]

    def _one(self, source: ImageSource, camera_model: str) -> Outcome:
        path = path_of(source)
        try:
            photo = read_photo(source, SHORT_SIDE)
        except ImageError as error:
            return Failure(path, None, None, str(error))
        width, height = photo.size
        ends = np.asarray(detect(photo).longest(MOST).ends, np.float64)
        found = self.search((ends - (0.5 * width, 0.5 * height)) / max(width, height))
        if found is None:
            return Failure(path, width, height, f"{photo.name} shows too few straight lines")
        f, vertical = found
        gravity = vertical * (1.0 if vertical[1] > 0 else -1.0)
        model = camera_model if camera_model in K1_MODELS else "pinhole"
        camera = Camera.create(model, f=f * max(width, height), size=(width, height))
        return without_sigmas(path, camera, gravity)


class Manhattan(OfSegments):
    """A calibrator of three vanishing points at right angles."""

    name, description = "manhattan", __doc__.split("\n")[0]

    def search(self, ends: Array) -> tuple[float, Array] | None:
        """As in ``OfSegments``: the vertical is the most upright axis."""
        found = search(ends)
        return None if found is None else (found[0], found[1][np.abs(found[1][:, 1]).argmax()])


def search(ends: Array) -> tuple[float, Array] | None:
    """Focal length and three axes (3, 3), by rows, in the camera frame; None: there are too few.

    ends (N, 2, 2): of segments, around the principal point, in units of the longer side.
    """
    if len(ends) < FEWEST:
        return None
    middle, half = ends.mean(1), 0.5 * (ends[:, 1] - ends[:, 0])
    line = lines_of(ends)
    generator = np.random.default_rng(SEED)
    drawn = generator.random((TRIALS, len(ends))).argpartition(3, axis=1)[:, :4]
    a, b, c, d = line[drawn].swapaxes(0, 1)
    first, second = np.cross(a, b), np.cross(c, d)
    product = first[:, 2] * second[:, 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        squared = -(first[:, :2] * second[:, :2]).sum(1) / product
    low, high = FOCAL_RANGE
    kept = (squared > low**2) & (squared < high**2)
    if not kept.any():
        return None
    f = np.sqrt(squared[kept])
    axes = _axes(first[kept], second[kept], f)
    limit = INLIER_PX / 1000
    inside = np.abs(offsets(axes, f, middle, half)).min(1) < limit
    # Longer segments count more, as their directions are surer.
    best = int((inside * np.linalg.norm(half, axis=-1)).sum(1).argmax())
    return _polished(float(f[best]), axes[best], middle, half, limit)


def lines_of(ends: Array) -> Array:
    """(N, 3) homogeneous lines through the ends (N, 2, 2) of segments, with normals of length 1."""
    lines = np.cross(*(np.append(part, np.ones((len(part), 1)), 1) for part in ends.swapaxes(0, 1)))
    scaled: Array = lines / np.linalg.norm(lines[:, :2], axis=-1, keepdims=True)
    return scaled


def _axes(first: Array, second: Array, f: Array) -> Array:
    """(T, 3, 3) unit axes through vanishing points (T, 3), homogeneous, for focal lengths (T,)."""
    scale = np.stack([np.ones_like(f), np.ones_like(f), f], -1)
    one, two = (unit(points * scale) for points in (first, second))
    return np.stack([one, two, np.cross(one, two)], 1)


def unit(vectors: Array) -> Array:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def offsets(axes: Array, f: Array, middle: Array, half: Array) -> Array:
    """(T, A, N) how far, with a sign, the ends of segments are off the lines from their middles to
    the vanishing points of the axes (T, A, 3) of T cameras."""
    point = axes * np.stack([f, f, np.ones_like(f)], -1)[:, None]
    # The way to the vanishing point, wherever that is.
    way = point[..., None, :2] - point[..., None, 2:] * middle
    across = half[:, 0] * way[..., 1] - half[:, 1] * way[..., 0]
    off: Array = across / np.maximum(np.linalg.norm(way, axis=-1), 1e-12)
    return off


def _polished(
    f: float, axes: Array, middle: Array, half: Array, limit: float
) -> tuple[float, Array]:
    """Gauss-Newton on the segments that belong, of the focal length and the turn of the axes."""
    for _ in range(ROUNDS):
        # As it stands, and with a step along each of the four unknowns.
        turned, focal = _moved(axes, f, np.vstack([np.zeros(4), STEP * np.eye(4)]))
        off = offsets(turned, focal, middle, half)
        size = np.abs(off[0])
        mine, among = size.argmin(0), size.min(0) < limit
        if among.sum() < 4:
            break
        at, *near = off[:, mine[among], np.flatnonzero(among)]
        jacobian = (np.stack(near, -1) - at[:, None]) / STEP
        step = -np.linalg.lstsq(jacobian, at)[0]
        step[3] = np.clip(step[3], -0.2, 0.2)
        (axes,), (f,) = _moved(axes, f, step[None])
        if np.abs(step).max() < CLOSE:
            break
    return f, axes


def _moved(axes: Array, f: float, steps: Array) -> tuple[Array, Array]:
    """Axes (S, 3, 3) and focal lengths (S,) after steps (S, 4): a rotation vector, and of log f."""
    turned = np.stack([axes @ _rotation(step[:3]).T for step in steps])
    return turned, f * np.exp(steps[:, 3])


def _rotation(vector: Array) -> Array:
    """(3, 3) of a rotation vector, by Rodrigues."""
    angle = float(np.linalg.norm(vector))
    K = np.cross(np.eye(3), -vector / max(angle, 1e-12))
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
