"""Sets that were interrupted."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from geocalib.errors import FormatError
from geocalib.pipeline import predict
from geocalib.pipeline.predict import run_network
from oracle_network import check, knowing, picture, truth

TRUTHS = [truth((160, 120), roll_deg=3 * i, f=np.array(150.0, np.float64)) for i in range(5)]


@pytest.fixture
def photos(tmp_path: Path) -> list[str]:
    paths = [str(tmp_path / f"{i}.png") for i in range(len(TRUTHS))]
    for i, path in enumerate(paths):
        Image.fromarray(picture(TRUTHS[i].size, i)).save(path)
    return paths


class Watched:
    """A calibrator that notes which photos its network sees, and may be interrupted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, stop_after: int | None = None) -> None:
        self.seen: list[str] = []
        self.calibrator = knowing(*TRUTHS)

        def noted(engine: Any, sources: Sequence[Any], **how: Any) -> Iterator[Any]:
            for source in sources:
                if len(self.seen) == stop_after:
                    raise KeyboardInterrupt
                self.seen.append(Path(source).name)
                yield from run_network(engine, [source], **how)

        monkeypatch.setattr(predict, "run_network", noted)

    def __call__(self, photos: list[str], folder: Path, **options: Any) -> list[Any]:
        found = self.calibrator.calibrate_set(photos, lines="off", resume_in=folder, **options)
        return list(found)


def test_a_set_goes_on(photos: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "seen"
    with pytest.raises(KeyboardInterrupt):
        Watched(monkeypatch, stop_after=3)(photos, folder)
    again = Watched(monkeypatch)
    found = again(photos, folder)
    assert again.seen == ["3.png", "4.png"]
    for one, known in zip(found, TRUTHS, strict=True):
        check(one, known)
    whole = list(knowing(*TRUTHS).calibrate_set(photos, lines="off"))
    assert [one.to_dict() for one in found] == [one.to_dict() for one in whole]


def test_what_has_changed_is_seen_again(
    photos: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "seen"
    Watched(monkeypatch)(photos, folder)
    Path(photos[1]).touch()
    again = Watched(monkeypatch)
    again(photos, folder)
    assert again.seen == ["1.png"]
    other = Watched(monkeypatch)
    other(photos, folder, crop=(0, 0, 160, 120, 200, 120))
    assert len(other.seen) == len(photos)


@pytest.mark.parametrize("kept", [0, 7, 100, -1])
def test_a_damaged_leaf_is_named(
    photos: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    folder = tmp_path / "seen"
    Watched(monkeypatch)(photos, folder)
    record = next(folder.iterdir())
    record.write_bytes(record.read_bytes()[:kept])
    with pytest.raises(FormatError, match=r"\.record is damaged .*; delete .*seen to start again"):
        Watched(monkeypatch)(photos, folder)


def test_a_leaf_is_no_program(
    photos: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Someone else may have put a file there; reading it must not run it."""
    folder = tmp_path / "seen"
    Watched(monkeypatch)(photos, folder)
    next(folder.iterdir()).write_bytes(pickle.dumps(Trap(tmp_path / "ran")))
    with pytest.raises(FormatError, match=r"\.record is damaged"):
        Watched(monkeypatch)(photos, folder)
    assert not (tmp_path / "ran").exists()


@dataclass
class Trap:
    """Makes a file when it is unpickled."""

    path: Path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)
