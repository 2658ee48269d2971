"""Dataclasses of arrays, changed field by field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import TypeVar

from geocalib.arrays import Array

Held = TypeVar("Held")
"""A dataclass of arrays alone."""


def named_tensors(held: object) -> dict[str, Array]:
    """The arrays of a dataclass by their names, in order."""
    return {name: getattr(held, name) for name in field_names(type(held))}  # type: ignore[arg-type]  # types are hashable


@cache
def field_names(kind: type) -> tuple[str, ...]:
    """The names of the fields of a class, in order."""
    return tuple(field.name for field in fields(kind))


def map_tensors(change: Callable[..., Array], first: Held, *others: Held) -> Held:
    """With every array of the first changed, given those of the same name in the others."""
    every = first, *others
    names = field_names(type(first))  # type: ignore[arg-type]
    return type(first)(*[change(*[getattr(one, name) for one in every]) for name in names])
