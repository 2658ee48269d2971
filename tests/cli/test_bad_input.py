"""Whatever lies in a folder: one line for what is broken, answers for all else."""

from __future__ import annotations

import builtins
import io
import json
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from fake_calibrator import Run, picture


def jpeg(**options: Any) -> bytes:
    file = io.BytesIO()
    picture(320, 240).save(file, "JPEG", **options)
    return file.getvalue()


def png_header(width: int, height: int) -> bytes:
    """A PNG of that size, if one believes its header; there is nothing behind it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


def plain(colour: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (64, 48), colour).save(file, "PNG")
    return file.getvalue()


def one_pixel() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (1, 1)).save(file, "PNG")
    return file.getvalue()


def animation() -> bytes:
    file = io.BytesIO()
    frames = [picture(seed=seed) for seed in range(3)]
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    return file.getvalue()


BROKEN: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty.jpg": (bytes, "is empty"),
    "short.jpg": (lambda: jpeg()[:2000], "is damaged or cut short"),
    "text.jpg": (lambda: b"dear diary", "is no image that can be read"),
    "pixel.png": (one_pixel, "is 1x1 pixels"),
    "bomb.png": (lambda: png_header(100000, 100000), "a decompression bomb"),
}
"""Files without an answer, and a part of the line that says why."""

DOUBTFUL: dict[str, tuple[Callable[[], bytes], str]] = {
    "black.png": (lambda: plain("black"), "next to nothing"),
    "white.png": (lambda: plain("white"), "next to nothing"),
    "moving.gif": (animation, "the first was used"),
    "torn_exif.jpg": (lambda: jpeg(exif=b"Exif\0\0torn"), "EXIF data are damaged"),
}
"""Files with an answer to doubt, and a part of the warning."""


def test_a_folder_with_everything(run: Run, photos: list[str]) -> None:
    for name, (content, _) in {**BROKEN, **DOUBTFUL}.items():
        Path("photos", name).write_bytes(content())
    result = run("calibrate", "photos", "--json")
    records = {
        Path(record["image"]).name: record for record in map(json.loads, result.stdout.splitlines())
    }
    assert result.exit_code == 1
    assert len(records) == len(photos) + len(BROKEN) + len(DOUBTFUL)
    for name, (_, reason) in BROKEN.items():
        assert reason in records[name]["error"]
        assert records[name]["fx"] is None
        lines = [line for line in result.stderr.splitlines() if f"photos/{name}" in line]
        assert len(lines) == 1
        assert reason in lines[0]
    for name, (_, doubt) in DOUBTFUL.items():
        assert records[name]["error"] is None
        assert doubt in " ".join(records[name]["warnings"])
    assert all(records[Path(photo).name]["warnings"] == [] for photo in photos)
    assert len(result.stderr.splitlines()) == len(BROKEN) + 1


@pytest.mark.parametrize("name", BROKEN)
def test_alone(run: Run, name: str) -> None:
    content, reason = BROKEN[name]
    Path(name).write_bytes(content())
    result = run("calibrate", name)
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: {name} ")
    assert reason in line
    assert "failed" in result.stdout


@pytest.mark.parametrize("name", DOUBTFUL)
def test_doubts_are_in_the_table(run: Run, name: str) -> None:
    content, doubt = DOUBTFUL[name]
    Path(name).write_bytes(content())
    result = run("calibrate", name)
    assert (result.exit_code, result.stderr) == (0, "")
    assert doubt in result.stdout


def test_a_file_that_may_not_be_read(
    run: Run, photos: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opens = builtins.open

    def refuse(file: Any, *arguments: Any, **options: Any) -> Any:
        if file == "photos/2.png":
            raise PermissionError(13, "Permission denied", file)
        return opens(file, *arguments, **options)

    monkeypatch.setattr(builtins, "open", refuse)
    result = run("calibrate", "photos", "--json")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "error: photos/2.png may not be read; check its permissions",
        "9 images calibrated, 1 failed",
    ]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("folder", "error: folder holds no image; --recursive looks into its folders"),
        ("*.jpg", "error: *.jpg matches no image; check the pattern"),
    ],
)
def test_nothing_to_do(run: Run, path: str, line: str) -> None:
    Path("folder").mkdir()
    for command in (("calibrate",), ("upright", "-o", "out"), ("show",)):
        result = run(*command, path)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.splitlines() == [line]


def test_links_and_pipes_are_failures_among_the_answers(run: Run, photos: list[str]) -> None:
    os.symlink("11.png", "photos/11.png")
    os.symlink("gone.png", "photos/12.png")
    os.mkfifo("photos/13.png")
    result = run("calibrate", "photos", "--json")
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 1
    assert [record["image"] for record in records[:10]] == photos
    assert all(record["error"] is None for record in records[:10])
    assert [record["image"] for record in records[10:]] == [f"photos/{i}.png" for i in (11, 12, 13)]
    assert all(record["error"] for record in records[10:])
    assert result.stderr.splitlines() == [
        *(f"error: {record['error']}" for record in records[10:]),
        "10 images calibrated, 3 failed",
    ]


def test_raw_files_beside_others(run: Run, photos: list[str]) -> None:
    Path("photos/1.nef").touch()
    result = run("calibrate", "photos", "--json")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 10
    assert result.stderr.splitlines()[0] == (
        "warning: photos: 1 RAW file passed over; RAW is not read: export it as JPEG or TIFF"
    )
    named = run("calibrate", "photos/1.nef")
    assert named.exit_code == 1
    assert named.stderr.startswith("error: photos/1.nef holds RAW data; RAW is not read: export")


def test_an_empty_path(run: Run, photos: list[str]) -> None:
    os.chdir("photos")
    for command in (("calibrate",), ("upright", "-o", "out"), ("show",)):
        result = run(*command, "")
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == "error: a path is empty; name a photo, or . for this folder\n"


def test_a_missing_path_alone(run: Run) -> None:
    for command in (("calibrate", "--json"), ("upright", "-o", "out"), ("show",)):
        result = run(*command, "gone.jpg")
        assert result.exit_code == 1
        assert result.stderr.splitlines()[0] == "error: gone.jpg does not exist; check the path"


def test_an_output_that_cannot_be_written(run: Run, photos: list[str]) -> None:
    Path("file").touch()
    result = run("calibrate", "photos", "--json", "-o", "file/out.jsonl")
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("error: file")


def test_names_that_terminals_would_obey(run: Run) -> None:
    picture().save("a\nb\x1b[31m[bold].png")
    result = run("calibrate", ".")
    assert result.exit_code == 0
    assert r"a\nb\x1b[31m[bold].png" in result.stdout
