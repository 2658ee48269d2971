"""Dataclasses of arrays, changed field by field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TypeVar

from geocalib.arrays import Array

Held = TypeVar("Held")
"""A dataclass of arrays alone."""


def named_tensors(held: object) -> dict[str, Array]:
    """The arrays of a dataclass by their names, in order."""
    return {field.name: getattr(held, field.name) for field in fields(held)}  # type: ignore[arg-type]


def map_tensors(change: Callable[..., Array], first: Held, *others: Held) -> Held:
    """With every array of the first changed, given those of the same name in the others."""
    every = list(map(named_tensors, (first, *others)))
    return type(first)(**{name: change(*(one[name] for one in every)) for name in every[0]})
