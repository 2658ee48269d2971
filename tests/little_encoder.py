"""An encoder of few layers, for tests of what is around an encoder."""

from __future__ import annotations

import pytest
from torch import Tensor, nn

from geocalib.nets import encoders
from geocalib.nets.encoders import Block, EncoderSpec
from geocalib.nets.published import Mscan, MscanShape


class Trunk(nn.Module):
    """One layer per level: three of patches, and a block of the packaged encoder, which halves with
    a margin. Each such halving makes exports longer to follow."""

    widths = (4, 8, 12, 16)
    strides = (4, 8, 16, 32)

    def __init__(self) -> None:
        super().__init__()
        first, second, third, last = self.widths
        self.stages = nn.ModuleList(
            [
                nn.Conv2d(3, first, 4, stride=4),
                nn.Conv2d(first, second, 2, stride=2),
                nn.Conv2d(second, third, 2, stride=2),
                Block(third, last, kernel=5, stride=2, expansion=3),
            ]
        )

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        levels = [x]
        for stage in self.stages:
            levels.append(stage(levels[-1]))
        return tuple(levels[1:])


LITTLE = EncoderSpec(Trunk, (0.5,) * 3, (0.25,) * 3)


def register_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """An encoder "little" that is quick to make."""
    shape = MscanShape(widths=(4, 6, 8, 10), depths=(1,) * 4, mlp_ratios=(2,) * 4)
    spec = encoders.EncoderSpec(lambda: Mscan(*shape), (0.5,) * 3, (0.25,) * 3)
    monkeypatch.setitem(encoders.ENCODERS, "little", spec)
