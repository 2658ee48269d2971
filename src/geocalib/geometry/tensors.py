"""Dataclasses of tensors, changed field by field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TypeVar

from torch import Tensor

Held = TypeVar("Held")
"""A dataclass of tensors alone."""


def map_tensors(change: Callable[..., Tensor], first: Held, *others: Held) -> Held:
    """With every tensor of the first changed, given those of the same name in the others."""
    names = [field.name for field in fields(first)]  # type: ignore[arg-type]
    every = (first, *others)
    return type(first)(**{name: change(*(getattr(one, name) for one in every)) for name in names})
