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


def half(path: Path) -> bytes:
    content = io.BytesIO()
    Image.open(path).reduce(2).save(content, "jpeg", quality=90)
    return content.getvalue()


ROOT = Path(__file__).parents[2]
TOWN = ROOT / "examples/town.jpg"
SMALL_TOWN = half(TOWN)
"""It at half its size, as a file: looked at and warped in a quarter of the time."""

FLAGS = ["--enable-unsafe-swiftshader"]
"""Of Chromium: WebGL without a graphics card."""

PHONE = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "is_mobile": True,
    "has_touch": True,
}

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
    """Wait until no answer is to come, and everything is drawn."""
    page.wait_for_selector("#work[aria-busy=false]", state="attached")
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")


def numbers(page: Any) -> dict[str, str]:
    """The table of numbers, as text."""
    return page.eval_on_selector_all(
        "#numbers > div",
        "rows => Object.fromEntries(rows.map(row => "
        "[row.querySelector('dt').textContent, row.querySelector('dd').textContent.trim()]))",
    )


def overlay(page: Any) -> Pixels:
    """(H, W, 4) pixels of the lines over the photo."""
    address = page.eval_on_selector("#overlay", "canvas => canvas.toDataURL()")
    data = base64.b64decode(address.split(",")[1])
    return np.array(Image.open(io.BytesIO(data)).convert("RGBA"))


def seen(page: Any) -> Pixels:
    """(H, W, 3) pixels of the stage, as people see them."""
    shot = page.locator("#stage").screenshot()
    return np.array(Image.open(io.BytesIO(shot)).convert("RGB"))


def reset(page: Any) -> None:
    """The photo as it was when its first answer came."""
    page.evaluate(
        """() => {
            const click = node => node && node.click();
            click(document.querySelector("#view-photo:not(:checked)"));
            for (const name of ["focal", "roll", "pitch"]) {
                const button = document.getElementById(`${name}-free`);
                if (!button.hidden) click(button);
            }
            const lens = document.getElementById("lens");
            if (lens.value !== "auto") {
                lens.value = "auto";
                lens.dispatchEvent(new Event("change"));
            }
        }"""
    )
    still(page)


def only(page: Any, *names: str) -> None:
    """Switch all drawings off but these."""
    page.evaluate(
        """names => document.querySelectorAll("[data-show]").forEach(input => {
            if (input.checked !== names.includes(input.dataset.show)) input.click();
        })""",
        names,
    )
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
