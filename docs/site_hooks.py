"""What mkdocs does beside its own: pages that lie outside docs/, and links that lead there.

The same files are read in a checkout and on the site. README.md and its neighbours become pages of
the site; in every page, links to them lead to these pages, and links to other files of the
repository, which the site does not have, become their text alone. A link to a file that is not
there stays, and mkdocs complains of it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = Path(__file__).parent

OUTSIDE = {
    "index.md": "README.md",
    "changes.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
}
"""Pages of the site, and the files of the repository that they are."""
PAGES = {ROOT / source: page for page, source in OUTSIDE.items()}

CODE = re.compile(r"(^```.*?^```|(?<!\[)`[^`\n]+`)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)]*)?\)")
SOURCE = re.compile(r'(?<= src=")(?P<target>[^":]+)(?=")')


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that lie outside docs/."""
    for page, source in OUTSIDE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """The page with its links as the site has them."""
    uri = page.file.src_uri
    origin = ROOT / OUTSIDE[uri] if uri in OUTSIDE else DOCS / uri
    # What is code is not a link.
    parts = CODE.split(markdown)
    parts[::2] = [_with_links(part, origin.parent, uri) for part in parts[::2]]
    return "".join(parts)


def _with_links(text: str, folder: Path, uri: str) -> str:
    def link(match: re.Match[str]) -> str:
        there = _place(match["target"], folder, uri)
        if there is None:
            return match["text"]
        return f"{match['image']}[{match['text']}]({there}{match['anchor'] or ''})"

    def source(match: re.Match[str]) -> str:
        return _place(match["target"], folder, uri) or match["target"]

    return SOURCE.sub(source, LINK.sub(link, text))


def _place(target: str, folder: Path, uri: str) -> str | None:
    """Where the target of a link is, seen from a page; None if the site does not have it."""
    if ":" in target:
        return target
    path = Path(os.path.normpath(folder / target))
    if path in PAGES:
        place = PAGES[path]
    elif path.is_relative_to(DOCS) and path.suffix != ".py":
        place = path.relative_to(DOCS).as_posix()
    elif path.exists():
        return None
    else:
        return target
    return os.path.relpath(place, Path(uri).parent).replace(os.sep, "/")
