"""Put into docs/formats.md what other programs make of our files, as the tests measure it:
``python docs/make_peers_table.py``. Programs that are missing have no row then.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "formats.md"
BEGIN, END = "<!-- python docs/make_peers_table.py -->", "<!-- end -->"

LEAST = 1e-6
"""Pixels: what is less comes of rounding."""


def measured() -> dict[str, float]:
    """The largest difference in pixels, by formats and peer."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        words = ["-m", "pytest", "-q", "-o", "junit_family=xunit1", f"--junitxml={report}"]
        done = subprocess.run([sys.executable, *words, "tests/formats"], cwd=ROOT)
        if done.returncode != 0:
            raise SystemExit("some tests fail: nothing was written")
        found: dict[str, float] = {}
        for case in ElementTree.parse(report).iter("testcase"):
            values = {p.get("name"): p.get("value") for p in case.iter("property")}
            if peer := values.get("peer"):
                found[peer] = max(found.get(peer, 0.0), float(values.get("pixels") or 0))
    return found


def table(found: dict[str, float]) -> str:
    """A row for each format and peer."""
    rows = ["| format | read by | largest difference, pixels |", "|---|---|---|"]
    for key, pixels in sorted(found.items()):
        formats, peer = key.split("|")
        names = ", ".join(f"`{name}`" for name in formats.split(","))
        rows.append(f"| {names} | {peer} | {f'{pixels:.1g}' if pixels >= LEAST else '0'} |")
    return "\n".join(rows)


def main() -> int:
    new = f"{BEGIN}\n\n{table(measured())}\n\n{END}"
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(
        re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: new, text, flags=re.DOTALL),
        encoding="utf-8",
    )
    print(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
