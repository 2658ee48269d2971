"""How a picture stands, by what is seen in it turned all ways."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

TURNS = (0, 1, 2, 3)
"""Quarter turns counter-clockwise, as ``numpy.rot90``."""
DEPENDENCE = 2.0
"""Four looks at one picture say as much as so many fewer that know nothing of each other."""


def seen_all_ways(images: Floats, first: Floats, standing: Callable[[Floats], Floats]) -> Floats:
    """(B, 4) log-probabilities of how inputs (B, 3, H, W) stand, from those of the first look at
    them and of looks at their other turns: a picture that stands turned by k shows, turned by j
    more, one that is turned by k + j."""
    others = (standing(np.rot90(images, turns, (-2, -1))) for turns in TURNS[1:])
    looks = [first, *others]
    total = np.stack([sum(looks[j][:, (k + j) % 4] for j in TURNS) for k in TURNS], 1) / DEPENDENCE
    return np.asarray(total - np.logaddexp.reduce(total, axis=1, keepdims=True))
