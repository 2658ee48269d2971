"""The MSCAN encoder against a slow float64 computation with SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.ndimage import correlate
from scipy.special import erf
from torch import nn

from geocalib.nets.published import BASE, SMALL, TINY, Mscan, MscanBlock, MscanShape

SMALLEST = MscanShape(widths=(4, 6, 8, 10), depths=(1, 2, 1, 1), mlp_ratios=(2, 2, 2, 2))


def scramble(module: nn.Module, seed: int = 0) -> nn.Module:
    """All parameters and statistics random, so that nothing cancels by chance."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in (*module.named_parameters(), *module.named_buffers()):
            if value.is_floating_point():
                value.uniform_(-0.5, 0.5, generator=generator)
                if name.endswith("running_var"):
                    value.add_(1.0)
    return module.eval()


def conv(x: np.ndarray, layer: nn.Conv2d) -> np.ndarray:
    """(C, H, W) through a convolution of stride 1 with zeros around, pair by pair of channels."""
    weight = layer.weight.detach().numpy()
    out = np.stack([np.full(x.shape[1:], b) for b in layer.bias.detach().numpy()])
    for i in range(len(weight)):
        for j in range(weight.shape[1]):
            source = i if layer.groups > 1 else j
            out[i] += correlate(x[source], weight[i, j], mode="constant")
    return out


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + erf(x / np.sqrt(2)))


def batch_norm(x: np.ndarray, layer: nn.BatchNorm2d) -> np.ndarray:
    mean, var, weight, bias = (
        t.detach().numpy()[:, None, None]
        for t in (layer.running_mean, layer.running_var, layer.weight, layer.bias)
    )
    return (x - mean) / np.sqrt(var + 1e-5) * weight + bias


def test_block_against_scipy() -> None:
    block = scramble(MscanBlock(width=3, mlp_ratio=2)).double()
    x = np.random.default_rng(0).normal(size=(3, 9, 12))

    y = batch_norm(x, block.norm1)
    a = block.attention
    inner = gelu(conv(y, a.enter))
    square = conv(inner, a.square)
    context = square.copy()
    for row, column in a.strips:
        assert row.kernel_size[0] == 1
        assert column.kernel_size[1] == 1
        context += conv(conv(square, row), column)
    attended = conv(inner * conv(context, a.mix), a.leave) + y
    expected = x + block.scale1.detach().numpy()[:, None, None] * attended
    hidden = conv(batch_norm(expected, block.norm2), block.mlp.enter)
    moved = conv(gelu(conv(hidden, block.mlp.spread)), block.mlp.leave)
    expected = expected + block.scale2.detach().numpy()[:, None, None] * moved

    with torch.no_grad():
        found = block(torch.from_numpy(x)[None])[0].numpy()
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_strips_are_of_the_stated_lengths() -> None:
    lengths = [
        (row.kernel_size, column.kernel_size) for row, column in MscanBlock(4, 2).attention.strips
    ]
    assert lengths == [((1, n), (n, 1)) for n in (7, 11, 21)]


def test_levels_have_the_stated_strides_and_widths() -> None:
    encoder = Mscan(*SMALLEST)
    assert encoder.widths == SMALLEST.widths
    assert encoder.strides == (4, 8, 16, 32)
    levels = encoder(torch.rand(2, 3, 64, 96))
    assert [tuple(level.shape) for level in levels] == [
        (2, width, 64 // stride, 96 // stride)
        for width, stride in zip(encoder.widths, encoder.strides, strict=True)
    ]


def test_every_level_leaves_a_layer_norm_over_channels() -> None:
    for level in Mscan(*SMALLEST)(torch.rand(1, 3, 64, 64)):
        assert level.mean(1).abs().max() < 1e-5
        assert (level.var(1, unbiased=False) - 1).abs().max() < 0.01


def test_a_stage_starts_from_the_norm_of_the_one_before() -> None:
    encoder = scramble(Mscan(*SMALLEST))
    first, second = encoder(torch.rand(1, 3, 64, 64))[:2]
    torch.testing.assert_close(encoder.stages[1](first), second)


@pytest.mark.parametrize(
    ("shape", "parameters"), [(TINY, 3_903_584), (SMALL, 13_450_176), (BASE, 26_277_824)]
)
def test_named_sizes(shape: MscanShape, parameters: int) -> None:
    with torch.device("meta"):
        encoder = Mscan(*shape)
    assert sum(p.numel() for p in encoder.parameters()) == parameters


def test_gradients_reach_every_parameter() -> None:
    encoder = Mscan(*SMALLEST)
    # A layer norm's output has a fixed sum and sum of squares: only a cube sees what is below.
    sum((level**3).sum() for level in encoder(torch.rand(2, 3, 64, 64))).backward()
    silent = [n for n, p in encoder.named_parameters() if p.grad is None or not p.grad.any()]
    # A bias just before a batch norm is taken off again.
    assert {n for n in silent if ".entry." not in n} == set()


def test_one_entry_per_stage() -> None:
    with pytest.raises(ValueError, match="zip"):
        Mscan((8, 8, 8, 8), (1, 1, 1), (2, 2, 2, 2))
