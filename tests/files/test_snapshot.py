"""Whether files are as they were."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from geocalib.files.snapshot import file_stat, snapshot, unchanged


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """A photo, and a file beside it that does not exist."""
    (tmp_path / "photo.jpg").write_bytes(b"pixels")
    return [str(tmp_path / "photo.jpg"), str(tmp_path / "photo.json")]


def test_the_same_file(files: list[str]) -> None:
    noted = snapshot(files, file_stat(files))
    assert unchanged(noted, files)
    os.utime(files[0], (1, 1))  # Copied, say.
    assert unchanged(noted, files)
    Path(files[0]).unlink()
    assert unchanged(noted, files)


def test_another_file(files: list[str]) -> None:
    noted = snapshot(files, file_stat(files))
    Path(files[0]).write_bytes(b"others")
    os.utime(files[0], (1, 1))
    assert not unchanged(noted, files)


def test_a_file_beside_it(files: list[str]) -> None:
    noted = snapshot(files, file_stat(files))
    Path(files[1]).write_text("{}")
    assert not unchanged(noted, files)


def test_what_changed_while_it_was_used_matches_nothing(files: list[str]) -> None:
    before = file_stat(files)
    Path(files[0]).write_bytes(b"other pixels")
    assert not unchanged(snapshot(files, before), files)


@pytest.mark.parametrize("noted", [None, {}, "words", {"sha256": 5}])
def test_what_is_no_snapshot_matches_nothing(files: list[str], noted: object) -> None:
    assert not unchanged(noted, files)
