"""An encoder of few layers, for tests of what is around an encoder."""

from __future__ import annotations

from torch import Tensor, nn

from geocalib.nets.efficientnet_lite import Block, _conv
from geocalib.nets.encoders import Recipe


class Trunk(nn.Module):
    """One block of the packaged encoder per level, halving convolutions included."""

    widths = (4, 8, 12, 16)
    strides = (4, 8, 16, 32)

    def __init__(self) -> None:
        super().__init__()
        self.stem = _conv(3, 6, 3, stride=2)
        kernels, expansions = (3, 5, 3, 5), (1, 1, 1, 3)
        sizes = zip((6, *self.widths), self.widths, kernels, expansions, strict=False)
        self.stages = nn.ModuleList(Block(a, b, kernel, 2, more) for a, b, kernel, more in sizes)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        levels = [self.stem(x)]
        for stage in self.stages:
            levels.append(stage(levels[-1]))
        return tuple(levels[1:])


LITTLE = Recipe(Trunk, (0.5,) * 3, (0.25,) * 3)
