"""EXIF orientation, 1 to 8: how a stored picture is turned (seldom mirrored) to be seen upright.

Directions have x right, y down and z forward of the picture, stored or upright.
"""

from __future__ import annotations

Vector = tuple[float, float, float]

UNDOES = {6: 8, 8: 6}
"""The orientation that undoes another; all others undo themselves."""


def upright(stored: Vector, orientation: int) -> Vector:
    """A direction of the stored picture's frame in that of the upright one, by EXIF orientation
    1 to 8."""
    x, y, z = stored
    if orientation in (5, 6, 7, 8):
        x, y = y, x
    if orientation in (2, 3, 6, 7):
        x = -x
    if orientation in (3, 4, 7, 8):
        y = -y
    return x, y, z
