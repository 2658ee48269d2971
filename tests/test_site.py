"""The site: pages of the repository with links that fit, and the gallery."""

from __future__ import annotations

import importlib
import re
from functools import reduce
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import yaml

from scripts import load_script

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    return load_script(DOCS / "site_hooks.py")


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        ("index.md", "[how](docs/server.md#limits)", "[how](server.md#limits)"),
        ("index.md", "![photo](docs/pictures/leuven.jpg)", "![photo](pictures/leuven.jpg)"),
        ("index.md", '<img src="docs/pictures/leuven.jpg">', '<img src="pictures/leuven.jpg">'),
        ("index.md", "[a photo](examples/town.jpg)", "a photo"),
        ("index.md", "`[code](docs/server.md)`", "`[code](docs/server.md)`"),
        ("contributing.md", "[new](CHANGELOG.md)", "[new](changes.md)"),
        ("howto/ar.md", "[`ball`](../../examples/insert_object.py)", "`ball`"),
        ("howto/ar.md", "[page](../page.md)", "[page](../page.md)"),
        ("howto/ar.md", "[home](../../README.md)", "[home](../index.md)"),
        ("howto/ar.md", "[lost](../../nowhere.md)", "[lost](../../nowhere.md)"),
        ("start.md", "[out](https://example.org/a.md)", "[out](https://example.org/a.md)"),
    ],
)
def test_links_lead_to_pages_of_the_site(
    hooks: ModuleType, page: str, text: str, expected: str
) -> None:
    where = SimpleNamespace(file=SimpleNamespace(src_uri=page))
    assert hooks.on_page_markdown(text, where) == expected


def test_nothing_is_fetched_from_elsewhere() -> None:
    settings = yaml.safe_load((DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8"))
    assert settings["theme"]["font"] is False
    assert not {"extra_css", "extra_javascript"} & settings.keys()
    for page in DOCS.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r'(?:!\[[^\]]*\]\(|src=")https?:', text), page


def test_names_on_pages_exist() -> None:
    """Modules, members and files that pages speak of."""
    for page in (*DOCS.glob("*.md"), *DOCS.glob("howto/*.md")):
        text = page.read_text(encoding="utf-8")
        for name in re.findall(r"`((?:geocalib|geocalib_lab)(?:\.[A-Za-z_]\w*)+)`", text):
            assert _exists(name), f"{page.name}: {name}"
        for path in re.findall(r"(?<![\w/])((?:lab|tests|examples)/[\w./]*\w)", text):
            assert (DOCS.parent / path).exists(), f"{page.name}: {path}"


def _exists(name: str) -> bool:
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        return reduce(lambda at, part: getattr(at, part, None), parts[count:], found) is not None
    return False


def test_tables_on_pages_are_those_that_were_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = load_script(DOCS / "include_tables.py")
    page = "# Sets\n\n## Errors\n\n| no |\n\n"
    page += "## town: methods\n\nMedians.\n\n| new |\n\nnote\n\n## More\n"
    (tmp_path / "page.md").write_text(page)
    start = "<!-- include page.md#town-methods -->"
    text = f"before\n{start}\n| old |\n<!-- end -->\nafter"
    new = script.included(text, tmp_path)
    assert new == f"before\n{start}\n\n| new |\n\nnote\n\n<!-- end -->\nafter"
    assert script.included(new, tmp_path) == new
    (tmp_path / "page.md").write_text("# Sets\n\n## All\n\n| m |\n| - |\n| A |\n| B |\n| C |\n")
    part = "<!-- include page.md#all of C; A -->\n"
    assert script.included(f"{part}<!-- end -->", tmp_path) == (
        f"{part}\n| m |\n| - |\n| C |\n| A |\n\n<!-- end -->"
    )
    assert script.main(check=True) == 0, capsys.readouterr().out


def test_photographs_have_their_credits() -> None:
    folder = DOCS.parent / "examples" / "photographs"
    credits = (folder / "CREDITS.md").read_text(encoding="utf-8")
    photographs = sorted(file.name for file in folder.glob("*.jpg"))
    rows = re.findall(r"^\| `(.+?)` \|.*\| (.+?) \|$", credits, re.MULTILINE)
    assert sorted(name for name, _ in rows) == photographs
    assert {licence for _, licence in rows} <= {"Apache-2.0", "CC BY 2.0", "CC0"}


def test_gallery_has_its_pictures() -> None:
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    photographs = (DOCS.parent / "examples" / "photographs").glob("*.jpg")
    assert {f"pictures/gallery/{file.name}" for file in photographs} <= set(
        re.findall(r"pict[^)]+", page)
    )
    shown = re.findall(r"!\[[^\]]+\]\((pictures/gallery/\w+\.jpg)\)", page)
    assert len(shown) == len(set(shown)) == 25
    assert sum((DOCS / picture).stat().st_size for picture in shown) < 3e6
    assert page.count("; found: ") == 20
    # Failures are among them.
    assert re.search(r"### Wrong, and .*\n+.*\n+\*\*", page)
