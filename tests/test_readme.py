"""The README and the pages for new users do what they say: their code and commands run."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from typer.testing import CliRunner, Result

from geocalib import Camera
from geocalib.cli.app import app
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.nets.weights import load_network
from geocalib.pipeline.onnx_engine import OnnxEngine
from geocalib.synthetic import render_scene
from shown import assert_alike

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    "docs/python.md",
    "docs/migrating.md",
    "docs/command-line.md",
    "docs/model-card.md",
)
TOWN = ROOT / "examples" / "town.jpg"


@pytest.fixture(scope="module")
def looked_once() -> Callable[..., Any]:
    """In the place of ``OnnxEngine._run``: the pages show the same few photos again and again."""
    run, seen = OnnxEngine._run, {}

    def remembered(engine: OnnxEngine, names: Sequence[str], given: dict[str, Any]) -> Any:
        key = (*names, *((name, a.shape, a.tobytes()) for name, a in given.items()))
        if key not in seen:
            seen[key] = run(engine, names, given)
        return seen[key]

    return remembered


@pytest.fixture
def folder(
    looked_once: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """A folder with the photos that the pages speak of, to work in."""
    for name in ("examples", "photos", "holidays", "rig"):
        (tmp_path / name).mkdir()
    shutil.copy(TOWN, tmp_path / "examples")
    photo = Image.open(TOWN)
    for number in (1, 2, 3):
        photo.resize((240, 160)).save(tmp_path / "photos" / f"{number}.jpg")
    shutil.copy(TOWN, tmp_path / "holidays" / "IMG_2.jpg")
    ImageOps.mirror(photo).save(tmp_path / "holidays" / "IMG_10.jpg", quality=92)
    Image.new("RGB", photo.size, "grey").save(tmp_path / "holidays" / "pocket.jpg")
    (tmp_path / "holidays" / "broken.jpg").write_bytes(TOWN.read_bytes()[:50_000])
    for name, picture in _rig_pictures():
        picture.save(tmp_path / "rig" / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(OnnxEngine, "_run", looked_once)
    monkeypatch.setattr("geocalib.nets.weights.load_network", lambda _: load_network("lean"))
    return tmp_path


def _rig_pictures() -> Iterator[tuple[str, Image.Image]]:
    """Of two cameras, one of which looks to the right of the other, at two times."""
    camera = Camera.create("pinhole", f=120, size=(192, 128), dtype=torch.float32)
    right = torch.tensor([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    for time, roll, pitch in ((1, 0.05, 0.1), (2, -0.1, 0.05)):
        gravity = from_roll_pitch(torch.tensor([roll]), torch.tensor([pitch]))
        for name, down in (
            (f"ahead_{time}.jpg", gravity),
            (f"right_{time}.jpg", gravity @ right.T),
        ):
            colours = render_scene(camera, down, seed=time, subpixels=1)[0]
            yield name, Image.fromarray((255 * colours).to(torch.uint8).numpy())


def _page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _run(command: str) -> Result:
    program, *words = shlex.split(command, comments=True)
    assert program == "geocalib"
    result = CliRunner().invoke(app, words)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def _code(name: str) -> dict[str, Any]:
    """Everything that a page's code defines, run from top to bottom."""
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", _page(name), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, name, "exec"), names)
    return names


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    text = re.sub(r"```.*?```", "", _page(name), flags=re.DOTALL)
    targets = re.findall(r'(?:\]\(|src=")([^)"#:]+)', text)
    assert targets
    for target in targets:
        file = (ROOT / name).parent / target
        assert file.exists(), target
        assert file.suffix not in (".png", ".jpg") or file.stat().st_size < 200_000


def test_code_of_the_readme(folder: Path) -> None:
    found = _code("README.md")
    assert abs(found["c"].roll_deg - 6) < 2
    for file in ("rectified.png", "model/cameras.txt", "camera.yaml"):
        assert (folder / file).stat().st_size > 0


def test_code_of_the_tour(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _code("docs/python.md")
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == printed[3]  # what was raised for one image is the failure among many
    assert "missing.jpg" in printed[0]
    ahead, aside = found["ahead"].gravity, found["aside"].gravity
    np.testing.assert_allclose(aside, found["right"] @ ahead, atol=1e-9)
    np.testing.assert_allclose(found["pixels"][0, 0], [10.5, 20.5], rtol=0, atol=1e-3)
    assert found["tensors"].up.grad.abs().sum() > 0
    assert (folder / "shown.png").stat().st_size > (folder / "overlay.png").stat().st_size / 2


def test_code_for_users_of_the_published_package(folder: Path) -> None:
    found = _code("docs/migrating.md")
    assert found["result"]["gravity"].vec3d.shape == (2, 3)
    assert found["result"]["gravity"].vec3d[0, 1] < 0 < found["c"].gravity[1]


def test_commands_of_the_readme(folder: Path) -> None:
    (block,) = re.findall(r"```sh\n(.*?)```", _page("README.md"), re.DOTALL)
    for command in block.splitlines():
        result = _run(command)
        assert result.exit_code == 0, f"{command}\n{result.output}"
    made = ("out.jsonl", "out.csv", "model", "drawn", "drawn.png", "level", "rectified", "straight")
    assert all((folder / name).exists() for name in made)


@pytest.mark.parametrize("name", ["README.md", "docs/command-line.md"])
def test_commands_print_what_the_page_shows(name: str, folder: Path) -> None:
    shown = re.findall(
        r"^    \$ (geocalib .*)\n((?:(?:    (?!\$).*)?\n)*)", _page(name), re.MULTILINE
    )
    assert len(shown) > 1
    for command, page_shows in shown:
        if "|" not in command:  # a pipe is for a shell
            assert_alike(_run(command).output, page_shows, command)
