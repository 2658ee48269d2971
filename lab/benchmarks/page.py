"""Frames a second while a slider of the page is dragged, in Chromium (docs/page.md).

python lab/benchmarks/page.py                  needs geocalib[serve], playwright and chromium
python lab/benchmarks/page.py --seconds 10

A slider moves in every frame, and the page asks the server for fits all the while. At 60 frames a
second the page's thread may compute for 16.7 ms in each: scripts, style and layout are the page's,
the rest is what Chromium draws with. Without a graphics card WebGL, which draws
the box and the ground, is computed by the processors, which server and page need as well: hence the
lines by themselves.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/page")]

from page_driving import FLAGS, answered, only  # noqa: E402

from served import Served  # noqa: E402

DRAG = """async ({name, seconds}) => {
    const slider = document.getElementById(name);
    const [low, high] = [Number(slider.min), Number(slider.max)];
    const frame = () => new Promise(requestAnimationFrame);
    slider.focus();
    const began = await frame();
    const times = [began];
    while (times.at(-1) - began < 1000 * seconds) {
        const turn = (times.at(-1) - began) / 3000;
        slider.value = (low + high) / 2 + 0.1 * (high - low) * Math.sin(2 * Math.PI * turn);
        slider.dispatchEvent(new Event("input", {bubbles: true}));
        times.push(await frame());
    }
    return times.slice(1).map((time, i) => time - times[i]);
}"""
LAYERS = {
    "lines": ("horizon", "latitudes", "up"),
    "lines, box and ground": ("horizon", "latitudes", "up", "box", "ground"),
}


def measure(page: Page, seconds: float) -> None:
    chromium = page.context.new_cdp_session(page)
    chromium.send("Performance.enable")

    def computed() -> tuple[float, float]:
        """Milliseconds that the page's thread took so far: of a processor, and of that for scripts,
        style and layout."""
        metrics = {
            m["name"]: m["value"] for m in chromium.send("Performance.getMetrics")["metrics"]
        }
        own = sum(metrics[f"{part}Duration"] for part in ("Script", "RecalcStyle", "Layout"))
        return 1000 * metrics["ThreadTime"], 1000 * own

    for words, layers in LAYERS.items():
        only(page, *layers)
        for name in ("focal", "roll", "pitch"):
            fits: list[str] = []
            page.on("response", lambda answer, fits=fits: fits.append(answer.url))
            before = computed()
            frames = sorted(page.evaluate(DRAG, {"name": name, "seconds": seconds}))
            pairs = zip(before, computed(), strict=True)
            every, own = ((after - start) / len(frames) for start, after in pairs)
            fitted = sum("refit" in url for url in fits)
            slow = frames[int(0.95 * len(frames))]
            print(
                f"{words}, {name}: {1000 / statistics.mean(frames):.0f} frames/s, "
                f"median {statistics.median(frames):.1f} ms, 95% below {slow:.1f} ms; computed "
                f"{every:.1f} ms a frame, the page itself {own:.1f}; {fitted} fits",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    with Served() as served, sync_playwright() as playwright:
        program = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        page.goto(served.address)
        page.click("[data-example]")
        answered(page)
        renderer = page.evaluate(
            """() => {
                const gl = document.createElement("canvas").getContext("webgl2");
                const info = gl?.getExtension("WEBGL_debug_renderer_info");
                return info ? gl.getParameter(info.UNMASKED_RENDERER_WEBGL) : "none";
            }"""
        )
        print(f"Chromium {browser.version}, WebGL: {renderer}")
        measure(page, options.seconds)
        browser.close()


if __name__ == "__main__":
    main()
