"""``geocalib export``: what it takes, and what it does not touch."""

from __future__ import annotations

from pathlib import Path

import pytest

from fake_calibrator import Run
from geocalib.nets import onnx_export


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, bool]]:
    """Weights, output and whether it refers to the weights, of each export; nothing is written."""
    found: list[tuple[str, str, bool]] = []
    monkeypatch.setattr(onnx_export, "export_onnx", lambda *given: found.append(given))
    return found


def test_weights_to_a_file(run: Run, exported: list[tuple[str, str, bool]]) -> None:
    result = run("export", "onnx", "-o", "a.onnx")
    assert (result.exit_code, result.stderr) == (0, "wrote a.onnx\n")
    Path("mine.safetensors").touch()
    run("export", "onnx", "--weights", "mine.safetensors", "-o", "b.onnx")
    run("export", "onnx", "-o", "c.onnx", "--refer")
    expected = [("lean", "a.onnx", False), ("mine.safetensors", "b.onnx", False)]
    assert exported == [*expected, ("lean", "c.onnx", True)]


def test_nothing_is_lost(run: Run, exported: list[tuple[str, str, bool]]) -> None:
    for name in ("a.onnx", "mine.safetensors"):
        Path(name).write_text("kept")
    assert run("export", "onnx", "-o", "a.onnx").exit_code == 2
    words = ("export", "onnx", "--weights", "mine.safetensors", "-o", "mine.safetensors")
    assert run(*words, "--overwrite").exit_code == 2
    assert exported == []
    assert run("export", "onnx", "-o", "a.onnx", "--overwrite").exit_code == 0


def test_only_lean(run: Run) -> None:
    result = run("export", "onnx", "--weights", "heavy", "-o", "a.onnx")
    assert result.exit_code == 2
    assert "no weights are named 'heavy'" in result.stderr
    assert not Path("a.onnx").exists()
