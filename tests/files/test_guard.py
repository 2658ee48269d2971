"""Inputs by any of their names stay, and so does what exists."""

from __future__ import annotations

from pathlib import Path

import pytest

from geocalib.errors import OutputError
from geocalib.files import Guard


@pytest.fixture
def photo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    photo = Path("photo.jpg")
    photo.write_bytes(b"pixels")
    Path("soft").symlink_to(photo)
    Path("hard").hardlink_to(photo)
    Path("folder").symlink_to(".")
    return photo


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("name", ["photo.jpg", "./photo.jpg", "soft", "hard", "folder/photo.jpg"])
def test_inputs_stay(photo: Path, name: str, overwrite: bool) -> None:
    for given in (photo, "soft", photo.absolute()):
        with pytest.raises(OutputError, match=f"{Path(name)} is an input and stays as it is; cho"):
            Guard([given], overwrite).check([Path("new"), Path(name)])


def test_inputs_that_are_missing_are_not_made(photo: Path) -> None:
    with pytest.raises(OutputError, match=r"gone\.jpg is an input"):
        Guard(["gone.jpg"]).check([Path("gone.jpg")])


def test_folders_stay(photo: Path) -> None:
    Path("model").mkdir()
    for target in ("model/new.txt", "model/deep/new.txt"):
        with pytest.raises(OutputError, match=r"lies in .*/model/, an input"):
            Guard(["model"], overwrite=True).check([Path(target)])
    Guard(["model"]).check([Path("models.txt")])


def test_what_exists_stays(photo: Path) -> None:
    Path("empty").touch()
    Guard().check([Path("new"), Path("empty"), Path("/dev/null")])
    with pytest.raises(OutputError, match=r"^photo.jpg exists; choose another name or add --over"):
        Guard().check([photo])
    with pytest.raises(OutputError, match=r"^photo.jpg exists and is not from geocalib; choose"):
        Guard().check([photo], own=lambda path: False)
    Guard().check([photo], own=lambda path: path.read_bytes() == b"pixels")
    Guard(overwrite=True).check([photo])
    with pytest.raises(OutputError, match="folder is a folder; choose another name"):
        Guard(overwrite=True).check([Path("folder")])


def test_one_name_for_two_outputs(photo: Path) -> None:
    with pytest.raises(OutputError, match="would be written twice"):
        Guard().check([Path("out"), Path("folder/out")])
