from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from geocalib.errors import ConfigError, WeightsError
from geocalib.nets.encoders import RECIPES, Encoder, load_pretrained

Released = dict[str, Tensor]


def conv_bn(conv: str, norm: str, *shape: int) -> Released:
    """A convolution's weight and its batch norm's five tensors, under released names."""
    width = shape[0]
    return {
        f"{conv}.weight": torch.randn(shape),
        **{f"{norm}.{name}": torch.randn(width) for name in ("weight", "bias", "running_mean")},
        f"{norm}.running_var": torch.rand(width) + 0.5,
        f"{norm}.num_batches_tracked": torch.tensor(7),
    }


def released_tiny_vit() -> Released:
    """MobileSAM's file: the image encoder, and a tensor of each part that is left aside."""

    def pair(name: str, *shape: int) -> Released:
        return conv_bn(f"image_encoder.{name}.c", f"image_encoder.{name}.bn", *shape)

    def affine(name: str, *shape: int) -> Released:
        return {
            f"image_encoder.{name}.weight": torch.randn(shape),
            f"image_encoder.{name}.bias": torch.randn(shape[0]),
        }

    tensors = pair("patch_embed.seq.0", 32, 3, 3, 3) | pair("patch_embed.seq.2", 64, 32, 3, 3)
    for block in range(2):
        name = f"layers.0.blocks.{block}"
        tensors |= pair(f"{name}.conv1", 256, 64, 1, 1) | pair(f"{name}.conv2", 256, 1, 3, 3)
        tensors |= pair(f"{name}.conv3", 64, 256, 1, 1)
    for layer, (before, after) in enumerate([(64, 128), (128, 160), (160, 320)]):
        name = f"layers.{layer}.downsample"
        tensors |= pair(f"{name}.conv1", after, before, 1, 1)
        tensors |= pair(f"{name}.conv2", after, 1, 3, 3) | pair(f"{name}.conv3", after, after, 1, 1)
    for layer, width, depth, window in [(1, 128, 2, 7), (2, 160, 6, 14), (3, 320, 2, 7)]:
        for block in range(depth):
            name = f"layers.{layer}.blocks.{block}"
            biases = torch.randn(width // 32, window**2)
            tensors[f"image_encoder.{name}.attn.attention_biases"] = biases
            tensors |= affine(f"{name}.attn.norm", width) | affine(f"{name}.mlp.norm", width)
            tensors |= affine(f"{name}.attn.qkv", 3 * width, width)
            tensors |= affine(f"{name}.attn.proj", width, width)
            tensors |= affine(f"{name}.mlp.fc1", 4 * width, width)
            tensors |= affine(f"{name}.mlp.fc2", width, 4 * width)
            tensors |= pair(f"{name}.local_conv", width, 1, 3, 3)
    aside = ["image_encoder.neck.0.weight", "image_encoder.head.bias", "image_encoder.norm_head.b"]
    return tensors | {name: torch.randn(2) for name in [*aside, "mask_decoder.iou_token.weight"]}


def released_lite2() -> Released:
    tensors = conv_bn("_conv_stem", "_bn0", 32, 3, 3, 3)
    tensors |= conv_bn("_conv_head", "_bn1", 1280, 352, 1, 1)
    tensors |= {"_fc.weight": torch.randn(10, 1280), "_fc.bias": torch.randn(10)}
    widths = [32, 16, *[24] * 3, *[48] * 3, *[88] * 4, *[120] * 4, *[208] * 5, 352]
    kernels = [*[3] * 4, *[5] * 3, *[3] * 4, *[5] * 9, 3]
    for i, kernel in enumerate(kernels):
        before, after = widths[i], widths[i + 1]
        hidden = before if i == 0 else 6 * before
        name = f"_blocks.{i}"
        if i > 0:
            tensors |= conv_bn(f"{name}._expand_conv", f"{name}._bn0", hidden, before, 1, 1)
        tensors |= conv_bn(f"{name}._depthwise_conv", f"{name}._bn1", hidden, 1, kernel, kernel)
        tensors |= conv_bn(f"{name}._project_conv", f"{name}._bn2", after, hidden, 1, 1)
    return tensors


def released_hiera() -> Released:
    """SAM 2's trunk without its last stage, which has half the numbers."""

    def affine(name: str, *shape: int) -> Released:
        return {f"{name}.weight": torch.randn(shape), f"{name}.bias": torch.randn(shape[0])}

    tensors = affine("patch_embed.proj", 96, 3, 7, 7)
    tensors |= {"pos_embed": torch.randn(1, 96, 7, 7), "pos_embed_window": torch.randn(1, 96, 8, 8)}
    widths = [96, 96, *[192] * 2, *[384] * 7]
    for i, (before, after) in enumerate(pairwise(widths)):
        name = f"blocks.{i}"
        tensors |= affine(f"{name}.norm1", before) | affine(f"{name}.norm2", after)
        tensors |= affine(f"{name}.attn.qkv", 3 * after, before)
        tensors |= affine(f"{name}.attn.proj", after, after)
        tensors |= affine(f"{name}.mlp.layers.0", 4 * after, after)
        tensors |= affine(f"{name}.mlp.layers.1", after, 4 * after)
        if after > before:
            tensors |= affine(f"{name}.proj", after, before)
    return tensors


RELEASED = {
    "tiny_vit_5m": released_tiny_vit,
    "efficientnet_lite2": released_lite2,
    "hiera_tiny_short": released_hiera,
}
LAST = {
    "tiny_vit_5m": (
        "image_encoder.layers.3.blocks.1.mlp.fc2.weight",
        "trunk.stages.3.1.mlp.3.weight",
    ),
    "efficientnet_lite2": (
        "_blocks.20._bn2.running_var",
        "trunk.stages.6.0.project.norm.running_var",
    ),
    "hiera_tiny_short": ("blocks.9.mlp.layers.1.weight", "trunk.stages.2.6.mlp.3.weight"),
}


@pytest.fixture(scope="module", params=RELEASED)
def case(request: pytest.FixtureRequest) -> tuple[str, Released]:
    torch.manual_seed(0)
    build: Callable[[], Released] = RELEASED[request.param]
    return request.param, build()


@pytest.fixture(scope="module")
def encoder(case: tuple[str, Released]) -> Encoder:
    """Of the case, to be filled by each test."""
    return Encoder(case[0])


def save(tensors: object, tmp_path: Path) -> Path:
    path = tmp_path / "weights.pt"
    torch.save(tensors, path)
    return path


def test_every_tensor_is_filled_from_the_released_one(
    case: tuple[str, Released], encoder: Encoder, tmp_path: Path
) -> None:
    name, released = case
    for tensor in [*encoder.parameters(), *encoder.trunk.buffers()]:
        tensor.data.fill_(99)
    load_pretrained(encoder, save(released, tmp_path))
    filled = encoder.state_dict()
    assert not any((value == 99).all() for value in filled.values())
    theirs, ours = LAST[name]
    torch.testing.assert_close(filled[ours], released[theirs])
    # Each released number is somewhere, but for what is left aside.
    aside = re.compile(r"image_encoder\.(neck|head|norm_head)|mask_decoder|_(conv_head|bn1|fc)\.")
    used = [value for key, value in released.items() if not aside.match(key)]
    assert sum(v.double().sum() for v in used) == pytest.approx(
        float(sum(v.double().sum() for v in filled.values()))
    )


def test_a_half_precision_copy_of_our_own_is_accepted(
    case: tuple[str, Released], encoder: Encoder, tmp_path: Path
) -> None:
    _, released = case
    load_pretrained(encoder, save(released, tmp_path))
    ours = {name: value.clone() for name, value in encoder.state_dict().items()}
    half = {k: v.half() if v.is_floating_point() else v for k, v in ours.items()}
    for tensor in [*encoder.parameters(), *encoder.trunk.buffers()]:
        tensor.data.fill_(99)
    load_pretrained(encoder, save(half, tmp_path))
    for name, value in encoder.state_dict().items():
        assert value.dtype == ours[name].dtype
        torch.testing.assert_close(value, ours[name], rtol=1e-3, atol=1e-5)


def test_missing_misshapen_and_unknown_tensors_are_refused(
    case: tuple[str, Released], encoder: Encoder, tmp_path: Path
) -> None:
    name, released = case
    theirs, _ = LAST[name]
    prefix = "image_encoder." if name == "tiny_vit_5m" else ""
    wrong: dict[str, Released] = {
        "is missing": {key: value for key, value in released.items() if key != theirs},
        "instead of": released | {theirs: torch.zeros(3)},
        "has no place": released | {f"{prefix}extra.weight": torch.zeros(3)},
    }
    before = {key: value.clone() for key, value in encoder.state_dict().items()}
    for complaint, tensors in wrong.items():
        with pytest.raises(WeightsError, match=complaint):
            load_pretrained(encoder, save(tensors, tmp_path))
    for key, value in encoder.state_dict().items():
        assert torch.equal(value, before[key])


def test_a_safetensors_file_is_as_good_and_a_later_stage_is_left_aside(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    released, path = released_hiera(), tmp_path / "hiera.safetensors"
    released["blocks.10.norm1.weight"] = torch.randn(384)
    save_file({name: value.half() for name, value in released.items()}, path)
    encoder = Encoder("hiera_tiny_short")
    load_pretrained(encoder, path)
    theirs = released["blocks.9.attn.qkv.weight"].half().float()
    assert torch.equal(encoder.state_dict()["trunk.stages.2.6.attention.qkv.weight"], theirs)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(WeightsError, match="cannot be read"):
        load_pretrained(encoder, path)


def test_files_of_something_else_are_refused(tmp_path: Path) -> None:
    encoder = Encoder("mscan_tiny")
    with pytest.raises(WeightsError, match="cannot be read"):
        load_pretrained(encoder, tmp_path / "nothing.pt")
    (tmp_path / "text.pt").write_text("no weights")
    with pytest.raises(WeightsError, match="cannot be read"):
        load_pretrained(encoder, tmp_path / "text.pt")
    with pytest.raises(WeightsError, match="flat state dict"):
        load_pretrained(encoder, save({"model": {}}, tmp_path))
    with pytest.raises(WeightsError, match=r"mscan_tiny: trunk\.\S+ is missing, and"):
        load_pretrained(encoder, save({}, tmp_path))


def test_an_encoder_without_a_release_loads_its_own_copy(tmp_path: Path) -> None:
    first, second = Encoder("mscan_tiny"), Encoder("mscan_tiny")
    load_pretrained(second, save(first.state_dict(), tmp_path))
    for ours, theirs in zip(first.state_dict().values(), second.state_dict().values(), strict=True):
        assert torch.equal(ours, theirs)


def test_unknown_names_are_answered_with_the_known() -> None:
    with pytest.raises(
        ConfigError, match=r"resnet.*tiny_vit_5m, efficientnet_lite2, .*, mscan_tiny"
    ):
        Encoder("resnet")


@pytest.mark.parametrize("name", RECIPES)
@torch.no_grad()
def test_the_trunk_sees_a_normalised_image(name: str) -> None:
    encoder = Encoder(name).eval()
    seen: list[Tensor] = []
    encoder.trunk.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    recipe = RECIPES[name]
    mean, std = torch.tensor(recipe.mean), torch.tensor(recipe.std)
    levels = encoder(mean.view(1, 3, 1, 1).expand(1, 3, 64, 32) + std.view(3, 1, 1))
    torch.testing.assert_close(seen[0], torch.ones(1, 3, 64, 32))
    assert [tuple(level.shape) for level in levels] == [
        (1, width, 64 // stride, 32 // stride)
        for width, stride in zip(encoder.widths, encoder.strides, strict=True)
    ]


def test_normalisation_moves_with_the_module_but_is_no_weight() -> None:
    encoder: nn.Module = Encoder("efficientnet_lite2").double()
    assert encoder.mean.dtype == torch.float64
    assert not {"mean", "scale"} & set(encoder.state_dict())
