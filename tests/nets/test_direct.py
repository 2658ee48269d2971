"""Networks that answer cameras: bins and what is read off them, and files of their weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from geocalib.errors import WeightsError
from geocalib.nets.direct import BINS, HIGH, LOW, Binned, DeepCalib, ParamNet, bins_of
from geocalib.nets.lean import LeanConfig, LeanNetwork
from geocalib.nets.weights.card import WeightCard
from geocalib.nets.weights.files import load_network, read_direct, save_weights
from little_encoder import register_little

LITTLE = LeanConfig("little", (8, 8, 32), blocks=1)
IMAGES = torch.rand(2, 3, 64, 96, generator=torch.Generator().manual_seed(0))
CARD = WeightCard(
    name="a",
    architecture="deepcalib",
    trained=True,
    licence="none",
    source="a test",
    description="random",
)


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    register_little(monkeypatch)


def test_a_sure_answer_is_where_the_truth_is() -> None:
    low, high = torch.tensor(LOW), torch.tensor(HIGH)
    truth = torch.lerp(low, high, torch.rand(50, 4, generator=torch.Generator().manual_seed(1)))
    bins = bins_of(truth)
    assert 0 <= int(bins.min()) < int(bins.max()) < BINS
    logits = torch.full((50, 4, BINS), -30.0).scatter_(2, bins[..., None], 30.0)
    off = (Binned(logits).values - truth).abs()
    assert bool((off <= 0.5001 * (high - low) / BINS).all())
    beyond = torch.stack([low - 1, high + 1])
    assert bins_of(beyond).tolist() == [[0] * 4, [BINS - 1] * 4]


def test_an_unsure_answer_is_the_median() -> None:
    low, high = torch.tensor(LOW), torch.tensor(HIGH)
    torch.testing.assert_close(Binned(torch.zeros(1, 4, BINS)).values[0], (low + high) / 2)
    # Two thirds in the upper half: a quarter of that is still below the median.
    chance = torch.cat([torch.full((BINS // 2,), 1.0), torch.full((BINS // 2,), 2.0)])
    found = Binned(chance.log().expand(1, 4, BINS)).values[0]
    torch.testing.assert_close(found, torch.lerp(low, high, torch.tensor(0.625)))


@pytest.mark.parametrize("kind", [DeepCalib, ParamNet])
def test_files_of_weights(kind: type[DeepCalib | ParamNet], tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = kind(LITTLE).eval()
    with torch.no_grad():
        answer = network(IMAGES).values
    assert answer.shape == (2, 4)
    assert bool(answer.isfinite().all())
    assert not torch.allclose(answer[0], answer[1], atol=1e-6)
    architecture = "deepcalib" if kind is DeepCalib else "paramnet"
    card = replace(CARD, architecture=architecture)
    file = tmp_path / "a.safetensors"
    save_weights(file, network, card)
    back, found = read_direct(file)
    assert type(back) is kind
    assert found.architecture == architecture
    assert found.sha256 is not None
    torch.testing.assert_close(back(IMAGES).values, answer, rtol=0, atol=0.02)
    if isinstance(network, ParamNet):
        seen = load_network(file)
        assert (seen.card.name, seen.card.architecture) == ("fields", "lean")
        with torch.no_grad():
            expected = network(IMAGES).fields.latitude
        torch.testing.assert_close(seen.network(IMAGES).latitude, expected, rtol=0, atol=0.02)
    else:
        with pytest.raises(WeightsError, match="is the baseline deepcalib, which only"):
            load_network(file)
    with pytest.raises(WeightsError, match=f"a {architecture} network cannot have the card of a"):
        save_weights(file, network, replace(card, architecture="lean"))


def test_a_lean_network_is_no_direct_one(tmp_path: Path) -> None:
    lean = replace(CARD, architecture="lean", name="b")
    save_weights(tmp_path / "b", LeanNetwork(LITTLE), lean)
    with pytest.raises(WeightsError, match=r"holds b, which sees fields and needs a fit; train"):
        read_direct(tmp_path / "b")
    with pytest.raises(WeightsError, match=r"cannot be read .* train it again"):
        read_direct(tmp_path / "gone")
