"""Settings of the whole test suite."""

import pytest
from hypothesis import settings

# The examples are the same on every run; no time limit, as the first call of torch is slow.
settings.register_profile("geocalib", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("geocalib")


@pytest.fixture(autouse=True)
def usual_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables look the same whatever the terminal is in which the tests run."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("COLUMNS", raising=False)
