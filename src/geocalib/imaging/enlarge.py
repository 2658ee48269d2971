"""Fields at the size of the image that they show."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from geocalib.arrays import Array, tiny
from geocalib.cameras.camera import Window
from geocalib.geometry.fields import Fields


def enlarge(fields: Fields, view: Window, size: tuple[int, int]) -> Fields:
    """The fields of a view of an original of (width, height), at every pixel of the original.

    Between the fields' pixels they are interpolated. What the view leaves out of the original has
    the values of the nearest pixel in it, and no confidence.
    """
    width, height = fields.size
    # Where the centres of the original's pixels lie in the view, from 0 to 1.
    x = (np.arange(size[0]) + 0.5 - view.left) / view.width
    y = (np.arange(size[1]) + 0.5 - view.top) / view.height
    inside = ((x >= 0) & (x <= 1)) & ((y >= 0) & (y <= 1))[:, None]

    def enlarged(values: Array) -> Array:
        return _between(_between(values, y * height, -2), x * width, -1)

    # A direction in pixels of the original, which need not be scaled alike along both axes.
    stretch = np.array([view.width / width, view.height / height], fields.up.dtype)
    up = enlarged(fields.up) * stretch[:, None, None]
    return Fields(
        up=up / np.linalg.norm(up, axis=1, keepdims=True).clip(tiny(up)),
        latitude=enlarged(fields.latitude),
        up_confidence=enlarged(fields.up_confidence) * inside,
        latitude_confidence=enlarged(fields.latitude_confidence) * inside,
    )


def _between(values: Array, places: npt.NDArray[np.floating], axis: int) -> Array:
    """Values along an axis interpolated at places, in pixels, of which the first ends at 1; beyond
    the first and the last centre, the values there."""
    at = np.clip(places - 0.5, 0, values.shape[axis] - 1)
    lower = at.astype(np.intp)
    upper = np.minimum(lower + 1, values.shape[axis] - 1)
    share = (at - lower).astype(values.dtype)
    if axis == -2:
        share = share[:, None]
    return values.take(lower, axis) * (1 - share) + values.take(upper, axis) * share
