"""The built page is that of the sources."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from page_driving import ROOT

WEB, PAGE = ROOT / "web", ROOT / "src/geocalib/server/page"


def test_page_is_built_of_these_sources() -> None:
    """As web/build.mjs counts them; no build is needed to see it."""
    fixed = ("build.mjs", "icon.svg", "index.html", "package-lock.json")
    sources = sorted([*fixed, *(f"src/{path.name}" for path in (WEB / "src").iterdir())])
    told = hashlib.sha256()
    for name in sources:
        told.update(name.encode())
        told.update((WEB / name).read_bytes())
    built = (PAGE / "sources.sha256").read_text().strip()
    assert built == told.hexdigest(), "run: cd web && npm ci && npm run build"
    assert (PAGE / "town.jpg").read_bytes() == (ROOT / "examples/town.jpg").read_bytes()


def test_build_gives_what_is_shipped(tmp_path: Path) -> None:
    if shutil.which("node") is None or not (WEB / "node_modules").exists():
        pytest.skip("the page's tools are not installed; cd web && npm ci")
    before = {path.name: path.read_bytes() for path in PAGE.iterdir()}
    out = tmp_path / "page"
    subprocess.run(["node", "build.mjs", str(out)], cwd=WEB, check=True)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
