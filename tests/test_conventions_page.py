"""The pictures and the code of docs/conventions.md are in order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch import Tensor

from geocalib import Camera
from scripts import load_script

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "conventions.md").read_text(encoding="utf-8")


def test_links_lead_somewhere_and_pictures_are_small() -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", PAGE)
    assert targets
    for target in targets:
        assert (DOCS / target).exists(), target
        assert not target.endswith(".png") or (DOCS / target).stat().st_size < 150_000


def test_code_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(code, "conventions.md", "exec"), {})


def test_pictures_can_be_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = load_script(DOCS / "make_pictures.py")

    def blank(camera: Camera, gravity: Tensor, seed: int, subpixels: int) -> Tensor:
        return torch.full((len(camera), 4, 6, 3), 0.5)

    # The town has its own tests, and takes seconds to render this finely.
    monkeypatch.setattr(script, "render_scene", blank)
    script.main(tmp_path)
    made = {path.name for path in tmp_path.iterdir()}
    assert made == set(re.findall(r"pictures/(\w+\.png)", PAGE))
