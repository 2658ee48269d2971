"""Records whose arrays begin with R, and their rows: records within them, too."""

from __future__ import annotations

import itertools
from dataclasses import is_dataclass
from typing import Any, TypeVar

import numpy as np

from geocalib.geometry.tensors import map_tensors
from geocalib.lines.unknowns import Flags

Held = TypeVar("Held")
"""A record whose arrays begin with R."""


def chosen(better: Flags, new: Held, old: Held) -> Held:
    """The new one in the rows (R,) where it is better."""
    if better.all():
        return new
    if not better.any():
        return old

    def choose(a: Any, b: Any) -> Any:
        if isinstance(a, np.ndarray):
            return np.where(better.reshape(-1, *(1,) * (a.ndim - 1)), a, b)
        return chosen(better, a, b)

    return map_tensors(choose, new, old)


def some(kept: Flags | slice, held: Held) -> Held:
    """Some rows (R,)."""

    def keep(value: Any) -> Any:
        match value:
            case np.ndarray():
                return value[kept]
            case tuple():
                return tuple(map(keep, value))
        return some(kept, value) if is_dataclass(value) else value

    return map_tensors(keep, held)


def joined(*parts: Held) -> Held:
    """Rows of several records, one after the other."""

    def join(*values: Any) -> Any:
        match values[0]:
            case np.ndarray():
                return np.concatenate(values)
            case tuple():
                return tuple(itertools.starmap(join, zip(*values, strict=True)))
        return joined(*values) if is_dataclass(values[0]) else values[0]

    return map_tensors(join, *parts)
