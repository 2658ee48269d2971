"""Fetching files, from a server in a thread of this process."""

from __future__ import annotations

import hashlib
import io
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from geocalib.errors import WeightsError
from geocalib.files import sha256_of
from geocalib.nets.weights.download import cache_folder, check, fetch, record

CONTENT = bytes(range(256)) * 1000


class Server:
    """Serves CONTENT at /good.bin, half of it at /short.bin, and in two halves at /slow.bin."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.halfway, self.go_on = threading.Event(), threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(self.path)
                if self.path == "/none.bin":
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(CONTENT)))
                self.end_headers()
                middle = len(CONTENT) // 2
                self.wfile.write(CONTENT[:middle])
                if self.path == "/short.bin":
                    return
                if self.path == "/slow.bin":
                    self.wfile.flush()
                    outer.halfway.set()
                    outer.go_on.wait(10)
                self.wfile.write(CONTENT[middle:])

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,))
        self.thread.start()

    def stop(self) -> None:
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "kept" / "here"
    monkeypatch.setenv("GEOCALIB_CACHE", str(folder))
    monkeypatch.setenv("no_proxy", "*")
    return folder


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_file_is_downloaded_once(server: Server, cache: Path) -> None:
    path = fetch(f"{server.url}/good.bin", "kept.bin")
    assert path == cache / "kept.bin"
    assert path.read_bytes() == CONTENT
    assert left_in(cache) == ["kept.bin"]
    assert fetch(f"{server.url}/good.bin", "kept.bin") == path
    assert server.requests == ["/good.bin"]


def test_a_file_put_there_by_hand_needs_no_server(cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "kept.bin").write_bytes(b"brought")
    assert fetch("http://nowhere.invalid/kept.bin", "kept.bin").read_bytes() == b"brought"


def test_the_folder_is_the_users_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path
) -> None:
    assert cache_folder() == cache
    monkeypatch.delenv("GEOCALIB_CACHE")
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name, **_: str(tmp_path / name))
    assert cache_folder() == tmp_path / "geocalib"


def test_nothing_is_in_place_before_it_is_whole(server: Server, cache: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(fetch, f"{server.url}/slow.bin", "slow.bin")
        assert server.halfway.wait(10)
        assert not (cache / "slow.bin").exists()
        server.go_on.set()
        assert coming.result(10).read_bytes() == CONTENT


def test_many_at_a_time_do_not_disturb_each_other(server: Server, cache: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda _: fetch(f"{server.url}/good.bin", "good.bin"), range(8)))
    assert {path.read_bytes() for path in paths} == {CONTENT}
    assert left_in(cache) == ["good.bin"]


def test_a_connection_that_breaks_off_leaves_nothing(server: Server, cache: Path) -> None:
    with pytest.raises(WeightsError, match="broke off after 128000 of 256000 bytes"):
        fetch(f"{server.url}/short.bin", "short.bin")
    assert left_in(cache) == []


def test_an_interrupted_download_leaves_nothing(
    server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(source: Any, target: Any) -> None:
        target.write(source.read(1000))
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "copyfileobj", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch(f"{server.url}/good.bin", "good.bin")
    assert left_in(cache) == []


def test_a_page_that_is_not_there(server: Server, cache: Path) -> None:
    with pytest.raises(WeightsError, match="404 Not Found") as caught:
        fetch(f"{server.url}/none.bin", "none.bin")
    assert f"{server.url}/none.bin" in str(caught.value)
    assert left_in(cache) == []


def test_no_network_says_what_to_put_where(cache: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/good.bin"
    with pytest.raises(WeightsError, match="refused") as caught:
        fetch(url, "good.bin")
    message = str(caught.value)
    assert url in message
    assert f"put it at {cache / 'good.bin'}" in message
    assert "\n" not in message
    assert left_in(cache) == []


def test_a_silent_server_is_given_up(
    server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("geocalib.nets.weights.download.TIMEOUT", 0.05)
    with pytest.raises(WeightsError, match="timed out"):
        fetch(f"{server.url}/slow.bin", "slow.bin")
    server.go_on.set()
    assert left_in(cache) == []


def test_a_folder_that_cannot_be(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("GEOCALIB_CACHE", str(tmp_path / "file" / "folder"))
    with pytest.raises(WeightsError, match="another folder in GEOCALIB_CACHE"):
        fetch(f"{server.url}/good.bin", "good.bin")


def test_no_bar_without_a_terminal(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    fetch(f"{server.url}/good.bin", "good.bin")
    assert capfd.readouterr() == ("", "")


def test_a_bar_on_a_terminals_standard_error(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    fetch(f"{server.url}/good.bin", "good.bin")
    assert "downloading good.bin" in terminal.getvalue()
    assert capsys.readouterr().out == ""


def test_a_recorded_file_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "weights.tar"
    path.write_bytes(CONTENT)
    expected = hashlib.sha256(CONTENT).hexdigest()
    assert check(path) == sha256_of(path) == expected
    record(path, expected)
    assert (tmp_path / "weights.tar.sha256").read_text() == f"{expected}  weights.tar\n"
    assert check(path) == expected
    path.write_bytes(CONTENT[:-1] + b"\0")
    with pytest.raises(WeightsError, match=r"weights\.tar is damaged"):
        check(path)


def test_the_first_record_stays(tmp_path: Path) -> None:
    path = tmp_path / "weights.tar"
    record(path, "first")
    record(path, "second")
    assert (tmp_path / "weights.tar.sha256").read_text().startswith("first ")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe"])
def test_a_damaged_record_is_no_agreement(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "weights.tar"
    path.write_bytes(CONTENT)
    (tmp_path / "weights.tar.sha256").write_bytes(content)
    with pytest.raises(WeightsError, match="damaged"):
        check(path)


def test_a_folder_that_may_only_be_read_needs_no_record(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    record(tmp_path / "file" / "weights.tar", "abc")
    assert left_in(tmp_path) == ["file"]
