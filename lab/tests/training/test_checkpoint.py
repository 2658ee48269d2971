"""States written and read back; shards that fit their limit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from geocalib.errors import FormatError
from geocalib_lab.training.checkpoint import export_shards, import_shards, load, save


def test_a_state_comes_back_as_it_was(tmp_path: Path) -> None:
    state = {"weights": {"a": torch.randn(3, 2)}, "steps": 7}
    save(state, tmp_path / "deep" / "whole.pt")
    back = load(tmp_path / "deep" / "whole.pt")
    assert back["steps"] == 7
    assert torch.equal(back["weights"]["a"], state["weights"]["a"])
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["whole.pt"]


def test_what_is_no_checkpoint_is_named(tmp_path: Path) -> None:
    (tmp_path / "words.pt").write_text("no weights")
    with pytest.raises(FormatError, match=r"words\.pt is no checkpoint"):
        load(tmp_path / "words.pt")
    with pytest.raises(FormatError, match=r"nowhere\.pt does not exist"):
        load(tmp_path / "nowhere.pt")
    torch.save([1, 2], tmp_path / "list.pt")
    with pytest.raises(FormatError, match="holds a list"):
        load(tmp_path / "list.pt")


def test_shards_respect_the_limit_and_come_back(tmp_path: Path) -> None:
    state = {
        "kernel": torch.randn(40, 10, 3, 3).to(memory_format=torch.channels_last),
        "matrix": torch.randn(50, 50),
        "variance": torch.full((20,), 1e6),
        "count": torch.tensor(123),
    }
    limit = 8000
    paths = export_shards(state, tmp_path / "ema", limit)
    assert [path.name for path in paths] == ["ema-00.pt", "ema-01.pt"]
    for path in paths:
        tensors = load(path).values()
        assert sum(t.numel() * t.element_size() for t in tensors) <= limit
    back = import_shards(tmp_path / "ema")
    assert list(back) == list(state)
    for name, value in state.items():
        assert back[name].dtype == value.dtype
        torch.testing.assert_close(back[name], value, rtol=1e-3, atol=1e-6)
    # Half precision could not hold it.
    assert torch.equal(back["variance"], state["variance"])


def test_a_shorter_export_leaves_no_old_shard_behind(tmp_path: Path) -> None:
    export_shards({str(i): torch.zeros(10, 10) for i in range(4)}, tmp_path / "raw", 250)
    assert len(list(tmp_path.iterdir())) == 4
    export_shards({"0": torch.ones(10, 10)}, tmp_path / "raw", 250)
    assert torch.equal(import_shards(tmp_path / "raw")["0"], torch.ones(10, 10))
    assert len(import_shards(tmp_path / "raw")) == 1


def test_shards_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="kernel alone takes 200 bytes"):
        export_shards({"kernel": torch.zeros(10, 10)}, tmp_path / "raw", 100)
    with pytest.raises(FormatError, match=r"there is no .*none-00\.pt"):
        import_shards(tmp_path / "none")
