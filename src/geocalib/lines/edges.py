"""Where edges are, to a fraction of a pixel: brightness across segments, and its steepest place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from geocalib.lines.opencv import opencv

Array = npt.NDArray[np.float64]
Single = npt.NDArray[np.float32]
"""Brightness has few digits, and edges are measured at thousands of places."""

ROW = 1024
"""Places looked up at once: OpenCV's tables have fewer than 32768 rows."""
FAINTEST = 1.5
"""Grey levels per pixel: less is no edge."""
NEAR = 2.0
"""Pixels, one sigma: how far from the segment its edge is believed to be."""
DARKEST = 1e-3
"""Grey levels per pixel: the least slope whose logarithm is taken."""
MIDDLE, PLACES, ASIDE = 0.7, 9, 3
"""Of a segment's length that is measured again, places there, and pixels to either side."""
FEWEST, FARTHEST = 6, 1.5
"""Places where the edge must be found, and within how many pixels."""


def profiles(grey: npt.NDArray[Any], places: Array, normals: Array, reach: int) -> Single:
    """(..., 2 reach + 1) brightness at whole pixels across places (..., 2) along normals that
    broadcast with them."""
    cv2 = opencv()
    across = np.arange(-reach, reach + 1, dtype=np.float32)
    shape = *places.shape[:-1], len(across)
    size = math.prod(shape)
    rows = max(1, -(-size // ROW))
    table = np.zeros((2, rows * ROW), np.float32)
    # Coordinate by coordinate: loops over two numbers at a time are slow.
    for i, row in enumerate(table):
        # Pixel centres are at half-integers here, at integers in OpenCV.
        place, normal = (places[..., i] - 0.5).astype(np.float32), normals[..., i, None]
        off = normal.astype(np.float32) * across
        np.add(place[..., None], off, out=row[:size].reshape(shape))
    lookup = table.reshape(2, rows, ROW)
    values = cv2.remap(grey, *lookup, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(values.ravel()[:size].reshape(shape), np.float32)


def steepest(slopes: Single) -> tuple[Single, npt.NDArray[np.bool_]]:
    """(P,) pixels from the middle of profiles to where they rise most, and whether they do.

    slopes: (P, 2 reach) from pixel to pixel. The slope of a blurred step is a bell, and the
    logarithm of a bell a parabola: three values tell its top.
    """
    middle = np.arange(slopes.shape[1], dtype=np.float32) - 0.5 * (slopes.shape[1] - 1)
    near = slopes * np.exp(-0.5 * (middle / NEAR) ** 2)
    top = near[:, 1:-1].argmax(1) + 1
    place = top + np.arange(0, slopes.size, slopes.shape[1])
    around = slopes.ravel()[place + np.array([-1, 0, 1])[:, None]]
    rises = (around[0] > 0) & (around[1] > FAINTEST) & (around[2] > 0)
    before, at, after = np.log(np.maximum(around, DARKEST))
    bend = 2 * at - before - after
    shift = 0.5 * (after - before) / np.maximum(bend, DARKEST)
    return middle[top] + shift, rises & (bend > 0) & (np.abs(shift) <= 1)


def along_their_edges(grey: npt.NDArray[Any], ends: Array) -> Array:
    """Segments (N, 2, 2) turned and shifted onto the edges that they are seen along.

    The detector follows gradients into the corners at both ends, which turns short segments by
    degrees, and all those of a pattern of tiles the same way. So the edge is measured again on the
    middle part alone. Segments whose edge is not found there stay as they are.
    """
    across = ends[:, 1] - ends[:, 0]
    length = np.sqrt((across * across).sum(-1, keepdims=True)).clip(min=DARKEST)
    normal = np.stack([-across[:, 1], across[:, 0]], -1) / length
    share = MIDDLE * np.linspace(-0.5, 0.5, PLACES)
    places = ends.mean(1)[:, None] + share[:, None] * across[:, None]
    values = profiles(grey, places, normal[:, None], ASIDE + 1)
    # Smoothed across the edge only: along it corners would come in again.
    smooth = 0.5 * values[..., 1:-1] + 0.25 * (values[..., :-2] + values[..., 2:])
    slopes = np.diff(smooth, axis=-1)
    rising = slopes[..., ASIDE - 1 : ASIDE + 1].sum((1, 2)) >= 0
    slopes = np.where(rising[:, None, None], slopes, -slopes)
    offset, there = steepest(slopes.reshape(-1, 2 * ASIDE))
    offset, there = offset.reshape(-1, PLACES), there.reshape(-1, PLACES)
    weight = (there & (np.abs(offset) < FARTHEST)).astype(np.float64)
    count = weight.sum(1)
    sums = [(weight * value).sum(1) / count.clip(min=1) for value in (share, offset)]
    off = share - sums[0][:, None]
    turn = (weight * off * offset).sum(1) / (weight * off * off).sum(1).clip(min=DARKEST)
    found = (count >= FEWEST) & (np.abs(turn) < 2 * FARTHEST)
    shifts = np.stack([sums[1] + turn * (side - sums[0]) for side in (-0.5, 0.5)], -1)
    return np.asarray(ends + np.where(found[:, None], shifts, 0)[..., None] * normal[:, None])
