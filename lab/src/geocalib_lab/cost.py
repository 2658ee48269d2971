"""What a network costs: its parameters, and its floating-point operations for one image."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode


@dataclass(frozen=True)
class Cost:
    """The cost of one image of a given size."""

    parameters: int
    flops: int
    """Of convolutions and matrix products, multiplications and additions counted separately."""


def measure_cost(network: nn.Module, width: int, height: int) -> Cost:
    """The cost of a network for one image of that many pixels, found by running a copy once."""
    copied = copy.deepcopy(network).eval()
    like = next(network.parameters())
    image = torch.zeros(1, 3, height, width, dtype=like.dtype, device=like.device)
    # The plain backend spells attention out as the matrix products the counter knows.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        copied(image)
    return Cost(sum(p.numel() for p in network.parameters()), counter.get_total_flops())
