"""The pictures of docs/page.md: the page of ``geocalib serve`` in Chromium, state by state.

    python docs/make_page_pictures.py

Every photo on them is rendered: the example town, and more of ``geocalib.synthetic``.
"""

from __future__ import annotations

import io
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from playwright.sync_api import sync_playwright

from geocalib import Camera
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.synthetic import render_scene

DOCS = Path(__file__).parent
OUT = DOCS / "pictures/page"
TOWN = DOCS.parent / "examples/town.jpg"
FLAGS = ["--enable-unsafe-swiftshader"]
DESK = {"viewport": {"width": 1360, "height": 850}}
TALL = {"viewport": {"width": 1180, "height": 940}}
PHONE = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 1.5,
    "is_mobile": True,
    "has_touch": True,
}
QUALITY = 76
"""Of JPEG: letters are sharp, and a picture has less than 150 kB."""


def photo(roll: float, pitch: float, model: str = "pinhole", *distortion: float) -> dict[str, Any]:
    """A picture of the rendered town, as a file to choose."""
    camera = Camera.create(model, 420.0, (720, 480), distortion)
    angles = torch.tensor([[roll], [pitch]]).deg2rad()
    picture = render_scene(camera, from_roll_pitch(*angles))[0]
    content = io.BytesIO()
    pixels = (255 * picture).round().to(torch.uint8).numpy()
    Image.fromarray(pixels).save(content, "jpeg", quality=93)
    name = f"IMG_{abs(int(100 * roll + pitch)):04d}.jpg"
    return {"name": name, "mimeType": "image/jpeg", "buffer": content.getvalue()}


@contextmanager
def server() -> Iterator[str]:
    """The address of ``geocalib serve``, in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}/"
    command = [sys.executable, "-m", "geocalib", "serve", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{address}v1/health").close()
                break
            except OSError:
                time.sleep(0.1)
        yield address
        process.terminate()


def still(page: Any) -> None:
    """Wait for the answers, and until everything is drawn."""
    page.wait_for_selector("#work[aria-busy=false]", state="attached", timeout=120_000)
    page.wait_for_selector("#answer:not([hidden])")
    page.evaluate("() => document.activeElement.blur()")
    page.wait_for_timeout(400)


def choose(page: Any, *files: dict[str, Any]) -> None:
    page.set_input_files("#choose", list(files))
    still(page)


def try_town(page: Any) -> None:
    page.click("[data-example]")
    still(page)


def show(page: Any, *names: str) -> None:
    """Switch all drawings off but these."""
    page.evaluate(
        """names => document.querySelectorAll("[data-show]").forEach(input => {
            if (input.checked !== names.includes(input.dataset.show)) input.click();
        })""",
        names,
    )
    still(page)


def view(page: Any, name: str) -> None:
    page.check(f"input[value={name}]", force=True)
    still(page)


def hold(page: Any, **values: str) -> None:
    for name, value in values.items():
        page.fill(f"#{name}-number", value)
        page.press(f"#{name}-number", "Enter")
        still(page)


def empty(page: Any) -> None:
    page.wait_for_timeout(800)


def lines(page: Any) -> None:
    try_town(page)
    show(page, "horizon", "lines")


def confidence(page: Any) -> None:
    try_town(page)
    show(page, "horizon", "up", "confidence")


def box(page: Any) -> None:
    try_town(page)
    page.focus("#stage")
    for key in ["ArrowLeft"] * 12 + ["ArrowDown"] * 2 + ["]"] * 4 + ["+"] * 2:
        page.keyboard.press(key)
    still(page)


def known(page: Any) -> None:
    try_town(page)
    hold(page, focal="24", roll="5")


def drawing(page: Any) -> None:
    try_town(page)
    show(page, "horizon")
    page.click("#draw")
    box = page.locator("#drawn").bounding_box()
    for kind, *ends in (
        ("up", 74, 280, 75, 600),
        ("up", 857, 93, 938, 520),
        ("horizon", 9, 9, 9, 14),
    ):
        page.check(f"input[name=kind][value={kind}]", force=True)
        x0, y0, x1, y1 = (box["xy"[i % 2]] + box["width"] * ends[i] / 960 for i in range(4))
        page.mouse.move(x0, y0)
        page.mouse.down()
        page.mouse.move(x1, y1, steps=4)
        page.mouse.up()
        still(page)


def doubts(page: Any) -> None:
    try_town(page)
    hold(page, roll="9")
    page.select_option("#lens", "simple_radial")
    still(page)


def rectified(page: Any) -> None:
    try_town(page)
    view(page, "rectified")


def undistorted(page: Any) -> None:
    choose(page, photo(-4, 2, "simple_radial", -0.1))
    page.select_option("#lens", "simple_radial")
    still(page)
    view(page, "undistorted")


def together(page: Any) -> None:
    views = [(5, 4), (-6, 9), (2, -7), (-12, 3)]
    choose(page, *(photo(roll, pitch) for roll, pitch in views))
    view(page, "together")
    page.check("#shared")
    still(page)


def broken(page: Any) -> None:
    cut = {"name": "cut-short.jpg", "mimeType": "image/jpeg", "buffer": TOWN.read_bytes()[:9000]}
    notes = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"no photo at all"}
    choose(page, photo(5, 4), cut, notes, photo(-6, 9))


STATES: dict[str, tuple[Callable[[Any], None], dict[str, Any]]] = {
    "empty": (empty, DESK),
    "photo": (try_town, DESK),
    "lines": (lines, DESK),
    "confidence": (confidence, DESK | {"color_scheme": "dark"}),
    "box": (box, DESK),
    "known": (known, DESK),
    "drawing": (drawing, DESK),
    "doubts": (doubts, DESK),
    "rectified": (rectified, DESK),
    "undistorted": (undistorted, DESK),
    "together": (together, TALL | {"color_scheme": "dark"}),
    "broken": (broken, DESK),
    "empty-phone": (empty, PHONE),
    "photo-phone": (try_town, PHONE),
    "rectified-phone": (rectified, PHONE | {"color_scheme": "dark"}),
}
"""What to do for each picture, and in which window."""


def save(shot: bytes, path: Path) -> None:
    picture = Image.open(io.BytesIO(shot)).convert("RGB")
    picture.save(path, quality=QUALITY, optimize=True, progressive=True)


def main() -> None:
    """Make those that are named, or all."""
    OUT.mkdir(parents=True, exist_ok=True)
    names = sys.argv[1:] or list(STATES)
    chromium = shutil.which("chromium")
    with server() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for name in names:
            act, window = STATES[name]
            context = browser.new_context(reduced_motion="reduce", **window)
            page = context.new_page()
            page.set_default_timeout(120_000)
            page.goto(address)
            act(page)
            page.evaluate("() => scrollTo(0, 0)")
            path = OUT / f"{name}.jpg"
            save(page.screenshot(), path)
            context.close()
            print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    main()
