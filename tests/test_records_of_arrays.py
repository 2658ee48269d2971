"""Dataclasses of tensors are changed by the names of their fields."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from geocalib.records import map_tensors


@dataclass(frozen=True)
class Pair:
    long: Tensor
    short: Tensor


def test_every_field_is_changed_with_its_namesakes() -> None:
    first, second = (Pair(torch.full((3,), v), torch.full((1,), 10 * v)) for v in (1.0, 2.0))
    total = map_tensors(torch.add, first, second)
    assert isinstance(total, Pair)
    assert total.long.tolist() == [3, 3, 3]
    assert total.short.tolist() == [30]
    assert map_tensors(torch.neg, first).short.tolist() == [-10]
