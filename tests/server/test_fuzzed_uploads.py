"""Whatever is sent, the answer is no 500 (``benchmarks/server_fuzz.py`` sends ten thousand)."""

from __future__ import annotations

import os

import pytest
from fastapi.testclient import TestClient

from fuzzed_requests import requests, verdict

pytest.importorskip("pillow_heif")

COUNT = int(os.environ.get("GEOCALIB_SERVER_FUZZ", "150"))


def test_fuzzed_requests(client: TestClient) -> None:
    wrong = []
    for sent in requests(COUNT):
        answer = client.post(sent.path, content=sent.body, headers=sent.headers)
        wrong.append(verdict(sent, answer.status_code, answer.text))
    assert [words for words in wrong if words] == []
    assert client.get("/v1/ready").status_code == 200
