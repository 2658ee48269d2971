from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from geocalib.nets.encoders import Encoder, load_pretrained
from geocalib.nets.hiera import HEAD_WIDTH, STRIDES, WIDTHS, Attention, Block, Hiera, translate

RELEASED = "GEOCALIB_HIERA"
"""Environment variable that names a file of SAM 2's trunk."""


@pytest.fixture(scope="module")
def trunk() -> Hiera:
    torch.manual_seed(0)
    trunk = Hiera().eval()
    # As strong as the released ones.
    for position in (trunk.coarse_position, trunk.window_position):
        torch.nn.init.normal_(position, std=0.1)
    return trunk


@pytest.mark.parametrize(("height", "width"), [(256, 256), (256, 352), (448, 256)])
@torch.no_grad()
def test_feature_maps_have_the_stated_widths_and_strides(
    trunk: Hiera, height: int, width: int
) -> None:
    levels = trunk(torch.rand(1, 3, height, width))
    assert [tuple(level.shape) for level in levels] == [
        (1, channels, height // stride, width // stride)
        for channels, stride in zip(WIDTHS, STRIDES, strict=True)
    ]


def test_parameters_are_as_many_as_released(trunk: Hiera) -> None:
    assert sum(p.numel() for p in trunk.parameters()) == 26_849_472


@torch.no_grad()
def test_without_its_last_stage_the_others_are_the_same(trunk: Hiera) -> None:
    short = Hiera(3).eval()
    whole = trunk.state_dict()
    short.load_state_dict({name: whole[name] for name in short.state_dict()})
    image = torch.rand(1, 3, 64, 96)
    for ours, theirs in zip(short(image), trunk(image)[:3], strict=True):
        assert torch.equal(ours, theirs)


def attention(before: int, after: int, window: int | None) -> Attention:
    torch.manual_seed(1)
    return Attention(before, after, window).double()


@pytest.mark.parametrize("after", [HEAD_WIDTH, 2 * HEAD_WIDTH])
@torch.no_grad()
def test_a_window_as_large_as_the_map_sees_everything(after: int) -> None:
    x = torch.randn(2, 8, 8, HEAD_WIDTH, dtype=torch.float64)
    cut, everywhere = (attention(HEAD_WIDTH, after, window) for window in (8, None))
    torch.testing.assert_close(cut(x), everywhere(x))


@pytest.mark.parametrize("after", [HEAD_WIDTH, 2 * HEAD_WIDTH])
@torch.no_grad()
def test_windows_are_attended_to_one_by_one(after: int) -> None:
    """Also where each of them is halved."""
    x = torch.randn(2, 8, 12, HEAD_WIDTH, dtype=torch.float64)
    cut, everywhere = (attention(HEAD_WIDTH, after, window) for window in (4, None))
    rows = [
        torch.cat([everywhere(x[:, i : i + 4, j : j + 4]) for j in range(0, 12, 4)], 2)
        for i in range(0, 8, 4)
    ]
    torch.testing.assert_close(cut(x), torch.cat(rows, 1))


@torch.no_grad()
def test_heads_are_the_naive_ones() -> None:
    width = 2 * HEAD_WIDTH
    module = attention(width, width, None)
    x = torch.randn(1, 2, 3, width, dtype=torch.float64)
    parts = module.qkv(x.reshape(6, width)).split(width, -1)
    seen = []
    for head in range(2):
        q, k, v = (part[:, head * HEAD_WIDTH : (head + 1) * HEAD_WIDTH] for part in parts)
        seen.append((q @ k.T / HEAD_WIDTH**0.5).softmax(-1) @ v)
    expected = module.leave(torch.cat(seen, -1)).reshape(x.shape)
    torch.testing.assert_close(module(x), expected)


@torch.no_grad()
def test_a_block_without_attention_halves_its_input_by_the_largest() -> None:
    block = Block(HEAD_WIDTH, 2 * HEAD_WIDTH, 4)
    for layer in (block.attention.leave, block.mlp[-1]):
        assert isinstance(layer, torch.nn.Linear)
        layer.weight.zero_()
        layer.bias.zero_()
    x = torch.randn(1, 4, 8, HEAD_WIDTH)
    assert block.widen is not None
    wide = block.widen(block.norm(x))
    expected = wide.reshape(1, 2, 2, 4, 2, -1).amax((2, 4))
    torch.testing.assert_close(block(x), expected)


@torch.no_grad()
def test_positions_repeat_in_windows_on_top_of_a_smooth_map(trunk: Hiera) -> None:
    position = trunk.position(16, 24)
    coarse = torch.nn.functional.interpolate(trunk.coarse_position, (16, 24), mode="bicubic")
    repeated = position - coarse
    torch.testing.assert_close(repeated[..., :8, :8], trunk.window_position)
    torch.testing.assert_close(repeated[..., 8:, 16:], trunk.window_position)


def test_gradients_reach_every_parameter(trunk: Hiera) -> None:
    trunk.zero_grad()
    levels = trunk(torch.rand(1, 3, 64, 96))
    torch.stack([level.square().mean() for level in levels]).sum().backward()  # type: ignore[no-untyped-call]
    for name, parameter in trunk.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.abs().sum() > 0), name
    trunk.zero_grad(set_to_none=True)


@torch.no_grad()
def test_under_autocast_what_blocks_add_to_stays_in_full_precision(trunk: Hiera) -> None:
    image = torch.rand(1, 3, 64, 96)
    with torch.autocast("cpu", torch.bfloat16):
        levels = trunk(image)
    assert {level.dtype for level in levels} == {torch.float32}
    for ours, exact in zip(levels, trunk(image), strict=True):
        assert float((ours - exact).norm() / exact.norm()) < 0.02


def test_unknown_blocks_keep_their_names() -> None:
    """So that they are refused, not taken for a stage that is left out."""
    value = torch.zeros(1)
    names = ["blocks.9.norm1.weight", "blocks.10.norm1.weight", "blocks.12.norm1.weight"]
    tensors = dict.fromkeys(names, value)
    assert list(translate(tensors, stages=3)) == ["stages.2.6.norm.weight", "blocks.12.norm.weight"]


def statistics(level: Tensor) -> list[float]:
    return [float(level.mean()), float(level.std()), float(level.flatten()[0])]


@pytest.mark.skipif(RELEASED not in os.environ, reason=f"{RELEASED} names no file of weights")
@torch.no_grad()
def test_released_weights_give_the_numbers_of_another_implementation() -> None:
    encoder = Encoder("hiera_tiny").eval()
    load_pretrained(encoder, Path(os.environ[RELEASED]))
    image = np.random.default_rng(0).normal(size=(1, 3, 256, 352)).astype(np.float32)
    expected = [
        [-0.052168, 0.729129, 0.452316],
        [0.019293, 0.282031, -0.381796],
        [-0.003846, 0.334846, -0.506230],
        [-0.005513, 0.161774, -0.038534],
    ]
    found = [statistics(level) for level in encoder.trunk(torch.from_numpy(image))]
    # Weights in half precision are off by half of this.
    np.testing.assert_allclose(found, expected, atol=1e-3)
