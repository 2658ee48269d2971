"""Which images paths stand for."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from geocalib.cli import inputs
from geocalib.cli.inputs import chunks, find_images

NAMES = ("10.jpg", "2.JPG", "1.png", "b2/3.webp", "b10/4.tif", "notes.txt", ".hidden.jpg")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    for name in (*NAMES, ".hidden/5.jpg", "1.png.geocalib.png"):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return "photos"


def test_a_folder_gives_its_images_in_natural_order(folder: str) -> None:
    found = find_images([folder + "/"])
    assert found.images == ("photos/1.png", "photos/2.JPG", "photos/10.jpg")
    assert (found.missing, found.problems) == ({}, ())


def test_folders_of_folders_on_request(folder: str) -> None:
    assert find_images([folder], recursive=True).images[3:] == (
        "photos/b2/3.webp",
        "photos/b10/4.tif",
    )


def test_a_link_that_leads_in_a_circle(folder: str) -> None:
    os.symlink("..", "photos/b2/circle", target_is_directory=True)
    assert len(find_images([folder], recursive=True).images) == 5


def test_a_named_file_is_taken_whatever_its_name(folder: str) -> None:
    paths = ["photos/notes.txt", "photos/.hidden.jpg", "photos/1.png.geocalib.png"]
    assert find_images(paths).images == tuple(paths)


def test_each_image_once(folder: str) -> None:
    assert find_images(["./photos/10.jpg", folder, "photos//1.png"]).images == (
        "photos/10.jpg",
        "photos/1.png",
        "photos/2.JPG",
    )
    os.chdir("photos")
    assert find_images([".", "./*.png", "1.png"]).images == ("1.png", "2.JPG", "10.jpg")


@pytest.mark.parametrize(
    ("pattern", "count"),
    [("photos/*", 3), ("photos/*.png", 1), ("photos/[0-9]*.jpg", 1), ("photos/**/*", 5)],
)
def test_patterns_that_the_shell_left_alone(folder: str, pattern: str, count: int) -> None:
    assert len(find_images([pattern]).images) == count


def test_a_file_may_look_like_a_pattern(folder: str) -> None:
    Path("photos/[1].jpg").touch()
    assert find_images(["photos/[1].jpg"]).images == ("photos/[1].jpg",)


def test_what_is_not_there(folder: str) -> None:
    Path("empty").mkdir()
    found = find_images(["empty", "no/*.jpg", "gone.jpg", "photos/1.png"])
    assert found.images == ("gone.jpg", "photos/1.png")
    assert found.missing == {"gone.jpg": "gone.jpg does not exist; check the path"}
    assert found.problems == (
        "empty holds no image; --recursive looks into its folders",
        "no/*.jpg matches no image; check the pattern",
    )
    assert find_images(["empty"], recursive=True).problems == ("empty holds no image",)


def test_a_folder_that_may_not_be_listed(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(inputs.os, "scandir", refuse)
    assert find_images([folder]).problems == (
        "photos cannot be listed (Permission denied); check it",
    )


def test_a_list_on_standard_input(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = b"photos/10.jpg\r\n\nphotos/caf\xe9.jpg\nphotos/b2\n"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(lines)))
    found = find_images(["photos/1.png", "-"])
    stray = os.fsdecode(b"photos/caf\xe9.jpg")
    assert found.images == ("photos/1.png", "photos/10.jpg", stray, "photos/b2/3.webp")
    assert list(found.missing) == [stray]


def test_an_empty_list_on_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"\n")))
    assert find_images(["-"]).problems == (
        "the list on standard input is empty; give it a path per line",
    )


def test_chunks() -> None:
    assert [list(chunk) for chunk in chunks("abcde", 2)] == [["a", "b"], ["c", "d"], ["e"]]
    assert list(chunks("", 2)) == []
