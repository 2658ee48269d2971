"""Which engine is taken where nobody says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest
import torch

from geocalib import Calibrator
from geocalib.errors import ConfigError
from geocalib.pipeline.engines import load as engines
from geocalib.pipeline.engines.load import EngineFuture, EngineSpec, choose, resolve_weights


@pytest.fixture(autouse=True)
def only_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines.sys, "platform", "linux")
    monkeypatch.setattr(engines, "_loads", lambda library: False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


@pytest.mark.parametrize(
    ("weights", "device", "expected"),
    [
        ("lean", "auto", "onnx"),
        ("lean", "cpu", "onnx"),
        ("lean", "coreml", "onnx"),
        ("lean", "cuda:1", "torch"),
        ("lean", "mps", "torch"),
        ("large", "cpu", "onnx"),
        ("large", "cuda", "torch"),
        ("published-pinhole", "auto", "torch"),
        (Path("mine.safetensors"), "cpu", "torch"),
        (Path("mine.onnx"), "cuda", "onnx"),
    ],
)
def test_weights_and_devices(weights: str | Path, device: str, expected: str) -> None:
    assert choose(weights, device) == expected


def test_an_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    # Torch is not even asked where there is no driver.
    assert choose("lean", "auto") == "onnx"
    monkeypatch.setattr(engines, "_loads", lambda library: library == "libcuda.so.1")
    assert choose("lean", "auto") == "torch"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose("lean", "auto") == "onnx"
    monkeypatch.setattr(engines.sys, "platform", "darwin")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose("lean", "auto") == "torch"


@pytest.mark.parametrize(
    ("here", "device", "expected"),
    [
        (True, "cpu", "lean"),
        (True, "auto", "lean"),
        (True, "cuda:1", "large"),
        (True, "mps", "large"),
        (False, "cuda:1", "lean"),
    ],
)
def test_the_weights_that_auto_means(
    monkeypatch: pytest.MonkeyPatch, here: bool, device: str, expected: str
) -> None:
    monkeypatch.setattr(engines, "is_here", lambda name: here)
    assert resolve_weights("auto", device) == expected
    assert resolve_weights("mine.onnx", device) == "mine.onnx"


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    monkeypatch.setattr(engines, "_loads", lambda library: True)
    assert choose("lean", "auto") == "onnx"
    assert choose("lean", "cuda") == "onnx"


def test_what_only_torch_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda network: network)
    assert type(Calibrator(device="cpu")._engine).__name__ == "OnnxEngine"
    compiled = Calibrator(device="cpu", compile=True)
    assert type(compiled._engine).__name__ == "TorchEngine"
    with pytest.raises(ConfigError, match="compile needs the engine torch"):
        Calibrator(compile=True, engine="onnx")
    with pytest.raises(ConfigError, match="engine is 'jax'; known: auto, onnx, torch"):
        Calibrator(engine="jax")  # type: ignore[arg-type]


@pytest.mark.parametrize(("engine", "library"), [("auto", "onnxruntime"), ("torch", "numpy")])
def test_what_two_threads_need_is_imported_before_the_second_begins(
    engine: str, library: str
) -> None:
    script = f"""
import sys
from concurrent.futures import ThreadPoolExecutor
from geocalib.pipeline.engines.load import EngineFuture, EngineSpec

def submit(pool, work):
    assert {library!r} in sys.modules

assert {library!r} not in sys.modules
ThreadPoolExecutor.submit = submit
EngineFuture(EngineSpec("large", {engine!r}, "auto"))
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_thread_of_the_network_imports_the_rest_for_later() -> None:
    script = """
import sys
from threading import enumerate as running
from geocalib import Calibrator
calibrator = Calibrator(engine="onnx")
[thread.join() for thread in running() if thread.name.startswith("geocalib-engine")]
print("geocalib.pipeline.parallel.stream" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True"]


def test_afterwards_comes_also_where_no_engine_does() -> None:
    loading, done = EngineFuture(EngineSpec("lean", "onnx", "abacus")), Event()
    loading.afterwards(done.set)
    assert done.wait(60)
    with pytest.raises(ConfigError, match="abacus"):
        loading.engine()
