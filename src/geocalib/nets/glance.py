"""A glance at a picture, which tells how it stands, takes a quarter of its area."""

from __future__ import annotations

SHRINK = 2
"""How many times smaller each side is."""


def glance_size(height: int, width: int, multiple: int) -> tuple[int, int]:
    """Height and width of what is looked at of an input, in pixels: whole multiples.

    >>> glance_size(256, 320, 32)
    (128, 160)
    """
    rows, columns = (max(1, round(side / SHRINK / multiple)) for side in (height, width))
    return rows * multiple, columns * multiple
