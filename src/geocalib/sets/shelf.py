"""What was seen of each picture of a set, kept on disk until all of them are done.

The network takes hours for thousands of pictures, and their fit needs them all: so a run that was
interrupted finds here what it has seen already. A leaf belongs to a file as it is (path, size, time
of change) and to the way it was asked about.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from torch import Tensor

from geocalib.clues import File
from geocalib.errors import FormatError
from geocalib.files import replacing
from geocalib.lines.segments import Segments
from geocalib.sets.plane import Plane
from geocalib.solver.observations import Observations

LEAF = ".leaf"
"""What the names of leaves end in."""

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True)
class Leaf:
    """A picture as the joint fit needs it."""

    file: File
    plane: Plane
    observations: Observations
    """Of one picture, in the plane of its camera."""
    down: Tensor | None
    """(3,) where to look for gravity first, where any side may be up."""
    notes: tuple[str, ...]
    segments: Segments | None


class Shelf:
    """A folder of leaves."""

    def __init__(self, folder: Path, asked: str) -> None:
        """asked: what else the leaves depend on, in any words."""
        self.folder = folder
        self._asked = asked
        folder.mkdir(parents=True, exist_ok=True)

    def sights(
        self, images: Sequence[S], see: Callable[[Sequence[S]], Iterator[T]]
    ) -> Iterator[T | Leaf]:
        """Each picture as it is on the shelf, or else as it is seen now, a few at a time."""
        there = [self._exists(image) for image in images]
        fresh = see([image for image, known in zip(images, there, strict=True) if not known])
        for image, known in zip(images, there, strict=True):
            yield self._read(image) if known else next(fresh)

    def _exists(self, image: object) -> bool:
        place = self._place(image)
        return place is not None and place.exists()

    def _read(self, image: object) -> Leaf:
        place = self._place(image)
        assert place is not None
        try:
            # Our own files, in a folder that the user's own run has made.
            leaf = pickle.loads(place.read_bytes())
        except (OSError, pickle.UnpicklingError, EOFError, AttributeError, ImportError):
            leaf = None
        if not isinstance(leaf, Leaf):
            raise FormatError(f"{place} is damaged; delete {self.folder} to start afresh")
        return leaf

    def keep(self, leaf: Leaf) -> None:
        """Put a leaf there; one of a picture that is no file is not kept."""
        place = self._place(leaf.file.path)
        if place is not None:
            with replacing(place) as file:
                file.write(pickle.dumps(leaf))

    def _place(self, image: object) -> Path | None:
        if not isinstance(image, str | os.PathLike):
            return None
        try:
            state = os.stat(image)
        except OSError:
            return None
        key = (os.path.abspath(image), state.st_size, state.st_mtime_ns, self._asked)
        return self.folder / f"{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}{LEAF}"


def clear(folder: Path) -> None:
    """Remove the leaves of a folder, and the folder if nothing else is in it."""
    for leaf in folder.glob(f"*{LEAF}"):
        leaf.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()
