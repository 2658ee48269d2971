"""Commands run in an empty folder, with a calibrator that answers at once."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner, Result

from fake_calibrator import FakeCalibrator, NothingToLoad, Run, picture
from geocalib.cli.app import app
from geocalib.files import sha256_of
from geocalib.files.snapshot import FileStat, file_stat
from geocalib.nets.weights import catalogue


@cache
def _sha256_of(path: Path, seen: FileStat) -> str:
    return sha256_of(path)


@pytest.fixture(autouse=True)
def weights_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command asks which weights these are: 17 MB to read, as long as they are the same."""
    monkeypatch.setattr(
        catalogue, "sha256_of", lambda path: _sha256_of(path, file_stat([path]) or (0, 0))
    )


@pytest.fixture(autouse=True)
def drawings_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at them here: ``tests/overlay`` does."""
    monkeypatch.setattr("geocalib.overlay.card.LONGEST_SIDE", 480)


@pytest.fixture
def calibrator(monkeypatch: pytest.MonkeyPatch) -> FakeCalibrator:
    """In the place of the real one."""
    fake = FakeCalibrator()
    monkeypatch.setitem(
        sys.modules, "geocalib.pipeline.calibrator", SimpleNamespace(Calibrator=fake)
    )
    monkeypatch.setattr("geocalib.cli.network.EngineFuture", NothingToLoad)
    return fake


@pytest.fixture
def run(calibrator: FakeCalibrator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object, stdin: bytes | None = None) -> Result:
        result = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def photos(tmp_path: Path) -> list[str]:
    """Ten photos in the folder ``photos``, in natural order."""
    (tmp_path / "photos").mkdir()
    names = [f"photos/{i}.png" for i in range(1, 11)]
    for seed, name in enumerate(names):
        picture(seed=seed).save(tmp_path / name)
    return names
