"""The published network: its names, its loading, and its numbers.

Where GEOCALIB_PARITY names a folder with ``recipe.py`` (weights, bases and image made from names)
and ``expected.npz`` (what the published code gave for them), the numbers are compared with it.
"""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from geocalib.errors import WeightsError
from geocalib.nets.folding import fold_batch_norm
from geocalib.nets.published import (
    Hamburger,
    MscanShape,
    PublishedNetwork,
    ResidualUnit,
    load_published,
    published_name,
)

PUBLISHED_NAMES = "34129b51dc282331497a56761faf35d98133da4c27d181feb9a6fb13936953d1"
"""SHA-256 of the sorted lines "name shape" of the published checkpoints."""


def little() -> PublishedNetwork:
    shape = MscanShape(widths=(4, 6, 8, 10), depths=(1, 1, 1, 1), mlp_ratios=(2, 2, 2, 2))
    return PublishedNetwork(shape, width=6, context_width=12, rank=4).eval()


def waves(name: str, shape: tuple[int, ...]) -> Tensor:
    """Numbers that depend on a tensor's name and shape alone."""
    count = int(np.prod(shape))
    phase = sum(name.encode()) % 97
    values = np.sin(1.7 * np.arange(count) + phase).reshape(shape)
    if name.endswith("running_var"):
        return torch.from_numpy(1000.0 * (1.5 + values) if "embed1" in name else 1.5 + values)
    if len(shape) > 1:
        values = values * np.sqrt(1.0 / np.prod(shape[1:]))
    return torch.from_numpy(values + 1.0 if name.endswith("norm1.weight") else values)


def state_of(network: PublishedNetwork) -> dict[str, Tensor]:
    """A checkpoint of that network's size, with waves for weights."""
    names = {published_name(n): t for n, t in network.state_dict().items()}
    return {n: waves(n, tuple(t.shape)).to(t.dtype) for n, t in names.items()}


def picture(height: int = 64, width: int = 96) -> Tensor:
    """(1, 3, H, W) RGB in [0, 1]."""
    y, x = np.mgrid[:height, :width]
    bands = [np.sin(0.1 * x + 0.05 * y), np.cos(0.07 * x * y / 20), np.sin(0.2 * y)]
    return torch.from_numpy(0.5 + 0.5 * np.stack(bands))[None].float()


@pytest.fixture(scope="module")
def full() -> PublishedNetwork:
    return PublishedNetwork().eval()


def test_names_and_shapes_are_the_published_ones(full: PublishedNetwork) -> None:
    lines = sorted(f"{published_name(n)} {tuple(t.shape)}" for n, t in full.state_dict().items())
    assert len(lines) == 889
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest() == PUBLISHED_NAMES


def test_size_and_cost(full: PublishedNetwork) -> None:
    assert sum(p.numel() for p in full.parameters()) == 28_925_637
    shadow = copy.deepcopy(full).to("meta")
    with FlopCounterMode(display=False) as counter:
        shadow(torch.zeros(1, 3, 320, 320, device="meta"))
    # Ours is 150.8: X'B of the softmax serves the first update too, which saves 0.8.
    assert counter.get_total_flops() == pytest.approx(152e9, rel=0.01)


def test_shapes_and_ranges() -> None:
    network = load_published(state_of(little()), little())
    with torch.no_grad():
        found = network(picture().repeat(2, 1, 1, 1))
    assert found.up.shape == (2, 2, 64, 96)
    assert found.latitude.shape == (2, 1, 64, 96)
    assert found.up_confidence.shape == found.latitude_confidence.shape == (2, 64, 96)
    assert {value.dtype for value in found} == {torch.float32}
    torch.testing.assert_close(found.up.norm(dim=1), torch.ones(2, 64, 96))
    assert float(found.latitude.abs().max()) < np.pi / 2
    for confidence in (found.up_confidence, found.latitude_confidence):
        assert 0 <= float(confidence.min()) < float(confidence.max()) <= 1


def test_numbers_stay_what_they_were() -> None:
    """Taken when this code agreed with the published one to 3e-6."""
    network = load_published(state_of(little()), little()).double()
    with torch.no_grad():
        found = network(picture().double())
    expected = {
        "up": [-0.353057, -0.364577, -0.335899],
        "latitude": [1.095060, 1.073173, 1.082789],
        "up_confidence": [0.340222, 0.326777, 0.326640],
        "latitude_confidence": [0.603316, 0.578796, 0.578017],
    }
    for name, values in expected.items():
        some = getattr(found, name).flatten()[[0, 1234, 5000]]
        np.testing.assert_allclose(some, values, atol=3e-6, err_msg=name)


def test_the_encoder_sees_bgr_bytes_and_the_low_level_branch_the_image() -> None:
    network, image, seen = little(), picture(), {}
    for name in ("encoder", "low_level"):
        getattr(network, name).register_forward_pre_hook(
            lambda _, inputs, name=name: seen.update({name: inputs[0]})
        )
    network(image)
    blue_green_red = torch.stack([image[:, 2], image[:, 1], image[:, 0]], 1)
    torch.testing.assert_close(seen["encoder"], blue_green_red * 255)
    torch.testing.assert_close(seen["low_level"], image)


def test_steep_latitudes_stay_short_of_the_pole() -> None:
    network = little()
    torch.nn.init.constant_(network.latitude_decoder.head.bias, 50.0)
    latitude = network(picture()).latitude
    torch.testing.assert_close(
        latitude, torch.full_like(latitude, float(np.arcsin(1 - 1e-5))), rtol=0, atol=1e-4
    )


def test_a_residual_unit_skips_with_relu() -> None:
    unit = ResidualUnit(3)
    for parameter in unit.conv2.parameters():
        torch.nn.init.zeros_(parameter)
    x = torch.randn(1, 3, 5, 5)
    kept = x.clone()
    torch.testing.assert_close(unit(x), x.clamp(min=0))
    assert torch.equal(x, kept)


def test_the_same_answer_every_time() -> None:
    first = load_published(state_of(little()), little())(picture())
    torch.manual_seed(3)
    second = load_published(state_of(little()), little())(picture())
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_batch_mates_do_not_matter() -> None:
    network = load_published(state_of(little()), little()).double()
    images = torch.cat([picture(), 1 - picture(), picture().flip(3)]).double()
    together = network(images)
    for i, image in enumerate(images):
        for alone, value in zip(network(image[None]), together, strict=True):
            torch.testing.assert_close(alone[0], value[i], rtol=1e-9, atol=1e-9)


def test_folding_keeps_the_fields() -> None:
    network = load_published(state_of(little()), little()).double()
    folded = fold_batch_norm(copy.deepcopy(network))
    for found, expected in zip(
        folded(picture().double()), network(picture().double()), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)


def test_a_checkpoint_comes_back(tmp_path: Path) -> None:
    state, path = state_of(little()), tmp_path / "weights.tar"
    torch.save({"model": state, "epoch": 7}, path)
    network = load_published(path, little().train())
    assert not network.training
    back = {published_name(n): t for n, t in network.state_dict().items()}
    assert back.keys() == state.keys()
    assert all(torch.equal(back[name], state[name]) for name in state)


def test_faults_are_named() -> None:
    state = state_of(little())
    head = "perspective_decoder.up_head.linear_pred_up"
    del state["ll_enc.conv1.conv.bias"]
    state["optimiser.step"] = torch.zeros(1)
    state[f"{head}.bias"] = torch.zeros(3)
    with pytest.raises(WeightsError) as caught:
        load_published({"model": state}, little())
    assert str(caught.value) == (
        "the given state dict does not hold the published network: "
        "missing: ll_enc.conv1.conv.bias; unexpected: optimiser.step; "
        f"of the wrong shape: {head}.bias (3,) instead of (2,)"
    )


def test_faults_leave_the_network_alone() -> None:
    network, state = little(), state_of(little())
    before = {name: value.clone() for name, value in network.state_dict().items()}
    del state["ll_enc.conv1.conv.bias"]
    with pytest.raises(WeightsError):
        load_published(state, network)
    assert all(torch.equal(before[n], value) for n, value in network.state_dict().items())


def test_many_faults_are_counted(full: PublishedNetwork) -> None:
    with pytest.raises(WeightsError, match=r"missing: backbone\S+, \S+, \S+ and 886 more$"):
        load_published({"model": {}}, full)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"model": 3}, "'model' is a int"),
        ([1, 2], "holds a list"),
        ({"model": {}, "when": Fraction(1, 3)}, "other objects too"),
    ],
)
def test_files_of_other_things(tmp_path: Path, content: Any, message: str) -> None:
    path = tmp_path / "weights.tar"
    torch.save(content, path)
    with pytest.raises(WeightsError, match=message) as caught:
        load_published(path, little())
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"hello world", b"PK\x03\x04 cut short"])
def test_damaged_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "weights.tar"
    path.write_bytes(content)
    with pytest.raises(WeightsError, match="damaged"):
        load_published(path, little())


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="no such file"):
        load_published(tmp_path / "nowhere.tar", little())


def test_gradients_reach_every_parameter() -> None:
    network = load_published(state_of(little()), little()).train()
    found = network(picture())
    sum((value * torch.linspace(0, 1, 96)).sum() for value in found).backward()
    missing = [n for n, p in network.named_parameters() if p.grad is None]
    assert missing == []
    assert all(bool(p.grad.isfinite().all()) for p in network.parameters())


def test_it_exports() -> None:
    network = fold_batch_norm(load_published(state_of(little()), little()))
    program = torch.export.export(network, (picture(),))
    other = picture().flip(2)
    for found, expected in zip(program.module()(other), network(other), strict=True):
        torch.testing.assert_close(found, expected)


def test_parity_with_the_published_network(full: PublishedNetwork) -> None:
    folder = os.environ.get("GEOCALIB_PARITY")
    if not folder:
        pytest.skip("GEOCALIB_PARITY does not name the folder of recipe.py and expected.npz")
    spec = importlib.util.spec_from_file_location("recipe", Path(folder) / "recipe.py")
    recipe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recipe)
    state = {
        name: torch.from_numpy(recipe.weight(name, tuple(value.shape)))
        for name, value in ((published_name(n), t) for n, t in full.state_dict().items())
    }
    network = load_published(state)
    for module in network.modules():
        if isinstance(module, Hamburger):
            module.bases = torch.from_numpy(recipe.bases())
    with torch.inference_mode():
        found = network(torch.from_numpy(recipe.image())[None])
    expected = np.load(Path(folder) / "expected.npz")
    for name, value in found._asdict().items():
        np.testing.assert_allclose(value[0].numpy(), expected[name], atol=1e-4, err_msg=name)
