"""Vanishing points found one after the other by RANSAC over segments, at any angles to each other.

Two segments give a point on the Gaussian sphere; the one that most segments point to is taken, and
they are taken away, until too few are left. No right angle is required on the way: walls may stand
at any angles. In the end one point is the zenith, and those that are at right angles to it lie on
the horizon; the focal length is the one that makes most points so. A right angle of two points on
the horizon counts half: it is all that tells the focal length of a level camera.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt

from geocalib_lab.evaluation.methods.manhattan import (
    FEWEST,
    FOCAL_RANGE,
    INLIER_PX,
    SEED,
    Array,
    OfSegments,
    lines_of,
    offsets,
    unit,
)

TRIALS = 1000
"""Pairs of segments for each point."""
POINTS = 6
"""Most vanishing points."""
SUPPORT = 4
"""Segments of a point, at least."""
ROUNDS = 5
RIGHT = np.sin(np.deg2rad(3.0))
"""By how much the cosine of a right angle may be off."""
UPRIGHT = 0.5
"""Least cosine of the angle between the zenith and the upper side of the picture."""


class Vanishing(OfSegments):
    """A calibrator of vanishing points at any angles."""

    name, description = "vanishing", __doc__.split("\n")[0]

    def search(self, ends: Array) -> tuple[float, Array] | None:
        return search(ends)


def search(ends: Array) -> tuple[float, Array] | None:
    """Focal length and the direction of the zenith (3,), up or down; None if they are undetermined.

    ends (N, 2, 2): of segments, around the principal point, in units of the longer side.
    """
    points, support = find_points(ends)
    both = np.minimum(support[:, None], support)
    best, found = 0.0, None
    for one, other in combinations(points, 2):
        with np.errstate(divide="ignore"):
            squared = -one[:2] @ other[:2] / (one[2] * other[2])
        if FOCAL_RANGE[0] ** 2 < squared < FOCAL_RANGE[1] ** 2:
            f = float(np.sqrt(squared))
            directions = unit(points * (1, 1, f))
            # 1 for a right angle, 0 for what is none.
            right = np.maximum(1 - (directions @ directions.T / RIGHT) ** 2, 0)
            for zenith in np.flatnonzero(np.abs(directions[:, 1]) > UPRIGHT):
                horizontal = right[zenith] > 0
                counts = np.where(horizontal, 0.25, 0.0)
                counts[zenith] = 1.0
                score = support[zenith] + horizontal @ (right * both) @ counts
                if horizontal.any() and score > best:
                    best = score
                    taken = horizontal | (np.arange(len(points)) == zenith)
                    f = _focal(points[taken], (right * both)[np.ix_(taken, taken)], f)
                    found = f, unit(points[zenith] * (1, 1, f))
    return found


def find_points(ends: Array) -> tuple[Array, Array]:
    """Vanishing points (P, 3), on the sphere, and the length (P,) of the segments of each."""
    middle, half = ends.mean(1), 0.5 * (ends[:, 1] - ends[:, 0])
    lines, length = lines_of(ends), np.linalg.norm(half, axis=-1)
    generator, limit = np.random.default_rng(SEED), INLIER_PX / 1000
    points, support = list[Array](), list[float]()

    def off(candidates: Array, left: npt.NDArray[np.intp]) -> Array:
        """(T, L) of the segments that are left from candidates (T, 3)."""
        ones = np.ones(len(candidates))
        return np.abs(offsets(candidates[:, None], ones, middle[left], half[left])[:, 0])

    left = np.arange(len(ends))
    while len(left) >= FEWEST and len(points) < POINTS:
        pair = generator.random((TRIALS, len(left))).argpartition(1, axis=1)[:, :2]
        candidates = unit(np.cross(*lines[left][pair].swapaxes(0, 1)) + 1e-12)
        point = candidates[((off(candidates, left) < limit) * length[left]).sum(1).argmax()]
        for _ in range(ROUNDS):
            mine = left[off(point[None], left)[0] < limit]
            if len(mine) < SUPPORT:
                break
            # The smallest sum of squared offsets of their ends, to first order.
            way = np.linalg.norm(point[:2] - point[2] * middle[mine], axis=-1)
            weight = length[mine] / np.maximum(way, 1e-9)
            point = np.linalg.svd(lines[mine] * weight[:, None], full_matrices=False)[2][-1]
        if len(mine) < SUPPORT:
            break
        points.append(point)
        support.append(length[mine].sum())
        left = np.setdiff1d(left, mine)
    return np.array(points).reshape(-1, 3), np.array(support)


def _focal(points: Array, right: Array, f: float) -> float:
    """The focal length that suits right angles among points (P, 3) best, near f.

    right (P, P): how much each of them counts.
    """
    # For a right angle, a + f^2 b = 0; in proportion to its cosine.
    scale = np.linalg.norm(points * (1, 1, f), axis=-1)
    across, along = points[:, :2] / scale[:, None], points[:, 2] / scale
    a, b = across @ across.T, np.outer(along, along)
    squared = -(right * a * b).sum() / (right * b * b).sum()
    return float(np.sqrt(np.clip(squared, FOCAL_RANGE[0] ** 2, FOCAL_RANGE[1] ** 2)))
