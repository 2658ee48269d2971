from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from geocalib_lab.cost import measure_cost


class Attending(nn.Module):
    """A 1x1 convolution, then attention of every pixel to every other."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, width, kernel_size=1)

    def forward(self, image: Tensor) -> Tensor:
        tokens = self.enter(image).flatten(2).transpose(1, 2)[:, None]
        return functional.scaled_dot_product_attention(tokens, tokens, tokens)


def test_multiplications_and_additions_of_a_convolution() -> None:
    cost = measure_cost(nn.Conv2d(3, 8, kernel_size=3, stride=2, padding=1), 12, 20)
    assert cost.parameters == 8 * 3 * 9 + 8
    assert cost.flops == 2 * 8 * 3 * 9 * 6 * 10


def test_attention_counts_both_products() -> None:
    tokens, width = 4 * 6, 16
    cost = measure_cost(Attending(width), 6, 4)
    assert cost.flops == 2 * tokens * 3 * width + 2 * (2 * tokens**2 * width)


def test_the_network_is_left_as_it_was() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4))
    before = network[1].running_mean.clone()
    measure_cost(network, 8, 8)
    assert network.training
    assert torch.equal(network[1].running_mean, before)
