"""Put tables that were measured into the pages that show them: ``python docs/include_tables.py``.

Between ``<!-- include FILE -->`` and ``<!-- end -->`` in README.md and docs/ stands what is in
FILE, a path from the top of the repository, as ``geocalib eval --report`` wrote it. With
``--check`` nothing is written, and pages that are behind are named.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(<!-- include (\S+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def included(text: str, root: Path = ROOT) -> str:
    """The text of a page with its tables as they are now."""

    def block(match: re.Match[str]) -> str:
        return f"{match[1]}\n{(root / match[2]).read_text(encoding='utf-8')}\n{match[4]}"

    return BLOCK.sub(block, text)


def main(check: bool) -> int:
    behind = 0
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        old = page.read_text(encoding="utf-8")
        new = included(old)
        if new != old:
            behind += 1
            print(page.relative_to(ROOT))
            if not check:
                page.write_text(new, encoding="utf-8")
    return 1 if check and behind else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
