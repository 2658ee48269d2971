"""Training states on disk: whole ones to resume from, light ones in shards to carry elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from geocalib.errors import FormatError
from geocalib.files import replacing

SHARD_LIMIT = 15 * 2**20
"""Bytes of tensors in one shard."""


def save(state: dict[str, Any], path: Path) -> None:
    """Write a state of tensors and plain values; a reader never sees half a file."""
    with replacing(path) as file:
        torch.save(state, file)


def load(path: Path, device: torch.device | str = "cpu") -> dict[str, Any]:
    """Read a checkpoint that ``save`` wrote."""
    try:
        state = torch.load(path, map_location=device, weights_only=True)
    except FileNotFoundError:
        raise FormatError(f"{path} does not exist") from None
    except Exception as error:
        raise FormatError(f"{path} is no checkpoint: {error}") from error
    if not isinstance(state, dict):
        raise FormatError(f"{path} holds a {type(state).__name__}, not a dictionary of tensors")
    return state


def export_shards(state: dict[str, Tensor], stem: Path, limit: int = SHARD_LIMIT) -> list[Path]:
    """Write weights in half precision to stem-00.pt, stem-01.pt, ... of at most ``limit`` bytes.

    Vectors (biases, norms and their statistics) keep their precision: they are small, and
    variances may not fit into half the bits. Shards of an earlier, longer export are removed.
    """
    shards: list[dict[str, Tensor]] = [{}]
    used = 0
    for name, value in state.items():
        light = value.detach().cpu()
        if light.is_floating_point() and light.dim() > 1:
            light = light.half()
        light = light.contiguous().clone()
        size = light.numel() * light.element_size()
        if size > limit:
            raise FormatError(f"{name} alone takes {size} bytes, more than a shard's {limit}")
        if used + size > limit:
            shards.append({})
            used = 0
        shards[-1][name] = light
        used += size
    paths = [stem.with_name(f"{stem.name}-{i:02d}.pt") for i in range(len(shards))]
    for path, shard in zip(paths, shards, strict=True):
        save(shard, path)
    for path in shards_of(stem):
        if path not in paths:
            path.unlink()
    return paths


def import_shards(stem: Path) -> dict[str, Tensor]:
    """The weights written to stem-*.pt, in single precision."""
    paths = shards_of(stem)
    if not paths:
        raise FormatError(f"there is no {stem}-00.pt; give the path without -00.pt")
    state = {}
    for path in paths:
        for name, value in load(path).items():
            state[name] = value.float() if value.is_floating_point() else value
    return state


def shards_of(stem: Path) -> list[Path]:
    """The files of weights written to stem-*.pt."""
    return sorted(stem.parent.glob(f"{stem.name}-[0-9][0-9].pt"))
