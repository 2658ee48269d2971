"""Settings of the whole test suite."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator
from functools import cache
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from typer.main import get_command

if TYPE_CHECKING:
    from geocalib import Calibrator

# ``make test`` runs a process per core: more threads than that would wait for each other. Torch
# and OpenCV read this when they are first imported, here and in the processes that tests start.
for library in ("OMP_NUM_THREADS", "OPENCV_FOR_THREADS_NUM"):
    os.environ.setdefault(library, "1")
# Where a test asks for more threads, those with nothing to do sleep: there is work for their core.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# The examples are the same on every run; no time limit, as the first call of torch is slow.
settings.register_profile("geocalib", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("geocalib")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported stays: garbage is not looked for among it, neither now nor later. In what
    tests leave behind it is looked for seldom: most of them are over before there is much."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """The docstrings of tests hold no examples."""
    found = yield
    return [one for one in found if type(one) is pytest.Module]


PREPARED = (
    "tests/batch/test_cluster.py",
    "tests/page/",
    "tests/nets/test_onnx_export.py",
    "tests/server/",
    "tests/fuzz/",
)
"""Tests for which a cluster, a browser, an exported network, a server or another process is made
ready."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """These come first: a process without work takes some from the end of another's, and what is
    prepared would be prepared again there."""
    items.sort(key=lambda item: not item.nodeid.startswith(PREPARED))


@pytest.fixture(scope="session", autouse=True)
def commands_are_built_once() -> Iterator[None]:
    """Typer builds all commands anew for each call, which takes longer than most calls do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", cache(get_command))
        yield


@pytest.fixture(scope="session")
def packaged() -> Calibrator:
    """With the packaged weights, which are read once."""
    from geocalib import Calibrator

    return Calibrator(device="cpu", engine="onnx")


@pytest.fixture(autouse=True)
def usual_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables look the same whatever the terminal is in which the tests run."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that compute in bfloat16. Where the processor cannot, torch gives up oneDNN in
    the whole process, and the networks of all later tests would be six times as slow."""
    import torch

    monkeypatch.setattr(torch.backends.mkldnn, "enabled", True)
