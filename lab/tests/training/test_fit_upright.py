"""Fitting the classifier of which side is up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from geocalib.nets.lean import LeanConfig, LeanNetwork
from geocalib.nets.upright import Upright, read_upright
from geocalib.nets.weights.card import WeightCard
from geocalib.nets.weights.files import load_network, save_weights
from geocalib_lab.training.upright import choose, fit_turns, main

CARD = WeightCard(
    name="small", architecture="lean", trained=True, short_side=64, licence="", source="",
    description="",
)  # fmt: skip


def test_it_learns_what_tells() -> None:
    """Features of which four say how a picture stands, most of the time."""
    generator = torch.Generator().manual_seed(0)
    seen = torch.randn(200, 4, 12, generator=generator)
    seen[:, range(4), range(4)] += 4
    seen[..., 11] = 7.0  # Never changes.
    weight, bias = fit_turns(seen)
    assert (weight.shape, bias.shape) == ((4, 12), (4,))
    answers = (seen @ weight.T + bias).argmax(-1)
    assert (answers == torch.arange(4)).float().mean().item() > 0.9
    assert weight[:, 4:].abs().max() < 0.3 * weight.diagonal().min()


def test_photos_are_spread_over_owners(tmp_path: Path) -> None:
    for name in ("a__1", "a__2", "a__3", "a__4", "b__1"):
        (tmp_path / f"{name}.png").touch()
    assert [path.stem for path in choose(tmp_path, 2)] == ["a__1", "a__3", "b__1"]


def test_from_photographs_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    weights, out = tmp_path / "lean.safetensors", tmp_path / "upright.safetensors"
    save_weights(weights, LeanNetwork(LeanConfig("efficientnet_lite2")), CARD)
    photos = tmp_path / "photos"
    photos.mkdir()
    rng = np.random.default_rng(0)
    for number in range(12):
        # Bright above, dark below.
        picture = np.linspace(220, 30, 64)[:, None, None] + rng.normal(0, 8, (64, 64, 3))
        Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(photos / f"{number}.png")
    words = ["--photos", str(photos), "--weights", str(weights), "--out", str(out)]
    assert main([*words, "--device", "cpu"]) == 0
    assert "fitted to 12 photographs" in capsys.readouterr().out
    loaded = load_network(weights)
    sha256, weight, bias = read_upright(out)
    assert sha256 == loaded.card.sha256
    assert isinstance(loaded.network, LeanNetwork)
    fresh = torch.linspace(0.9, 0.1, 64)[:, None].expand(1, 3, 64, 64)
    with torch.no_grad():
        chance = Upright(loaded.network, weight, bias).orientation(fresh)
    assert chance.argmax().item() == 0


def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--photos", str(tmp_path), "--out", str(tmp_path / "x")]) == 2
    assert "holds no photographs" in capsys.readouterr().err
