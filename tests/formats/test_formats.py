"""What holds for every format: where files go, and what becomes of failures."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from calibrations import FAILURE, one, several
from geocalib.errors import FormatError
from geocalib.formats import FORMATS, opencv

SINGLE = {
    "json": "calibrations.jsonl",
    "csv": "calibrations.csv",
    "colmap": "cameras.txt",
    "colmap-database": "database.db",
    "nerfstudio": "transforms.json",
}
"""Formats of one file, and its name."""

ONE_EACH = ("opencv", "ros")

TESTED_BY_THEIR_PROGRAMS = (
    *("blender", "fspy", "gltf", "usd", "nuke", "maya"),
    *("hugin", "lensfun", "exif", "xmp", "realityscan"),
)
"""Formats with tests of their own."""


def test_all_formats_are_known() -> None:
    assert {*SINGLE, *ONE_EACH, *TESTED_BY_THEIR_PROGRAMS} == set(FORMATS)


@pytest.mark.parametrize("name", [*SINGLE, *ONE_EACH])
def test_a_path_with_a_suffix_is_the_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / "new" / "camera.out"
    assert FORMATS[name]([one()], path) == [path]
    content = path.read_bytes()
    assert b"500." in content or struct.pack("<d", 500) in content


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("folder", ["new/deep", "existing.folder"])
def test_one_file_in_a_folder(tmp_path: Path, name: str, folder: str) -> None:
    (tmp_path / "existing.folder").mkdir()
    files = FORMATS[name]([*several(), FAILURE], str(tmp_path / folder))
    assert files == [tmp_path / folder / SINGLE[name]]
    assert files[0].is_file()


@pytest.mark.parametrize("name", ONE_EACH)
def test_a_file_per_image_in_a_folder(tmp_path: Path, name: str) -> None:
    files = FORMATS[name]([*several(), FAILURE], tmp_path)
    expected = ["left/a.jpg.yaml", "left/b.jpg.yaml", "right/a.jpg.yaml"]
    assert [file.relative_to(tmp_path).as_posix() for file in files] == expected
    assert all(file.is_file() for file in files)
    assert "image_width: 480" in files[2].read_text()


@pytest.mark.parametrize("name", ONE_EACH)
def test_images_without_a_path_are_numbered(tmp_path: Path, name: str) -> None:
    files = FORMATS[name]([one(image=None), one(image=None)], tmp_path)
    assert [file.name for file in files] == ["image_1.yaml", "image_2.yaml"]


@pytest.mark.parametrize("name", ONE_EACH)
def test_several_cameras_do_not_share_a_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(FormatError, match=r"a\.jpg and .*b\.jpg would both be .*c\.yaml; .*folder"):
        FORMATS[name](several(), tmp_path / "c.yaml")
    with pytest.raises(FormatError, match=r"photo\.jpg would both .* each image once"):
        FORMATS[name]([one(), one()], tmp_path)


@pytest.mark.parametrize("name", sorted({*SINGLE, *ONE_EACH} - {"json", "csv"}))
def test_nothing_is_written_where_a_camera_cannot_be(tmp_path: Path, name: str) -> None:
    lens = "double_sphere" if name.startswith("colmap") else "division"
    images = [one(image="a.jpg"), one(lens, image="b.jpg")]
    with pytest.raises(FormatError, match=rf"b\.jpg: .* no counterpart of {lens}"):
        FORMATS[name](images, tmp_path / "out")
    with pytest.raises(FormatError, match="no camera to write"):
        FORMATS[name]([FAILURE], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_file_names_of_any_bytes(tmp_path: Path) -> None:
    image = b"caf\xe9.jpg".decode("utf-8", "surrogateescape")
    for name in ("colmap", "nerfstudio", *ONE_EACH):
        FORMATS[name]([one(image=image)], tmp_path / name)
    assert b"# 1 caf\xe9.jpg" in (tmp_path / "colmap" / "cameras.txt").read_bytes()
    assert opencv.read(tmp_path / "opencv" / f"{image}.yaml").f.item() == 500


def test_the_page_names_every_format() -> None:
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    for name in (*FORMATS, *SINGLE.values()):
        assert f"`{name}`" in page
