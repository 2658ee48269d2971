"""How pictures stand, by a linear classifier."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from geocalib.errors import WeightsError
from geocalib.nets.lean import LeanConfig, LeanNetwork
from geocalib.nets.upright import Upright, features, find_upright, read_upright
from geocalib.nets.weights.files import load_network
from geocalib.pipeline.orientation import Pictures, combined_over_turns


@pytest.fixture(scope="module")
def network() -> LeanNetwork:
    torch.manual_seed(0)
    return LeanNetwork(LeanConfig("efficientnet_lite2")).eval()


@torch.no_grad()
def test_one_run_tells_all(network: LeanNetwork) -> None:
    images = torch.rand(2, 3, 128, 192, generator=torch.Generator().manual_seed(0))
    seen = features(network, images)
    assert seen.shape[0] == 2
    upright = Upright(network, torch.randn(4, seen.shape[1]), torch.zeros(4))
    fields, chance = upright(images)
    torch.testing.assert_close(fields, network(images), rtol=0, atol=0)
    torch.testing.assert_close(upright.orientation(images), chance, rtol=0, atol=0)
    assert chance.shape == (2, 4)
    torch.testing.assert_close(chance.exp().sum(1), torch.ones(2))
    # Upright and lying give as many features.
    assert features(network, torch.rand(1, 3, 160, 96)).shape[1] == seen.shape[1]


@pytest.mark.parametrize("turns", range(4))
def test_all_looks_say_the_same(turns: int) -> None:
    """Of a picture whose bright corner is top left when it is upright."""
    upright = np.zeros((1, 3, 8, 8), np.float32)
    upright[..., :4, :4] = 1
    wrong = iter((True, False, False, False))

    def orientation(images: Pictures) -> Pictures:
        corners = images[0, 0, [0, 7, 7, 0], [0, 0, 7, 7]]  # Counter-clockwise.
        chance = np.full((1, 4), 0.1, np.float32)
        # One of four looks is misled.
        chance[0, (int(corners.argmax()) + next(wrong)) % 4] = 0.7
        return np.log(chance)

    image = np.rot90(upright, turns, (-2, -1))
    chance = combined_over_turns(image, orientation(image), orientation)
    assert chance.argmax().item() == turns
    assert np.exp(chance).sum().item() == pytest.approx(1)


def test_it_speaks_for_the_weights_it_was_fitted_to() -> None:
    loaded = load_network("lean")
    assert find_upright(loaded) is not None, (
        "the weights have changed: run python -m geocalib_lab.training.upright (docs/training.md)"
    )
    assert find_upright(replace(loaded, card=replace(loaded.card, sha256="0" * 64))) is None


def test_a_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "upright.safetensors").write_bytes(b"nonsense")
    with pytest.raises(WeightsError, match=r"upright\.safetensors is damaged"):
        read_upright(tmp_path / "upright.safetensors")
