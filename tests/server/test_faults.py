"""A server in a process of its own: clients that vanish or dawdle, signals, and the examples of
docs/server.md."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from fuzzed_requests import FORM, NO_LINES, form, part
from served import Served
from server.conftest import TOWN

PAGE = Path(__file__).parents[2] / "docs" / "server.md"


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with Served("--seconds", "120", "--queue", "2") as served:
        yield served


def get(served: Served, path: str) -> str:
    with urllib.request.urlopen(served.address + path, timeout=30) as answer:
        text: str = answer.read().decode()
        return text


def post(served: Served, body: bytes) -> tuple[int, bytes]:
    asked = urllib.request.Request(
        f"{served.address}/v1/calibrate", body, {"content-type": FORM}, method="POST"
    )
    try:
        with urllib.request.urlopen(asked, timeout=150) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def begun(served: Served, body: bytes, sent: int) -> socket.socket:
    """A request of which so many bytes of the body are sent."""
    connection = socket.create_connection((served.host, served.port), timeout=30)
    head = f"POST /v1/calibrate HTTP/1.1\r\nHost: here\r\nContent-Type: {FORM}\r\n"
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:sent])
    return connection


def waiting(served: Served) -> float:
    found = re.search(r"^geocalib_waiting_images (.*)$", get(served, "/metrics"), re.M)
    assert found is not None
    return float(found[1])


def until(true: object, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    assert callable(true)
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture(scope="module")
def body(photo: bytes) -> bytes:
    return form(part(b"image", photo, b"a.jpg"), part(b"request", NO_LINES))


def test_slow_clients_are_in_nobodys_way(served: Served, body: bytes) -> None:
    slow = [begun(served, body, 100) for _ in range(8)]
    status, _ = post(served, body)
    assert status == 200
    slow[0].sendall(body[100:])
    assert b"200 OK" in slow[0].recv(100)
    for connection in slow:
        connection.close()


def test_a_client_that_vanishes_frees_its_place(served: Served, photo: bytes) -> None:
    large = form(*[part(b"image", photo, b"a.jpg")] * 24, part(b"request", NO_LINES))
    gone = begun(served, large, len(large))
    until(lambda: waiting(served) == 24)
    assert post(served, large)[0] == 429
    gone.close()
    until(lambda: waiting(served) == 0, seconds=5)
    assert "geocalib_requests_total" in get(served, "/metrics")


def test_what_is_no_http(served: Served, body: bytes) -> None:
    for data in (b"\x16\x03\x01\x02\x00", b"GET / HTTP/9\r\n\r\n", b"A" * 100_000):
        with socket.create_connection((served.host, served.port), timeout=10) as connection:
            connection.sendall(data)
            assert connection.recv(100).startswith(b"HTTP/1.1 400")
    with socket.create_connection((served.host, served.port), timeout=10) as connection:
        connection.sendall(b"GET /v1/health HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 200_000)
        assert connection.recv(100).startswith(b"HTTP/1.1 400")
    assert post(served, body)[0] == 200


def test_a_worker_that_dies_is_replaced(served: Served, body: bytes) -> None:
    process = served.process.pid
    children = Path(f"/proc/{process}/task/{process}/children")
    if not children.exists():
        pytest.skip("this system does not tell the children of a process")
    for child in children.read_text().split():
        os.kill(int(child), signal.SIGKILL)
    assert post(served, body)[0] == 200


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)


def test_examples_of_the_page(served: Served, tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(TOWN.read_bytes())
    here = "http://127.0.0.1:8000"
    (program,) = _blocks("python")
    file = tmp_path / "client.py"
    file.write_text(program.replace(here, served.address), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, file.name], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert re.match(r"roll -?\d+\.\d+", done.stdout)
    if shutil.which("curl") is None:
        pytest.skip("there is no curl here; the example in Python was run")
    commands = next(block for block in _blocks("sh") if "curl" in block)
    done = subprocess.run(
        ["sh", "-e", "-c", commands.replace(here, served.address)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout.splitlines()[0])["results"][0]["error"] is None
    assert (tmp_path / "upright.jpg").stat().st_size > 10_000
    assert (tmp_path / "cameras.txt").read_text().startswith("#")


def test_killed_started_again_and_stopped(served: Served, body: bytes) -> None:
    with begun(served, body, len(body)) as cut:
        served.end(signal.SIGKILL)
        with suppress(ConnectionResetError):
            assert cut.recv(100) == b""
    with Served("--port", str(served.port)) as again, ThreadPoolExecutor(4) as pool:
        assert again.port == served.port
        asked = [pool.submit(post, again, body) for _ in range(4)]
        until(lambda: waiting(again) > 0)
        again.end(signal.SIGTERM)
        # What was accepted is finished.
        answers = [one.result() for one in asked]
        assert all(status == 200 and b"converged" in text for status, text in answers)
        assert "POST /v1/calibrate 200" in again.logged
        assert "a.jpg" not in again.logged
