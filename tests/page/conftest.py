"""One server and one browser for all tests of the page."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from page_driving import FLAGS, ROOT, TOWN, answered, drop, reset

NO_WEBGL = """
    const own = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
        return kind.startsWith("webgl") ? null : own.call(this, kind, ...rest);
    };
"""


@contextmanager
def listening(weights: str | Path) -> Iterator[str]:
    """Where a server with these weights listens, in a thread of this process."""
    uvicorn = pytest.importorskip("uvicorn", reason="geocalib[serve] is not installed")
    from geocalib import Calibrator
    from geocalib.server.app import create_app

    config = uvicorn.Config(create_app(Calibrator(weights)), port=0, log_level="warning")
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
def address() -> Iterator[str]:
    """A server with the packaged weights."""
    with listening("lean") as address:
        yield address


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


@pytest.fixture(scope="module")
def sources(browser: Any, address: str) -> Iterator[Any]:
    """A page of the server that imports the page's sources, as they are, from /sources."""
    page = browser.new_page()

    def give(route: Any) -> None:
        name = route.request.url.rsplit("/", 1)[1]
        script = (ROOT / "web/src" / name).read_text()
        route.fulfill(body=script, content_type="text/javascript")

    page.route("**/sources/*", give)
    page.goto(address)
    yield page
    page.close()


class Visit:
    """A window for the page, and what went wrong there."""

    def __init__(self, browser: Any, webgl: bool = True, **window: Any) -> None:
        """webgl: whether the browser draws solids, which takes long without a graphics card."""
        settings = {"viewport": {"width": 960, "height": 640}, "reduced_motion": "reduce"}
        self.context = browser.new_context(**(settings | window))
        if not webgl:
            self.context.add_init_script(NO_WEBGL)
        self.page = self.context.new_page()
        self.page.set_default_timeout(30_000)
        self.wrongs: list[str] = []
        self.page.on("pageerror", lambda error: self.wrongs.append(str(error)))
        self.page.on("console", self._heard)
        self.page.on("request", self._asked)

    def begin(self, address: str, refusals: bool = False) -> None:
        """The page as it is when one comes. refusals: whether the server is expected to refuse
        something."""
        self._address, self._refusals = address, refusals
        self.wrongs.clear()
        self.page.goto(address)

    def leave(self) -> None:
        """Nothing of the page stays in the window."""
        self.page.unroute_all()
        self.page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        self.page.emulate_media(color_scheme="null")
        self.page.goto("about:blank")

    def _heard(self, message: Any) -> None:
        # Only tests read pixels of WebGL back, and take WebGL away.
        usual = ["ReadPixels", "WebGL context could not be created", "Error creating WebGL"]
        usual += ["status of 4"] if self._refusals else []
        if message.type in ("error", "warning") and not any(w in message.text for w in usual):
            self.wrongs.append(message.text)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self._address, "blob:", "data:")):
            self.wrongs.append(f"asked {request.url}")


@pytest.fixture(scope="session")
def windows(browser: Any) -> Iterator[dict[str, Visit]]:
    """By how they were opened: a new one takes the browser three times as long as a new page."""
    windows: dict[str, Visit] = {}
    yield windows
    for visit in windows.values():
        visit.context.close()


@pytest.fixture
def open_page(
    browser: Any, windows: dict[str, Visit], address: str
) -> Iterator[Callable[..., Any]]:
    """Opens the page, in a window that is as told. Nothing may be asked of another machine, and
    nothing may go wrong in the scripts."""
    visits = []

    def open_(refusals: bool = False, **window: Any) -> Any:
        told = repr(sorted(window.items()))
        if told not in windows:
            windows[told] = Visit(browser, **window)
        visits.append(windows[told])
        visits[-1].begin(address, refusals)
        return visits[-1].page

    yield open_
    wrongs = [wrong for visit in visits for wrong in visit.wrongs]
    for visit in visits:
        visit.leave()
    assert wrongs == []


@pytest.fixture(scope="module")
def first_visit(browser: Any, address: str) -> Iterator[tuple[Visit, dict[str, Any]]]:
    """One visit for a whole module: the example town, and the record that came for it."""
    # Wide enough for strokes to be as the package draws them.
    visit = Visit(browser, viewport={"width": 1360, "height": 860})
    visit.begin(address)
    with visit.page.expect_response("**/v1/calibrate") as answer:
        drop(visit.page, {"town.jpg": TOWN.read_bytes()})
    answered(visit.page)
    yield visit, answer.value.json()["results"][0]
    visit.context.close()


@pytest.fixture
def town(first_visit: tuple[Visit, dict[str, Any]]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """A page that shows the example as it was found, and its record."""
    visit, record = first_visit
    reset(visit.page)
    yield visit.page, record
    assert visit.wrongs == []
