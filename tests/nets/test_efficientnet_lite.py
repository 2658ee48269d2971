from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from geocalib.nets.encoders import OUTPUTS, STAGES, Block, EfficientNetLite, _conv
from geocalib.nets.folding import fold_batch_norm

BASE = [
    # depth, kernel, stride, expansion, width of EfficientNet-B0, which the others scale.
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
]


def test_stages_are_the_base_scaled_as_lite2_is() -> None:
    """1.1 times the width, in eights; 1.2 times the depth, but for the first and last stage."""
    expected = []
    for i, (depth, kernel, stride, expansion, width) in enumerate(BASE):
        if 0 < i < len(BASE) - 1:
            depth = math.ceil(1.2 * depth)
        expected.append((depth, kernel, stride, expansion, 8 * int(1.1 * width / 8 + 0.5)))
    assert [tuple(stage) for stage in STAGES] == expected


def test_blocks_have_the_structure_of_their_stage() -> None:
    trunk = EfficientNetLite()
    before = 32
    for stage, blocks in zip(STAGES, trunk.stages, strict=True):
        assert len(blocks) == stage.depth
        for i, block in enumerate(blocks):
            assert isinstance(block, Block)
            hidden = before * stage.expansion
            conv = block.spread.conv
            assert (conv.in_channels, conv.out_channels, conv.groups) == (hidden,) * 3
            assert conv.kernel_size == (stage.kernel,) * 2
            assert conv.stride == ((stage.stride if i == 0 else 1),) * 2
            assert (block.expand is None) == (stage.expansion == 1)
            assert block.project.conv.out_channels == stage.width
            assert block.residual == (i > 0)
            before = stage.width


def test_it_has_the_parameters_of_lite2_without_the_classifier() -> None:
    # 6,092,072 with it: a 1x1 convolution from 352 to 1280, its norm, and 1000 classes.
    head = 352 * 1280 + 2 * 1280 + (1280 + 1) * 1000
    assert sum(p.numel() for p in EfficientNetLite().parameters()) == 6_092_072 - head


@pytest.mark.parametrize(("height", "width"), [(64, 64), (64, 96), (96, 32)])
@torch.no_grad()
def test_feature_maps_have_the_stated_widths_and_strides(height: int, width: int) -> None:
    trunk = EfficientNetLite().eval()
    levels = trunk(torch.rand(2, 3, height, width))
    assert trunk.widths == tuple(STAGES[i].width for i in OUTPUTS) == (24, 48, 120, 352)
    assert [tuple(level.shape) for level in levels] == [
        (2, channels, height // stride, width // stride)
        for channels, stride in zip(trunk.widths, trunk.strides, strict=True)
    ]


@pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (3, 1), (5, 1), (3, 2), (5, 2)])
@torch.no_grad()
def test_same_padding_against_a_naive_computation(kernel: int, stride: int) -> None:
    """An output has ceil(size / stride) cells; half of the padding, rounded down, comes first."""
    torch.manual_seed(0)
    height, width = 6, 8
    image = torch.randn(1, 2, height, width, dtype=torch.float64)
    layers = _conv(2, 3, kernel, stride).double()
    conv = layers.conv
    assert isinstance(conv, nn.Conv2d)
    out_h, out_w = math.ceil(height / stride), math.ceil(width / stride)
    top = max((out_h - 1) * stride + kernel - height, 0) // 2
    left = max((out_w - 1) * stride + kernel - width, 0) // 2
    expected = image.new_zeros(1, 3, out_h, out_w)
    for i in range(out_h):
        for j in range(out_w):
            for a in range(kernel):
                for b in range(kernel):
                    y, x = i * stride + a - top, j * stride + b - left
                    if 0 <= y < height and 0 <= x < width:
                        expected[0, :, i, j] += conv.weight[:, :, a, b] @ image[0, :, y, x]
    # A fresh batch norm in evaluation divides by sqrt(1 + eps).
    torch.testing.assert_close(layers.eval()(image), expected / math.sqrt(1 + 1e-3))
    folded = fold_batch_norm(layers)
    torch.testing.assert_close(folded(image), expected / math.sqrt(1 + 1e-3))
    assert isinstance(folded.conv, nn.Conv2d)
    assert min(folded.conv.padding) == kernel // 2


@torch.no_grad()
def test_block_adds_its_input_only_where_shapes_agree() -> None:
    block = Block(8, 8, kernel=3, stride=1, expansion=6).eval()
    x = torch.randn(1, 8, 4, 4)
    for parameter in block.project.parameters():
        nn.init.zeros_(parameter)
    torch.testing.assert_close(block(x), x)
    assert not Block(8, 8, kernel=3, stride=2, expansion=6).residual
    assert not Block(8, 16, kernel=3, stride=1, expansion=6).residual
