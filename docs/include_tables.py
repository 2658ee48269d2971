"""Put tables that were measured into the pages that show them: ``python docs/include_tables.py``.

Between ``<!-- include FILE#SECTION -->`` and ``<!-- end -->`` in README.md and docs/ stands the
table of a section of FILE, a path from the top of the repository, as ``geocalib eval --report``
wrote it. SECTION is its heading as links have it. ``<!-- include FILE#SECTION of A; B -->`` takes
the rows alone that are called A and B. With ``--check`` nothing is written, and pages that are
behind are named.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(
    r"(<!-- include ([^\s#]+)#(\S+)(?: of ([^\n]+))? -->\n)(.*?)(<!-- end -->)", re.DOTALL
)


def included(text: str, root: Path = ROOT) -> str:
    """The text of a page with its tables as they are now."""

    def block(match: re.Match[str]) -> str:
        text = (root / match[2]).read_text(encoding="utf-8")
        table = section(text, match[3])
        if match[4]:
            table = rows(table, match[4].split("; "))
        return f"{match[1]}\n{table}\n\n{match[6]}"

    return BLOCK.sub(block, text)


def section(text: str, name: str) -> str:
    """The table below a heading, without what is said of its numbers before it."""
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, content = part.partition("\n")
        if re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-") == name:
            return content[content.index("|") :].strip()
    raise ValueError(f"no section is called {name}")


def rows(table: str, names: list[str]) -> str:
    """The head of a table, and its rows of these names, in their order."""
    head, rule, *rest = table.splitlines()
    found = {line.split("|")[1].strip(): line for line in rest if line.startswith("|")}
    return "\n".join([head, rule, *(found[name] for name in names)])


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
