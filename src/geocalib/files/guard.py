"""What a command may write: never what it reads, and nothing that exists, unless allowed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from geocalib.errors import OutputError
from geocalib.files.whole import is_special

MEND = "choose another name or add --overwrite"

Own = Callable[[Path], bool]
"""Tells whether a file that exists is one of ours that the command goes on with."""


class Guard:
    """Knows the inputs of a command by every name they have, links among them."""

    def __init__(self, inputs: Iterable[str | Path | None] = (), overwrite: bool = False) -> None:
        """inputs: files, and folders in which nothing may be written; None is passed over."""
        self.overwrite = overwrite
        self._places: set[str] = set()
        self._nodes: set[tuple[int, int]] = set()
        self._folders: list[str] = []
        for path in inputs:
            if path is not None:
                self._add(path)

    def _add(self, path: str | Path) -> None:
        place = os.path.realpath(path)
        self._places.add(place)
        if os.path.isdir(place):
            self._folders.append(os.path.join(place, ""))
        elif (node := _node(path)) is not None:
            self._nodes.add(node)

    def check(self, targets: Iterable[Path], own: Own | None = None) -> None:
        """An error unless each of the files may be written; call it before any of them is."""
        places: set[str] = set()
        for target in targets:
            place = os.path.realpath(target)
            if place in self._places or _node(target) in self._nodes:
                raise OutputError(f"{target} is an input and stays as it is; choose another output")
            if folder := next((f for f in self._folders if place.startswith(f)), None):
                raise OutputError(f"{target} lies in {folder}, an input; choose another output")
            if is_special(target):
                continue
            if place in places:
                raise OutputError(f"{target} would be written twice; choose names that differ")
            places.add(place)
            self._check_existing(target, own)

    def _check_existing(self, target: Path, own: Own | None) -> None:
        if target.is_dir():
            raise OutputError(f"{target} is a folder; choose another name")
        # An empty file holds nothing that could be lost.
        if not target.exists() or target.stat().st_size == 0:
            return
        if not os.access(target, os.W_OK):
            raise OutputError(f"{target} may not be written; check its permissions")
        if self.overwrite or (own is not None and own(target)):
            return
        # Only where one looks into a file can one say whose it is.
        whose = "" if own is None else " and is not from geocalib"
        raise OutputError(f"{target} exists{whose}; {MEND}")


def existing(word: str | None) -> str | None:
    """The word if it is a path: a rig may also be known by name."""
    return word if word is not None and os.path.exists(word) else None


def _node(path: str | Path) -> tuple[int, int] | None:
    """What all names of a file have in common."""
    try:
        state = os.stat(path)
    except OSError:
        return None
    return state.st_dev, state.st_ino
