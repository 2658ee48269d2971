"""One process reads all damaged files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fuzz.watched import Watched


@pytest.fixture(scope="session")
def watched() -> Iterator[Watched]:
    process = Watched()
    yield process
    process.close()
