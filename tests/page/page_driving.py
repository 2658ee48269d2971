"""What people do to the page, and what they see there."""

from __future__ import annotations

import base64
import io
import json
import mimetypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

ROOT = Path(__file__).parents[2]
TOWN = ROOT / "examples/town.jpg"

Pixels = npt.NDArray[np.uint8]


def drop(page: Any, files: Mapping[str, bytes]) -> None:
    """Let go of files above the page."""
    page.evaluate(
        """files => {
            const transfer = new DataTransfer();
            for (const [name, type, text] of files) {
                const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
                transfer.items.add(new File([bytes], name, {type}));
            }
            for (const kind of ["dragenter", "dragover", "drop"]) {
                const event = new DragEvent(
                    kind, {dataTransfer: transfer, bubbles: true, cancelable: true});
                document.body.dispatchEvent(event);
            }
        }""",
        [
            [name, mimetypes.guess_type(name)[0] or "", base64.b64encode(data).decode()]
            for name, data in files.items()
        ],
    )


def answered(page: Any) -> None:
    """Wait for the numbers of the photo that is looked at."""
    page.wait_for_selector("#answer:not([hidden])")
    still(page)


def still(page: Any) -> None:
    """Wait until no fit is under way, and everything is drawn."""
    page.wait_for_load_state("networkidle")
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")


def numbers(page: Any) -> dict[str, str]:
    """The table of numbers, as text."""
    return page.eval_on_selector_all(
        "#numbers > div",
        "rows => Object.fromEntries(rows.map(row => "
        "[row.querySelector('dt').textContent, row.querySelector('dd').textContent.trim()]))",
    )


def canvas(page: Any, selector: str) -> Pixels:
    """(H, W, 4) pixels of a canvas."""
    address = page.eval_on_selector(
        selector,
        """canvas => new Promise(done => requestAnimationFrame(() => {
            const copy = document.createElement("canvas");
            Object.assign(copy, {width: canvas.width, height: canvas.height});
            copy.getContext("2d").drawImage(canvas, 0, 0);
            done(copy.toDataURL());
        }))""",
    )
    data = base64.b64decode(address.split(",")[1])
    return np.array(Image.open(io.BytesIO(data)).convert("RGBA"))


def shows(page: Any, **what: bool) -> None:
    """Switch drawings on and off."""
    for name, on in what.items():
        page.set_checked(f"[data-show={name}]", on, force=True)


def only(page: Any, *names: str) -> None:
    """Switch all drawings off but these."""
    every = ("horizon", "latitudes", "up", "lines", "confidence", "box", "ground")
    shows(page, **{name: name in names for name in every})
    still(page)


def downloaded(page: Any, selector: str, folder: Path) -> Path:
    """The file that a button gives."""
    with page.expect_download() as waiting:
        page.click(selector)
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


def record(page: Any, folder: Path) -> dict[str, Any]:
    """What the page knows of the photo that is looked at, by its JSON file."""
    text = downloaded(page, "[data-format=json]", folder).read_text()
    return json.loads(text.splitlines()[0])


def horizon_of(pixels: Pixels) -> npt.NDArray[np.bool_]:
    """(H, W): where it has the colour of the horizon."""
    near = np.abs(pixels[..., :3].astype(int) - (0xE6, 0x00, 0x7E)).max(-1) < 40
    return near & (pixels[..., 3] > 200)
