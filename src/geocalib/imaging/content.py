"""What kind of picture pixels show where it is no photograph of one lens that fills the picture.

A circular picture with black around it, as fisheyes make them, is found by the circle's border. It
is judged on some ten thousand pixels, without any network.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from geocalib.records import dataclass

Pixels = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]

SAMPLES = 128
"""Pixels along the shorter side that are looked at."""

BLACK = 48
"""Brightest channel of what may be around a circular picture."""
CONTRAST = 20
"""How much brighter than its surroundings a pixel of the picture is."""
LEAST_ARC = 0.15
"""Part of a circle, within the picture, whose border has to be seen."""
LARGEST_MISFIT = 0.02
"""Median distance of border pixels from the circle, in radii."""

FURTHEST_CENTRE = 0.25
"""Distance of the circle's centre from the middle of the picture, in widths and heights."""


@dataclass(frozen=True)
class Circle:
    """The border of a circular picture, in pixels of the original."""

    centre: tuple[float, float]
    radius: float

    def whole(self, size: tuple[int, int]) -> bool:
        """Whether all of it lies within an image of (width, height), up to 2% of its radius."""
        sides = [(c, s - c) for c, s in zip(self.centre, size, strict=True)]
        return all(min(pair) >= 0.98 * self.radius for pair in sides)


def find_circle(pixels: Pixels, size: tuple[int, int]) -> Circle | None:
    """Find the circle with black around it that pixels (h, w, 3) of an original of (width, height)
    show, as circular fisheyes do, also where the sides of the picture cut it; None without one."""
    step = max(1, min(pixels.shape[:2]) // SAMPLES)
    few = pixels[::step, ::step]
    height, width = few.shape[:2]
    corners = np.array([few[:2, :2], few[:2, -2:], few[-2:, :2], few[-2:, -2:]])
    dark = np.median(corners.max(3).reshape(4, -1), axis=1)
    # An ordinary picture leaves here.
    if np.sort(dark)[2] > BLACK:
        return None
    bright = np.maximum(np.maximum(few[..., 0], few[..., 1]), few[..., 2]).astype(np.int64)
    outside = bright <= dark[dark <= BLACK].max() + CONTRAST
    x, y = _border(outside)
    if len(x) < 16:
        return None
    fitted = _fit_circle(x, y)
    if fitted is None:
        return None
    cx, cy, r = fitted
    off = max(abs(cx / width - 0.5), abs(cy / height - 0.5))
    if off > FURTHEST_CENTRE or not 0.3 * min(height, width) <= r <= 0.5 * math.hypot(
        width, height
    ):
        return None
    away = np.abs(np.hypot(x - cx, y - cy) - r)
    near = away <= 2 * LARGEST_MISFIT * r + 1
    if near.mean() < 0.6 or np.median(away[near]) > LARGEST_MISFIT * r + 0.5:
        return None
    # The border must be seen nearly wherever the circle lies within the picture.
    turns = np.linspace(0, 2 * np.pi, 72, endpoint=False)
    at = np.stack([cx + r * np.cos(turns), cy + r * np.sin(turns)])
    inside = ((at > 1) & (at < np.array([[width - 1], [height - 1]]))).all(0)
    seen = np.zeros(72, bool)
    seen[np.round(np.arctan2(y - cy, x - cx)[near] / (2 * np.pi) * 72).astype(int) % 72] = True
    if inside.mean() < LEAST_ARC or (seen & inside).sum() < 0.6 * inside.sum():
        return None
    # Around the circle all is dark, and just within it most is not.
    rows, columns = np.mgrid[:height, :width]
    distance = np.hypot(columns + 0.5 - cx, rows + 0.5 - cy) / r
    rim = (distance > 0.85) & (distance < 0.96)
    if outside[distance > 1.04].mean() < 0.97 or outside[rim].mean() > 0.5:
        return None
    scale = size[0] / width, size[1] / height
    return Circle((cx * scale[0], cy * scale[1]), r * math.sqrt(scale[0] * scale[1]))


def _border(outside: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """x and y of the places where the dark runs end that begin at the sides of the picture."""
    _height, _width = outside.shape
    found_x, found_y = [], []
    for mask, along_x in ((outside, True), (outside.T, False)):
        length = mask.shape[1]
        for flipped in (False, True):
            run = np.argmin(mask[:, ::-1] if flipped else mask, axis=1)
            lines = np.nonzero(run > 1)[0]
            ends = length - run[lines] if flipped else run[lines]
            across = lines + 0.5
            found_x.append(ends if along_x else across)
            found_y.append(across if along_x else ends)
    return np.concatenate(found_x).astype(float), np.concatenate(found_y).astype(float)


def _fit_circle(x: Floats, y: Floats) -> tuple[float, float, float] | None:
    """Centre and radius of the circle through most of the points, by least squares on ever fewer
    of them; None where they lie on a line."""
    keep = np.ones(len(x), bool)
    for _ in range(6):
        rows = np.stack([2 * x[keep], 2 * y[keep], np.ones(keep.sum())], 1)
        try:
            cx, cy, c = np.linalg.lstsq(rows, x[keep] ** 2 + y[keep] ** 2, rcond=1e-9)[0].tolist()
        except np.linalg.LinAlgError:
            return None
        if c + cx * cx + cy * cy <= 0:
            return None
        r = math.sqrt(c + cx * cx + cy * cy)
        away = np.abs(np.hypot(x - cx, y - cy) - r)
        keep = away <= max(2.5 * float(np.median(away)), 1.0)
    return cx, cy, r
