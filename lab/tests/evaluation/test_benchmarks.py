"""Published sets come from a server that may be away, break off, or send what is no archive."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread

import pytest

from geocalib.errors import ConfigError, DownloadError
from geocalib_lab.evaluation.benchmarks import get_benchmark


class Server:
    """Serves one archive, the first time only a part of it if told so."""

    def __init__(self) -> None:
        self.content = archive("lamar2k/")
        self.breaks_off_after: int | None = None
        self.ranges: list[str | None] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = self.headers.get("Range")
                outer.ranges.append(asked)
                if self.path != "/lamar2k.zip":
                    self.send_error(404)
                    return
                start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
                part = outer.content[start:]
                self.send_response(206 if asked else 200)
                self.send_header("Content-Length", str(len(part)))
                self.end_headers()
                self.wfile.write(part[: outer.breaks_off_after])
                outer.breaks_off_after = None

            def log_message(self, *words: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.http.server_port}"


def archive(prefix: str) -> bytes:
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr(f"{prefix}images.csv", "fname,width,height\n")
        file.writestr(f"{prefix}images/a.jpg", bytes(5000))
    return stream.getvalue()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.http.shutdown()
    server.http.server_close()
    thread.join()


@pytest.mark.parametrize("prefix", ["lamar2k/", ""])
def test_a_set_arrives_whole(server: Server, tmp_path: Path, prefix: str) -> None:
    server.content = archive(prefix)
    told: list[tuple[int, int | None]] = []
    place = get_benchmark(
        "lamar2k", tmp_path / "sets", False, lambda *sizes: told.append(sizes), server.address
    )
    assert place == tmp_path / "sets" / "lamar2k"
    assert (place / "images" / "a.jpg").stat().st_size == 5000
    assert told[-1] == (len(server.content), len(server.content))
    assert [path.name for path in (tmp_path / "sets").iterdir()] == ["lamar2k"]
    # What is there is not fetched again.
    get_benchmark("lamar2k", tmp_path / "sets", address=server.address)
    assert len(server.ranges) == 1


def test_a_download_that_broke_off_goes_on(server: Server, tmp_path: Path) -> None:
    server.breaks_off_after = 1000
    with pytest.raises(DownloadError, match="try again to go on"):
        get_benchmark("lamar2k", tmp_path, address=server.address)
    assert not (tmp_path / "lamar2k").exists()
    place = get_benchmark("lamar2k", tmp_path, address=server.address)
    assert server.ranges == [None, "bytes=1000-"]
    assert (place / "images.csv").is_file()


def test_an_archive_from_elsewhere_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "lamar2k.zip").write_bytes(archive("lamar2k/"))
    place = get_benchmark("lamar2k", tmp_path, address="http://127.0.0.1:1")
    assert (place / "images.csv").is_file()
    (tmp_path / "tartanair.zip").write_bytes(b"no archive")
    with pytest.raises(DownloadError, match=r"tartanair\.zip is damaged .*; delete it"):
        get_benchmark("tartanair", tmp_path)


def test_without_a_server_one_clear_sentence(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"openpano\.zip cannot be downloaded .*Not Found") as e:
        get_benchmark("openpano", tmp_path, address=server.address)
    assert "\n" not in str(e.value)
    with pytest.raises(DownloadError, match=r"put it at .*openpano\.zip"):
        get_benchmark("openpano", tmp_path, address="http://127.0.0.1:1")


def test_terms_and_names(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="accept its terms, and add --accept-terms"):
        get_benchmark("stanford2d3d", tmp_path)
    with pytest.raises(ConfigError, match="no set 'kitti'; known: openpano"):
        get_benchmark("kitti", tmp_path)
    with pytest.raises(DownloadError):
        get_benchmark("stanford2d3d", tmp_path, True, address="http://127.0.0.1:1")
