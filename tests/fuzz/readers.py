"""What takes files from users, for one damaged file each: an answer or a ``GeoCalibError``."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fuzz.corpus import (
    CONVERTIBLE,
    LISTS,
    MODEL_BINARY,
    MODEL_TEXT,
    SIZE,
    encoded,
    picture,
    write_folder,
)
from geocalib.errors import GeoCalibError
from geocalib.formats import csv_table, json_lines, opencv, readers
from geocalib.imaging import is_blank, prepare, read_photo
from geocalib.imaging.read import read_header
from geocalib.localize import hloc
from geocalib.localize.colmap_model import ColmapModel, ModelImage, read_cameras, read_model
from geocalib.priors.readings import read_gravity, read_sidecar
from geocalib.result.calibration import Calibration, read_outcome
from geocalib.rig import read_rig
from geocalib.sets.grouping import group_by_file
from geocalib_lab.evaluation.datasets import read_dataset
from geocalib_lab.panoramas.levelness import read_levels

IMAGE = ModelImage("db/1.jpg", 1, np.eye(3), np.zeros(3), np.zeros((4, 2)), np.array([7, -1, 9, 5]))
MODEL = ColmapModel({"db/1.jpg": IMAGE, "db/2.jpg": IMAGE}, {7: np.zeros(3), 9: np.ones(3)})


def _image(data: bytes, folder: Path) -> None:
    file = folder / "photo.jpg"
    file.write_bytes(data)
    photo = read_photo(file)
    prepare(photo)
    is_blank(photo.pixels)
    read_gravity(str(file), photo.metadata, photo.size)
    read_header(file)


def _segment(kind: bytes, data: bytes, folder: Path) -> None:
    """As the first segment of a JPEG file."""
    body = kind + data[:60000]
    jpeg = encoded(picture(), "JPEG")
    segment = b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body
    _image(jpeg[:2] + segment + jpeg[2:], folder)


def _sidecar(data: bytes, folder: Path) -> None:
    (folder / "photo.json").write_bytes(data)
    read_sidecar(str(folder / "photo.json"), 6)


def _answers(data: bytes, folder: Path) -> None:
    file = folder / "answers.jsonl"
    file.write_bytes(data)
    for outcome in json_lines.read(file):
        outcome.to_json()
        if isinstance(outcome, Calibration) and (outcome.width, outcome.height) == SIZE:
            for warp in (outcome.undistort, outcome.upright, outcome.rectify):
                for border in ("keep", "crop"):
                    try:
                        warp(picture(), border)
                    except GeoCalibError:
                        continue


def _convert(name: str) -> Callable[[bytes, Path], None]:
    """As ``geocalib convert`` reads a file of that name; its records are read again."""

    def run(data: bytes, folder: Path) -> None:
        (folder / name).write_bytes(data)
        for outcome in readers.read(folder / name).outcomes:
            read_outcome(json.loads(outcome.to_json()), name)

    return run


def _read_file(name: str, read: Callable[[Path], object]) -> Callable[[bytes, Path], None]:
    def run(data: bytes, folder: Path) -> None:
        (folder / name).write_bytes(data)
        read(folder / name)

    return run


def _truth(data: bytes, folder: Path) -> None:
    (folder / "images").mkdir(exist_ok=True)
    picture().save(folder / "images" / "a.png")
    (folder / "gt.csv").write_bytes(data)
    for sample in read_dataset(folder):
        assert sample.camera is None or len(sample.camera) == 1


def _read_folder(
    files: dict[str, bytes], *readers: Callable[[Path], object]
) -> Callable[[bytes, Path], None]:
    def run(data: bytes, folder: Path) -> None:
        write_folder(folder, files, data)
        for read in readers:
            try:
                read(folder)
            except GeoCalibError:
                continue

    return run


def _lists(data: bytes, folder: Path) -> None:
    write_folder(folder, LISTS, data)
    notes: list[str] = []
    hloc.read_queries(folder / "queries.txt", notes.append)
    hloc.read_pairs(folder / "pairs.txt", notes.append)
    hloc.read_text_matches(folder / "matches.txt", MODEL, notes.append)


def _hdf5(data: bytes, folder: Path) -> None:
    file = folder / "all.h5"
    file.write_bytes(data)
    notes: list[str] = []
    with hloc.open_hdf5(file) as store:
        hloc.find_matches("q/a.jpg", ["db/1.jpg", "db/2.jpg"], MODEL, store, store, notes.append)


READERS: dict[str, Callable[[bytes, Path], None]] = {
    **dict.fromkeys(("JPEG", "PNG", "WebP", "TIFF", "HEIC", "GIF"), _image),
    "EXIF": lambda data, folder: _segment(
        b"" if data[:4] == b"Exif" else b"Exif\0\0", data, folder
    ),
    "XMP": lambda data, folder: _segment(b"http://ns.adobe.com/xap/1.0/\0", data, folder),
    "sidecar": _sidecar,
    "answers": _answers,
    "table": _read_file("answers.csv", csv_table.read),
    "cameras": _read_file("cameras.csv", lambda file: group_by_file(["a.jpg", "b.jpg"], file)),
    "truth": _truth,
    "levels": _read_file("levels.csv", read_levels),
    "OpenCV": _read_file("camera.yaml", opencv.read),
    "rig YAML": _read_file("rig.yaml", read_rig),
    "rig JSON": _read_file("rig.json", read_rig),
    "COLMAP text": _read_folder(MODEL_TEXT, read_cameras, read_model, read_rig),
    "COLMAP binary": _read_folder(MODEL_BINARY, read_cameras, read_model),
    "hloc lists": _lists,
    "HDF5": _hdf5,
    **{name: _convert(CONVERTIBLE[name]) for name in CONVERTIBLE},
}
