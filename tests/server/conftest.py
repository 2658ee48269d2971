"""Photos, and a server in this process."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

pytest.importorskip("fastapi")

from fastapi.testclient import TestClient

from geocalib import Calibrator
from geocalib.server.app import create_app

TOWN = Path(__file__).parents[2] / "examples" / "town.jpg"
SIZE = (192, 128)


@pytest.fixture(scope="session")
def photo() -> bytes:
    """A small JPEG of a town."""
    return small(SIZE)


@pytest.fixture(scope="session")
def taller() -> bytes:
    """Another, of another size."""
    return small((128, 160))


def small(size: tuple[int, int]) -> bytes:
    file = BytesIO()
    Image.open(TOWN).resize(size).save(file, "JPEG")
    return file.getvalue()


@pytest.fixture(scope="session")
def client(packaged: Calibrator) -> Iterator[TestClient]:
    with TestClient(create_app(packaged)) as client:
        yield client
