"""Whatever is sent, the answer is no 500 (``lab/benchmarks/server_fuzz.py`` sends ten thousand)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from fuzzed_requests import requests, verdict
from geocalib import Calibrator
from geocalib.server.app import create_app
from quick_network import write_quick_network

pytest.importorskip("pillow_heif")

COUNT = int(os.environ.get("GEOCALIB_SERVER_FUZZ", "150"))


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """Of a server that answers at once: what it answers does not matter."""
    network = write_quick_network(tmp_path / "quick.onnx")
    with TestClient(create_app(Calibrator(network))) as client:
        yield client


def test_fuzzed_requests(client: TestClient) -> None:
    wrong = []
    for sent in requests(COUNT):
        answer = client.post(sent.path, content=sent.body, headers=sent.headers)
        wrong.append(verdict(sent, answer.status_code, answer.text))
    assert [words for words in wrong if words] == []
    assert client.get("/v1/ready").status_code == 200
