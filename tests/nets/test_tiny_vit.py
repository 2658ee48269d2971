from __future__ import annotations

import pytest
import torch
from torch import Tensor

from geocalib.nets.tiny_vit import HEAD_WIDTH, STRIDES, WIDTHS, TinyVit, WindowAttention, translate

SIZES = [(64, 64), (64, 96), (96, 64)]


@pytest.fixture(scope="module")
def trunk() -> TinyVit:
    torch.manual_seed(0)
    return TinyVit().eval()


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_feature_maps_have_the_stated_widths_and_strides(
    trunk: TinyVit, height: int, width: int
) -> None:
    levels = trunk(torch.rand(2, 3, height, width))
    assert [tuple(level.shape) for level in levels] == [
        (2, channels, height // stride, width // stride)
        for channels, stride in zip(WIDTHS, STRIDES, strict=True)
    ]


def test_it_has_the_parameters_of_mobile_sam_without_classifier_and_neck(trunk: TinyVit) -> None:
    # 6,075,415 stored numbers of the image encoder less running statistics and their counters,
    # the classifier, its norm and the neck.
    assert sum(p.numel() for p in trunk.parameters()) == 5_071_124


def random_attention(channels: int, window: int) -> WindowAttention:
    attention = WindowAttention(channels, window).double()
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter)
    return attention


def attend_naively(attention: WindowAttention, x: Tensor, h: int, w: int) -> Tensor:
    """Window by window, head by head, cell by cell, windows of h x w from the top left."""
    height, width, channels = x.shape
    out = torch.zeros_like(x)
    for top in range(0, height, h):
        for left in range(0, width, w):
            cells = [(i, j) for i in range(top, top + h) for j in range(left, left + w)]
            inside = [i < height and j < width for i, j in cells]
            zero = x.new_zeros(channels)
            tokens = torch.stack(
                [x[c] if seen else zero for c, seen in zip(cells, inside, strict=True)]
            )
            qkv = attention.qkv(attention.norm(tokens))
            for n, (i, j) in enumerate(cells):
                if not inside[n]:
                    continue
                seen_by_heads = []
                for head in range(attention.heads):
                    start = 3 * HEAD_WIDTH * head
                    q, k, v = (
                        qkv[:, start + part * HEAD_WIDTH : start + (part + 1) * HEAD_WIDTH]
                        for part in range(3)
                    )
                    scores = k @ q[n] / HEAD_WIDTH**0.5
                    scores = scores + torch.stack(
                        [attention.biases[head, abs(a - i), abs(b - j)] for a, b in cells]
                    )
                    seen_by_heads.append(scores.softmax(0) @ v)
                out[i, j] = attention.leave(torch.cat(seen_by_heads))
    return out


@pytest.mark.parametrize(
    ("size", "window"),
    [((7, 7), (7, 7)), ((4, 6), (4, 6)), ((14, 7), (7, 7)), ((9, 8), (5, 4)), ((8, 15), (4, 5))],
    ids=lambda value: "x".join(map(str, value)),
)
@torch.no_grad()
def test_window_attention_is_the_naive_one(size: tuple[int, int], window: tuple[int, int]) -> None:
    """The largest window is 7: maps are cut into the fewest, evenly shrunk windows."""
    torch.manual_seed(1)
    attention = random_attention(2 * HEAD_WIDTH, 7)
    x = torch.randn(2, *size, 2 * HEAD_WIDTH, dtype=torch.float64)
    expected = torch.stack([attend_naively(attention, image, *window) for image in x])
    torch.testing.assert_close(attention(x), expected)


@torch.no_grad()
def test_bias_depends_on_the_distance_alone() -> None:
    attention = random_attention(HEAD_WIDTH, 14)
    bias = attention.bias(5, 9).view(5, 9, 5, 9)
    assert bias[1, 2, 4, 8] == attention.biases[0, 3, 6] == bias[4, 2, 1, 8] == bias[3, 7, 0, 1]


def test_translation_keeps_the_layout_of_the_biases() -> None:
    table = torch.arange(2 * 196.0).view(2, 196)
    (value,) = translate({"image_encoder.layers.2.blocks.0.attn.attention_biases": table}).values()
    assert value.shape == (2, 14, 14)
    assert value[1, 3, 5] == table[1, 3 * 14 + 5]


def test_channels_last_gives_the_same(trunk: TinyVit) -> None:
    image = torch.rand(1, 3, 64, 96)
    with torch.no_grad():
        for ours, theirs in zip(
            trunk(image), trunk(image.to(memory_format=torch.channels_last)), strict=True
        ):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
