"""One server and one browser for all tests of the page."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

FLAGS = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
"""WebGL without a graphics card."""


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Where a server with the packaged weights listens, in a thread of this process."""
    uvicorn = pytest.importorskip("uvicorn", reason="geocalib[serve] is not installed")
    from geocalib import Calibrator
    from geocalib.server.app import create_app

    config = uvicorn.Config(create_app(Calibrator()), port=0, log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}/"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's Chromium."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("there is no chromium; apt-get install chromium")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Any, address: str) -> Iterator[Callable[..., Any]]:
    """Opens the page, in a window that is as told. Nothing may be asked of another machine, and
    nothing may go wrong in the scripts, unless a test expects the server to refuse something."""
    contexts, wrongs = [], []

    def open_(refusals: bool = False, **window: Any) -> Any:
        settings = {"viewport": {"width": 1200, "height": 800}, "reduced_motion": "reduce"}
        context = browser.new_context(**(settings | window))
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: wrongs.append(str(error)))

        def heard(message: Any) -> None:
            refused = "status of 4" in message.text
            if message.type == "error" and not (refused and refusals):
                wrongs.append(message.text)

        def asked(request: Any) -> None:
            if not request.url.startswith((address, "blob:", "data:")):
                wrongs.append(f"asked {request.url}")

        page.on("console", heard)
        page.on("request", asked)
        page.goto(address)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert wrongs == []
