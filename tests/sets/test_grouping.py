"""Which pictures share a camera, by their EXIF data or a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from PIL.ExifTags import IFD, Base

from geocalib.errors import FormatError
from geocalib.sets.grouping import group_by_exif, group_by_file

PHONE = {Base.Make: "Maker", Base.Model: "Phone 1"}
LENS = {Base.LensModel: "wide", Base.FocalLength: 4.25, Base.FocalLengthIn35mmFilm: 26}


def photo(
    path: Path, size: tuple[int, int] = (64, 48), body: Any = (), lens: Any = (), turn: int = 1
) -> str:
    exif = Image.Exif()
    exif.update(body)
    exif[Base.Orientation] = turn
    exif.get_ifd(IFD.Exif).update(lens)
    Image.new("RGB", size, "grey").save(path, exif=exif)
    return str(path)


class TestExif:
    def test_cameras_lenses_and_zooms_are_told_apart(self, tmp_path: Path) -> None:
        names = [
            photo(tmp_path / "a.jpg", body=PHONE, lens=LENS),
            photo(tmp_path / "b.jpg", body=PHONE, lens=LENS),
            photo(tmp_path / "c.jpg", body=PHONE | {Base.Model: "Phone 2"}, lens=LENS),
            photo(tmp_path / "d.jpg", body=PHONE, lens=LENS | {Base.LensModel: "tele"}),
            photo(tmp_path / "e.jpg", body=PHONE, lens=LENS | {Base.FocalLength: 8.5}),
            photo(tmp_path / "f.jpg", (80, 48), body=PHONE, lens=LENS),
            photo(tmp_path / "g.jpg", body=PHONE, lens=LENS | {Base.DigitalZoomRatio: 2.0}),
            photo(tmp_path / "h.jpg", body=PHONE, lens=LENS),
        ]
        assert group_by_exif(names) == [0, 0, 1, 2, 3, 4, 5, 0]

    def test_portrait_and_landscape_are_one(self, tmp_path: Path) -> None:
        names = [
            photo(tmp_path / "a.jpg", (64, 48), PHONE),
            photo(tmp_path / "b.jpg", (48, 64), PHONE),
            photo(tmp_path / "c.jpg", (64, 48), PHONE, turn=6),
        ]
        assert group_by_exif(names) == [0, 0, 0]

    def test_without_exif_the_size_tells(self, tmp_path: Path) -> None:
        sizes = [(64, 48), (64, 40), (48, 64)]
        for i, size in enumerate(sizes):
            Image.new("RGB", size).save(tmp_path / f"{i}.png")
        assert group_by_exif([str(tmp_path / f"{i}.png") for i in range(3)]) == [0, 1, 0]

    def test_unreadable_ones_are_alone(self, tmp_path: Path) -> None:
        (tmp_path / "a.jpg").write_bytes(b"")
        names = [str(tmp_path / "a.jpg"), str(tmp_path / "none.jpg"), photo(tmp_path / "b.jpg")]
        assert group_by_exif(names) == [0, 1, 2]

    def test_odd_values_raise_nothing(self, tmp_path: Path) -> None:
        lens = {Base.FocalLength: (0, 0), Base.LensModel: "\0wide\0"}
        assert group_by_exif([photo(tmp_path / "a.jpg", lens=lens)]) == [0]


class TestFile:
    def table(self, tmp_path: Path, text: str) -> Path:
        file = tmp_path / "cameras.csv"
        file.write_text(text)
        return file

    def test_paths_and_names(self, tmp_path: Path) -> None:
        images = ["x/a.jpg", "x/b.jpg", str(tmp_path / "c.jpg"), "y/d.jpg", "y/e.jpg", "y/f.jpg"]
        file = self.table(
            tmp_path,
            "camera,image\nleft,x/a.jpg\nright,b.jpg\nleft,c.jpg\n,d.jpg\nleft,./y/e.jpg\n"
            "left,elsewhere.jpg\n",
        )
        assert group_by_file(images, file) == [0, 1, 0, 2, 0, 3]

    def test_a_name_of_two_pictures_tells_nothing(self, tmp_path: Path) -> None:
        file = self.table(tmp_path, "image,camera\na.jpg,1\nb.jpg,1\n")
        assert group_by_file(["x/a.jpg", "y/a.jpg", "x/b.jpg"], file) == [0, 1, 2]

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("image\na.jpg\n", "has no column camera"),
            ("", "has no column image and camera"),
            ("image,camera\nother.jpg,1\n", "names none of the images"),
            ("image,camera\na.jpg,1\na.jpg,2\n", "line 3: a.jpg has camera 1 already, not 2"),
        ],
    )
    def test_bad_tables(self, tmp_path: Path, text: str, words: str) -> None:
        with pytest.raises(FormatError, match=words):
            group_by_file(["a.jpg"], self.table(tmp_path, text))

    def test_no_table(self, tmp_path: Path) -> None:
        with pytest.raises(FormatError, match="cannot be read"):
            group_by_file(["a.jpg"], tmp_path / "none.csv")
