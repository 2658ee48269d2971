"""The part of a picture in which a solid may be visible, so that the rest is not searched."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Window = tuple[slice, slice]
"""Rows and columns."""


def sphere_windows(
    corners: NDArray[np.float64], width: int, height: int, rows: slice
) -> list[list[Window]]:
    """For each of P solids, the parts of some rows of a panorama that may see it.

    corners: (P, 8, 3) of boxes around them, from the eye.
    """
    left, right, top, bottom = _bounds(corners)
    first = np.maximum(rows.start, np.floor(height * top)).astype(int) - rows.start
    last = np.minimum(rows.stop, np.ceil(height * bottom)).astype(int) - rows.start
    windows: list[list[Window]] = [[] for _ in corners]
    # A solid behind the seam of the panorama appears at both its ends.
    for lap in (-1, 0, 1):
        start = np.maximum(0, np.floor(width * (left + lap))).astype(int).tolist()
        stop = np.minimum(width, np.ceil(width * (right + lap))).astype(int).tolist()
        for index in range(len(corners)):
            if start[index] < stop[index] and first[index] < last[index]:
                part = slice(int(first[index]), int(last[index]))
                windows[index].append((part, slice(start[index], stop[index])))
    return windows


def square_windows(
    corners: NDArray[np.float64],
    across: Sequence[NDArray[np.float64]],
    reach: float,
    size: int,
) -> list[list[Window]]:
    """For each of P solids, the part of a square that may see it along its normal.

    across: unit vectors along columns and rows; reach: metres from its middle to its sides.
    """
    windows = []
    places = [(corners @ axis / reach + 1) * (size / 2) for axis in across]
    low = [np.clip(np.floor(p.min(1)), 0, size).astype(int).tolist() for p in places]
    high = [np.clip(np.ceil(p.max(1)), 0, size).astype(int).tolist() for p in places]
    for x0, y0, x1, y1 in zip(*low, *high, strict=True):
        windows.append([(slice(y0, y1), slice(x0, x1))] if x0 < x1 and y0 < y1 else [])
    return windows


def _bounds(
    corners: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Left, right, top and bottom (P,) of the convex hulls of corners (P, 8, 3), as shares of
    the panorama's width and height; left may be below 0, or right above 1."""
    level, rise = corners[..., ::2], -corners[..., 1]
    near, far = _closest(level), np.linalg.norm(level, axis=-1).max(1)
    highest, lowest = rise.max(1), rise.min(1)
    top = 0.5 - np.arctan2(highest, np.where(highest > 0, near, far)) / math.pi
    bottom = 0.5 - np.arctan2(lowest, np.where(lowest > 0, far, near)) / math.pi
    centre = level.mean(1)
    middle = np.arctan2(centre[:, 0], centre[:, 1])
    turn = np.arctan2(level[..., 0], level[..., 1]) - middle[:, None]
    turn = (turn + math.pi) % (2 * math.pi) - math.pi
    around = near == 0
    left = np.where(around, 0.0, (middle + turn.min(1)) / (2 * math.pi) + 0.5)
    right = np.where(around, 1.0, (middle + turn.max(1)) / (2 * math.pi) + 0.5)
    return left, right, top, bottom


def _closest(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """How near the convex hulls of points (P, N, 2) come to the origin; 0 where they hold it."""
    angle = np.sort(np.arctan2(points[..., 0], points[..., 1]), axis=1)
    gaps = np.diff(np.concatenate([angle, angle[:, :1] + 2 * math.pi], axis=1), axis=1)
    first, way = points[:, :, None], points[:, None] - points[:, :, None]
    share = -(first * way).sum(-1) / np.maximum((way * way).sum(-1), 1e-12)
    nearest = first + np.clip(share, 0, 1)[..., None] * way
    distance = np.linalg.norm(nearest, axis=-1).min((1, 2))
    return np.where(gaps.max(1) <= math.pi + 1e-6, 0.0, distance)
