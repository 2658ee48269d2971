"""Pages of the documentation, whose code and commands tests run in a folder of their own."""

from __future__ import annotations

import pickle
import re
import shlex
import shutil
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image, ImageOps
from typer.testing import CliRunner, Result

from geocalib import Camera
from geocalib.cli.app import app
from geocalib.geometry.gravity import from_roll_pitch
from geocalib.nets.weights import catalogue
from geocalib.nets.weights.files import load_network
from geocalib.pipeline import fit, prepare
from geocalib.pipeline.engines import load as engines
from geocalib.pipeline.engines.onnx import OnnxEngine
from geocalib.synthetic import render_scene
from shown import assert_alike

ROOT = Path(__file__).parents[1]
TOWN = ROOT / "examples" / "town.jpg"


def remembered(function: Callable[..., Any], skipped: int = 0) -> Callable[..., Any]:
    """The same function, which answers a question only once: tests ask about the same few photos
    again and again. skipped: first arguments that are not asked about."""
    seen: dict[bytes, Any] = {}

    @wraps(function)
    def answer(*given: Any) -> Any:
        key = pickle.dumps(given[skipped:])
        if key not in seen:
            seen[key] = function(*given)
        return seen[key]

    return answer


ONCE = (
    (catalogue, "sha256_of", remembered(catalogue.sha256_of)),
    (engines, "load_engine", remembered(engines.load_engine)),
    (OnnxEngine, "_run", remembered(OnnxEngine._run, skipped=1)),
    (prepare, "detect", remembered(prepare.detect)),
    (fit, "refine_outcomes", remembered(fit.refine_outcomes)),
)
"""What takes long of a calibration."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the photos that the pages speak of, to work in."""
    for name in ("examples", "photos", "holidays", "rig"):
        (tmp_path / name).mkdir()
    shutil.copy(TOWN, tmp_path / "examples")
    shutil.copytree(TOWN.parent / "photographs", tmp_path / "examples" / "photographs")
    photo = Image.open(TOWN)
    for number in (1, 2, 3):
        photo.resize((240, 160)).save(tmp_path / "photos" / f"{number}.jpg")
    # Of the shape of a panorama, if not one.
    photo.resize((640, 320)).save(tmp_path / "panorama.jpg")
    shutil.copy(TOWN, tmp_path / "holidays" / "IMG_2.jpg")
    ImageOps.mirror(photo).save(tmp_path / "holidays" / "IMG_10.jpg", quality=92)
    Image.new("RGB", photo.size, "grey").save(tmp_path / "holidays" / "pocket.jpg")
    (tmp_path / "holidays" / "broken.jpg").write_bytes(TOWN.read_bytes()[:50_000])
    for name, picture in _rig_pictures():
        picture.save(tmp_path / "rig" / name)
    monkeypatch.chdir(tmp_path)
    for place, name, function in ONCE:
        monkeypatch.setattr(place, name, function)
    monkeypatch.setattr("geocalib.nets.weights.files.load_network", lambda _: load_network("lean"))
    return tmp_path


@cache
def _rig_pictures() -> list[tuple[str, Image.Image]]:
    """Of two cameras, one of which looks to the right of the other, at two times."""
    pictures = []
    camera = Camera.create("pinhole", f=120, size=(192, 128), dtype=torch.float32)
    right = torch.tensor([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    for time, roll, pitch in ((1, 0.05, 0.1), (2, -0.1, 0.05)):
        gravity = from_roll_pitch(torch.tensor([roll]), torch.tensor([pitch]))
        for name, down in (
            (f"ahead_{time}.jpg", gravity),
            (f"right_{time}.jpg", gravity @ right.T),
        ):
            colours = render_scene(camera, down, seed=time, subpixels=1)[0]
            pictures.append((name, Image.fromarray((255 * colours).to(torch.uint8).numpy())))
    return pictures


def text_of(name: str) -> str:
    """The text of a page."""
    return (ROOT / name).read_text(encoding="utf-8")


def run(command: str) -> Result:
    """What ``geocalib ...`` does."""
    program, *words = shlex.split(command, comments=True)
    assert program == "geocalib"
    result = CliRunner().invoke(app, words)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def run_code(name: str) -> dict[str, Any]:
    """Everything that a page's code defines, run from top to bottom."""
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", text_of(name), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, name, "exec"), names)
    return names


def check_links(name: str) -> None:
    """The files that a page links to are there, and pictures are small."""
    text = re.sub(r"```.*?```", "", text_of(name), flags=re.DOTALL)
    targets = re.findall(r'(?:\]\(|src=")([^)"#:]+)', text)
    assert targets
    for target in targets:
        file = (ROOT / name).parent / target
        assert file.exists(), target
        assert file.suffix not in (".png", ".jpg") or file.stat().st_size < 200_000


def check_shown_commands(name: str) -> None:
    """Commands after a ``$`` print what the page shows below them."""
    shown = re.findall(
        r"^    \$ (geocalib .*)\n((?:(?:    (?!\$).*)?\n)*)", text_of(name), re.MULTILINE
    )
    assert shown
    for command, page_shows in shown:
        if "|" not in command:  # a pipe is for a shell
            assert_alike(run(command).output, page_shows, command)
