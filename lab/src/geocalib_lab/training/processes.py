"""One process or several: who this one is, and what they tell each other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import distributed


@dataclass(frozen=True)
class Process:
    """This process among those that train together."""

    rank: int
    count: int
    device: torch.device

    @property
    def leads(self) -> bool:
        """Whether this one logs, validates and saves."""
        return self.rank == 0

    def agree(self, value: float) -> float:
        """The leader's value, for all; so that all stop at the same step."""
        if self.count == 1:
            return value
        shared = torch.tensor([value], dtype=torch.float64, device=self.device)
        distributed.broadcast(shared, 0)
        return float(shared)


@contextmanager
def join(device: str | None = None) -> Iterator[Process]:
    """This process as torchrun describes it in the environment; alone without.

    device: "cpu" or "cuda"; by default cuda where there is one.
    """
    kind = device or ("cuda" if torch.cuda.is_available() else "cpu")
    count = int(os.environ.get("WORLD_SIZE", "1"))
    rank = int(os.environ.get("RANK", "0"))
    place = torch.device(kind)
    if kind == "cuda":
        place = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(place)
    if count == 1:
        yield Process(0, 1, place)
        return
    distributed.init_process_group("nccl" if kind == "cuda" else "gloo")
    try:
        yield Process(rank, count, place)
    finally:
        distributed.destroy_process_group()
