"""The README and the pages for new users do what they say: their code and commands run."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pages import ROOT, check_links, check_shown_commands, folder, run, run_code, text_of
from shown import assert_alike

__all__ = ["folder"]

PAGES = (
    "README.md",
    "docs/python.md",
    "docs/migrating.md",
    "docs/command-line.md",
    "docs/model-card.md",
)
PHONE_ROLL_DEG = 0.5
"""What the phone's accelerometer says of the photograph of the README."""


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    check_links(name)


def test_the_readme_is_short() -> None:
    text = text_of("README.md")
    assert len(text.split()) <= 900
    # One picture, of a photograph whose licence is said, before anything else is asked for.
    assert "CREDITS.md" in text[text.index("![") : text.index("## Install")]


def test_what_its_commands_need_is_installed() -> None:
    (extras,) = re.findall(r"pip install -c constraints.txt \"\.\[(.*)\]\"", text_of("README.md"))
    assert "geocalib serve" in text_of("README.md")
    assert extras.split(",") == ["serve"]


def test_extras_are_in_quotes_that_every_shell_takes() -> None:
    """Some shells take brackets for a pattern, and others a single quote for a letter."""
    folders = [ROOT / name for name in ("docs", "src", "lab")]
    files = [path for folder in folders for path in folder.rglob("*.*")]
    texts = [
        path.read_text(encoding="utf-8")
        for path in (ROOT / "README.md", *files)
        if path.suffix in (".md", ".py")
    ]
    told = [mark for text in texts for mark in re.findall(r"pip install .*?(\S)\w*\.?\[", text)]
    assert len(told) > 5
    assert set(told) == {'"'}


def test_code_of_the_readme(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run_code("README.md")
    assert abs(found["c"].roll_deg - PHONE_ROLL_DEG) < 1
    assert (folder / "rectified.png").stat().st_size > 0
    (shown,) = re.findall(r"```text\n(.*?)```", text_of("README.md"), re.DOTALL)
    assert_alike(capsys.readouterr().out, shown, "the code of the README")


def test_no_name_of_the_readme_means_two_things() -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", text_of("README.md"), re.DOTALL))
    given = [
        node.id
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    written = re.findall(r"-o (\S+)", text_of("README.md"))
    assert given
    assert written
    assert len(given + written) == len({*given, *written})


def test_type_checkers_read_its_code_without_torch(tmp_path: Path) -> None:
    """As mypy sees it where torch is not installed: its types are Any."""
    code = "\n".join(re.findall(r"```python\n(.*?)```", text_of("README.md"), re.DOTALL))
    calls = {
        '"a.jpg"': "Calibration",
        'open("a.jpg", "rb")': "Calibration",
        "np.zeros((4, 6, 3), np.uint8)": "Calibration",
        '["a.jpg", "b.jpg"]': "list[Calibration | Failure]",
        'Path().glob("*.jpg")': "list[Calibration | Failure]",
        "[np.zeros((4, 6, 3), np.uint8)]": "list[Calibration | Failure]",
    }
    told = [
        f"answer_{i}: {type_} = Calibrator().calibrate({images}, fov=60)"
        for i, (images, type_) in enumerate(calls.items())
    ]
    names = (
        "import numpy as np\nfrom pathlib import Path\nfrom geocalib import Calibration, Failure\n"
    )
    (tmp_path / "code.py").write_text(names + code + "\n".join(told))
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\nstrict = true\n[mypy-torch,torch.*]\nfollow_imports = skip\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "code.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_code_of_the_tour(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run_code("docs/python.md")
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == printed[3]  # what was raised for one image is the failure among many
    assert "missing.jpg" in printed[0]
    ahead, aside = found["ahead"].gravity, found["aside"].gravity
    np.testing.assert_allclose(aside, found["right"] @ ahead, atol=1e-9)
    np.testing.assert_allclose(found["pixels"][0, 0], [10.5, 20.5], rtol=0, atol=1e-3)
    assert (folder / "shown.png").stat().st_size > (folder / "overlay.png").stat().st_size / 2


def test_code_for_users_of_the_published_package(folder: Path) -> None:
    found = run_code("docs/migrating.md")
    assert found["result"]["gravity"].vec3d.shape == (2, 3)
    assert found["result"]["gravity"].vec3d[0, 1] < 0 < found["c"].gravity[1]


def test_commands_of_the_readme(folder: Path) -> None:
    (block,) = re.findall(r"```sh\n(.*?)```", text_of("README.md"), re.DOTALL)
    for command in block.splitlines():
        result = run(command)
        assert result.exit_code == 0, f"{command}\n{result.output}"
    assert all((folder / name).exists() for name in ("out.jsonl", "model", "level", "rectified"))


@pytest.mark.parametrize("name", ["README.md", "docs/command-line.md"])
def test_commands_print_what_the_page_shows(name: str, folder: Path) -> None:
    check_shown_commands(name)
