"""A glance at a picture, which tells how it stands, takes a quarter of its area."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

TURNS = (0, 1, 2, 3)
"""Quarter turns counter-clockwise, as ``numpy.rot90``."""
DEPENDENCE = 2.0
"""Four looks at one picture say as much as so many fewer that know nothing of each other."""

SHRINK = 2
"""How many times smaller each side is."""


def glance_size(height: int, width: int, multiple: int) -> tuple[int, int]:
    """Height and width of what is looked at of an input, in pixels: whole multiples.

    >>> glance_size(256, 320, 32)
    (128, 160)
    """
    rows, columns = (max(1, round(side / SHRINK / multiple)) for side in (height, width))
    return rows * multiple, columns * multiple


def standing(images: Floats, first: Floats, glance: Callable[[Floats], Floats]) -> Floats:
    """(B, 4) log-probabilities of how inputs (B, 3, H, W) stand, from the first glance at them and
    from glances at their other turns: a picture that stands turned by k shows, turned by j more,
    one that is turned by k + j."""
    others = (glance(np.rot90(images, turns, (-2, -1))) for turns in TURNS[1:])
    looks = [first, *others]
    total = np.stack([sum(looks[j][:, (k + j) % 4] for j in TURNS) for k in TURNS], 1) / DEPENDENCE
    return np.asarray(total - np.logaddexp.reduce(total, axis=1, keepdims=True))
