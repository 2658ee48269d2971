"""The observations of any number of images in a file, mapped to memory when they are needed.

Pages of the file come and go as the system sees fit, so that a fit over all of it takes the memory
of the part that it is working on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from geocalib.arrays import unstack
from geocalib.records import named_tensors
from geocalib.solver.observations import Observations

PLANES = 9
"""Numbers per place: x and y of the up-vector and of the latitude, and their five values."""

ROWS_AT_ONCE = 256
"""Images that are copied at once where a file is made wider."""


class Store:
    """A file of observations, one row of N places per image; wider ones make all rows wider."""

    def __init__(self, path: Path, dtype: npt.DTypeLike = np.float32) -> None:
        """dtype: float32 or float64, of the file and of what is computed from it."""
        self.path = path
        self.kind = dtype
        self.images = 0
        self.places = 0
        path.write_bytes(b"")

    def __len__(self) -> int:
        return self.images

    def append(self, observations: Observations) -> None:
        """Add the rows of B images at the end."""
        if observations.count > self.places:
            self._widen(observations.count)
        o = observations.padded(self.places)
        rows = np.concatenate(list(named_tensors(o).values()), 1).astype(self.kind, copy=False)
        with self.path.open("ab") as file:
            rows.tofile(file)
        self.images += len(rows)

    def load(self) -> Observations:
        """All of them. They hold on to the file, but may be changed without changing it."""
        if self.images == 0:
            raise ValueError(f"{self.path} holds no observations")
        rows = self._mapped(self.path, self.places, "c")
        n = self.places
        at_x, at_y = (rows[:, i : i + 2].reshape(len(rows), 2 * n) for i in (0, 2))
        return Observations(at_x, at_y, *unstack(rows[:, 4:], 1))

    def _mapped(self, path: Path, places: int, mode: Any) -> npt.NDArray[Any]:
        shape = (self.images, PLANES, places)
        return np.memmap(path, self.kind, mode, shape=shape)

    def _widen(self, places: int) -> None:
        if self.images:
            narrow = self._mapped(self.path, self.places, "r")
            wider = self.path.with_suffix(".wider")
            wide = self._mapped(wider, places, "w+")
            for start in range(0, self.images, ROWS_AT_ONCE):
                part = slice(start, start + ROWS_AT_ONCE)
                wide[part, :, : self.places] = narrow[part]
            wide.flush()  # type: ignore[attr-defined]
            wider.replace(self.path)
        self.places = places
