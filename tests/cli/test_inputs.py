"""Which images paths stand for."""

from __future__ import annotations

import io
import os
import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from geocalib.cli import inputs
from geocalib.cli.inputs import find_images

URL = "https://example.org/photos/a.jpg?size=large"

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


def test_a_subfolder_that_may_not_be_listed_costs_no_other(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = os.scandir

    def refuse(path: str) -> Any:
        if path == "photos/b2":
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(inputs.os, "scandir", refuse)
    found = find_images([folder], recursive=True)
    assert found.images == ("photos/1.png", "photos/2.JPG", "photos/10.jpg", "photos/b10/4.tif")
    assert found.problems == ("photos/b2 cannot be listed (Permission denied); check it",)


@pytest.mark.parametrize("path", ["photos", "photos/*"])
def test_links_that_lead_nowhere_are_told(folder: str, path: str) -> None:
    os.symlink("3.jpg", "photos/3.jpg")
    os.symlink("gone.jpg", "photos/4.jpg")
    os.symlink("1.png", "photos/5.jpg")
    found = find_images([path])
    assert found.images == tuple(
        f"photos/{name}" for name in ("1.png", "2.JPG", "3.jpg", "4.jpg", "5.jpg", "10.jpg")
    )
    assert found.missing == {
        "photos/3.jpg": "photos/3.jpg is a link that leads in a circle; remove it",
        "photos/4.jpg": "photos/4.jpg is a link to gone.jpg, which does not exist; mend the link",
    }
    assert found.problems == ()


def test_what_is_no_file_is_told(folder: str) -> None:
    os.mkfifo("photos/3.jpg")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("photos/4.jpg")
        found = find_images([folder, "/dev/null"])
    assert list(found.missing) == ["photos/3.jpg", "photos/4.jpg", "/dev/null"]
    assert all("is a pipe, a socket or a device" in why for why in found.missing.values())


def test_a_folder_that_is_called_like_an_image(folder: str) -> None:
    Path("photos/3.jpg").mkdir()
    assert find_images([folder]).images == find_images(["photos/*"]).images
    assert "photos/3.jpg" not in find_images([folder]).images


def test_circles_of_links_below_a_pattern(folder: str) -> None:
    for name in ("one", "two", "three"):
        os.symlink("..", f"photos/b2/{name}", target_is_directory=True)
    assert len(find_images(["photos/**/*"]).images) == 5
    assert len(find_images(["photos/**"]).images) == 5


def test_patterns_from_the_root_and_of_hidden_files(folder: str) -> None:
    whole = os.path.abspath("photos")
    assert find_images([f"{whole}/*.png"]).images == (f"{whole}/1.png",)
    assert find_images(["photos/.hidden/*.jpg"]).images == ("photos/.hidden/5.jpg",)


def test_raw_files_are_told(folder: str) -> None:
    Path("raw").mkdir()
    for name in ("a.CR2", "b.nef", "c.dng"):
        Path("raw", name).touch()
    advice = "RAW is not read: export it as JPEG or TIFF"
    for path, what in (("raw", "holds no image"), ("raw/*", "matches no image")):
        found = find_images([path])
        assert found.images == found.notes == ()
        assert found.problems == (f"{path} {what} but 3 RAW files; {advice}",)
    Path("photos/b2/d.arw").touch()
    for path in ("photos", "photos/**/*"):
        found = find_images([path], recursive=True)
        assert (len(found.images), found.problems) == (5, ())
        assert found.notes == (f"{path}: 1 RAW file passed over; {advice}",)
    assert find_images([folder]).notes == ()


def test_an_empty_path_is_not_this_folder(folder: str) -> None:
    found = find_images(["", "photos/1.png"])
    assert found.images == ("photos/1.png",)
    assert found.problems == ("a path is empty; name a photo, or . for this folder",)


def test_standard_input_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert find_images(["-"]).problems == ("standard input is closed; give it a list of paths",)


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


def test_an_image_on_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    content = (Path(__file__).parents[2] / "examples" / "town.jpg").read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    (image,) = find_images(["-"]).images
    assert Path(image).read_bytes() == content


def test_nothing_is_downloaded(folder: str) -> None:
    found = find_images([URL, "photos/1.png"])
    assert found.images == (URL, "photos/1.png")
    assert found.missing == {URL: f"{URL} is on the web, and nothing is downloaded: fetch it first"}
