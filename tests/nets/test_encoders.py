from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from geocalib.errors import ConfigError, WeightsError
from geocalib.nets.encoders import ENCODERS, Encoder, load_pretrained

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


THEIR_LAST = "_blocks.20._bn2.running_var"
OUR_LAST = "trunk.stages.6.0.project.norm.running_var"
"""The names of one tensor, in the released file and in ours."""


@pytest.fixture(scope="module")
def released() -> Released:
    torch.manual_seed(0)
    return released_lite2()


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    """To be filled by each test."""
    return Encoder("efficientnet_lite2")


def save(tensors: object, tmp_path: Path) -> Path:
    path = tmp_path / "weights.pt"
    torch.save(tensors, path)
    return path


def test_every_tensor_is_filled_from_the_released_one(
    released: Released, encoder: Encoder, tmp_path: Path
) -> None:
    for tensor in [*encoder.parameters(), *encoder.trunk.buffers()]:
        tensor.data.fill_(99)
    load_pretrained(encoder, save(released, tmp_path))
    filled = encoder.state_dict()
    assert not any((value == 99).all() for value in filled.values())
    torch.testing.assert_close(filled[OUR_LAST], released[THEIR_LAST])
    # Each released number is somewhere, but for what is left aside.
    aside = re.compile(r"_(conv_head|bn1|fc)\.")
    used = [value for key, value in released.items() if not aside.match(key)]
    assert sum(v.double().sum() for v in used) == pytest.approx(
        float(sum(v.double().sum() for v in filled.values()))
    )


def test_a_half_precision_copy_of_our_own_is_accepted(
    released: Released, encoder: Encoder, tmp_path: Path
) -> None:
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
    released: Released, encoder: Encoder, tmp_path: Path
) -> None:
    wrong: dict[str, Released] = {
        "is missing": {key: value for key, value in released.items() if key != THEIR_LAST},
        "instead of": released | {THEIR_LAST: torch.zeros(3)},
        "has no place": released | {"extra.weight": torch.zeros(3)},
    }
    before = {key: value.clone() for key, value in encoder.state_dict().items()}
    for complaint, tensors in wrong.items():
        with pytest.raises(WeightsError, match=complaint):
            load_pretrained(encoder, save(tensors, tmp_path))
    for key, value in encoder.state_dict().items():
        assert torch.equal(value, before[key])


def test_a_safetensors_file_is_as_good(
    released: Released, encoder: Encoder, tmp_path: Path
) -> None:
    from safetensors.torch import save_file

    path = tmp_path / "lite2.safetensors"
    save_file({name: value.clone() for name, value in released.items()}, path)
    load_pretrained(encoder, path)
    assert torch.equal(encoder.state_dict()[OUR_LAST], released[THEIR_LAST])
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
    with pytest.raises(ConfigError, match=r"resnet.*efficientnet_lite2, mscan_tiny"):
        Encoder("resnet")


@pytest.mark.parametrize("name", ENCODERS)
@torch.no_grad()
def test_the_trunk_sees_a_normalised_image(name: str) -> None:
    encoder = Encoder(name).eval()
    seen: list[Tensor] = []
    encoder.trunk.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    spec = ENCODERS[name]
    mean, std = torch.tensor(spec.mean), torch.tensor(spec.std)
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
