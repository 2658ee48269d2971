"""Where edges are, to a fraction of a pixel: brightness across segments, and its steepest place."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

ROW = 1024
"""Places looked up at once: OpenCV's tables have fewer than 32768 rows."""
FAINTEST = 1.5
"""Grey levels per pixel: less is no edge."""
NEAR = 2.0
"""Pixels, one sigma: how far from the segment its edge is believed to be."""
DARKEST = 1e-3
"""Grey levels per pixel: the least slope whose logarithm is taken."""


def profiles(grey: npt.NDArray[Any], places: Array, normals: Array, reach: int) -> Array:
    """(..., 2 reach + 1) brightness at whole pixels across places (..., 2) along normals that
    broadcast with them."""
    import cv2

    across = np.arange(-reach, reach + 1.0)
    points = (places[..., None, :] + across[:, None] * normals[..., None, :]).astype(np.float32)
    # Pixel centres are at half-integers here, at integers in OpenCV.
    flat = points.reshape(-1, 2) - np.float32(0.5)
    table = np.zeros((max(1, -(-len(flat) // ROW)) * ROW, 2), np.float32)
    table[: len(flat)] = flat
    x, y = (np.ascontiguousarray(table[:, i].reshape(-1, ROW)) for i in (0, 1))
    values = cv2.remap(grey, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return values.reshape(-1)[: len(flat)].reshape(points.shape[:-1]).astype(np.float64)


def steepest(slopes: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
    """(P,) pixels from the middle of profiles to where they rise most, and whether they do.

    slopes: (P, 2 reach) from pixel to pixel. The slope of a blurred step is a bell, and the
    logarithm of a bell a parabola: three values tell its top.
    """
    middle = np.arange(slopes.shape[1]) - 0.5 * (slopes.shape[1] - 1)
    near = slopes * np.exp(-0.5 * (middle / NEAR) ** 2)
    top = near[:, 1:-1].argmax(1) + 1
    around = np.take_along_axis(slopes, top[:, None] + np.arange(-1, 2), 1)
    before, at, after = np.log(around.clip(min=DARKEST)).T
    bend = 2 * at - before - after
    shift = 0.5 * (after - before) / bend.clip(min=DARKEST)
    there = (around > 0).all(1) & (around[:, 1] > FAINTEST) & (bend > 0) & (np.abs(shift) <= 1)
    return middle[top] + shift, there
