"""A fixed split into photographs for choosing constants and held-out ones."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from pathlib import Path

SPLITS = {"train": True, "val": False, "test": False}
"""Whether constants may be chosen on the pictures of a folder of that name."""


class Half(StrEnum):
    """A half of a set of photographs."""

    CHOSEN_ON = "chosen on"
    HELD_OUT = "held out"


def half_of(image: Path) -> Half:
    """That of one photograph: by its folder where that is a split, else by its file's name.

    >>> str(half_of(Path("photos/val/lake.jpg")))
    'held out'
    """
    choose = SPLITS.get(image.parent.name)
    if choose is None:
        # A hash says nothing about the picture, and is the same on every machine.
        name = image.name.encode("utf-8", "surrogateescape")
        choose = hashlib.sha256(name).digest()[0] % 2 == 0
    return Half.CHOSEN_ON if choose else Half.HELD_OUT
