"""Good files of every kind that is read, small, to be damaged by the tests."""

from __future__ import annotations

import io
import json
import struct
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from PIL.ExifTags import IFD, Base

from calibrations import FAILURE, one
from geocalib.formats import (
    colmap,
    colmap_database,
    csv_table,
    fspy,
    hugin,
    json_lines,
    nerfstudio,
    opencv,
    ros,
)
from maker_notes import apple
from priors.drones import packet

SIZE = (72, 56)

OLDER = Path(__file__).parents[1] / "formats" / "older"
"""Files of an earlier version."""


@cache
def picture() -> Image.Image:
    """Something to see."""
    rows, columns = np.mgrid[: SIZE[1], : SIZE[0]]
    waves = [128 + 100 * np.sin(columns / (3 + i) + rows / (5 + i)) for i in range(3)]
    return Image.fromarray(np.stack(waves, -1).astype(np.uint8))


@cache
def exif() -> bytes:
    """As phones write it."""
    tags = Image.Exif()
    tags[Base.Make], tags[Base.Model], tags[Base.Orientation] = "Canon", "Canon EOS 5D", 6
    inner = tags.get_ifd(IFD.Exif)
    inner[Base.FocalLength], inner[Base.FocalLengthIn35mmFilm] = 24.0, 28
    inner[Base.FocalPlaneXResolution], inner[Base.FocalPlaneResolutionUnit] = 900.0, 2
    inner[Base.ExifImageWidth], inner[Base.ExifImageHeight] = SIZE
    return tags.tobytes()


@cache
def phone_exif() -> bytes:
    """With what a phone notes of how it was held."""
    tags = Image.Exif()
    tags[Base.Make], tags[Base.Model], tags[Base.Orientation] = "Apple", "iPhone 13", 6
    tags.get_ifd(IFD.Exif)[Base.MakerNote] = apple((-0.06, -0.46, -0.89))
    return tags.tobytes()


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def _jpeg() -> list[bytes]:
    every = {"exif": exif(), "comment": b"a comment"}
    return [
        encoded(picture(), "JPEG", **every),
        encoded(picture(), "JPEG", progressive=True, subsampling=0),
        encoded(picture().convert("L"), "JPEG"),
        encoded(picture().convert("CMYK"), "JPEG"),
        encoded(picture(), "MPO", save_all=True, append_images=[picture()]),
    ]


def _png() -> list[bytes]:
    deep = np.asarray(picture()).astype(np.uint16)[..., 0] * 16
    return [
        encoded(picture(), "PNG", exif=exif()),
        encoded(picture().convert("P"), "PNG", transparency=3),
        encoded(picture().convert("RGBA"), "PNG"),
        encoded(picture().convert("1"), "PNG"),
        encoded(Image.fromarray(deep), "PNG"),
        encoded(picture(), "PNG", save_all=True, append_images=[picture().rotate(9)]),
    ]


def _webp() -> list[bytes]:
    return [
        encoded(picture(), "WEBP"),
        encoded(picture(), "WEBP", lossless=True, exif=exif()),
        encoded(picture().convert("RGBA"), "WEBP", save_all=True, append_images=[picture()]),
    ]


def _tiff() -> list[bytes]:
    deep = np.asarray(picture()).astype(np.uint16)[..., 0] * 16
    light = np.asarray(picture()).astype(np.float32)[..., 0]
    kinds = [
        encoded(picture(), "TIFF", compression=name)
        for name in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg")
    ]
    return [
        *kinds,
        encoded(picture().convert("1"), "TIFF", compression="group4"),
        encoded(picture().convert("P"), "TIFF"),
        encoded(Image.fromarray(deep), "TIFF", exif=exif()),
        encoded(Image.fromarray(light), "TIFF", compression="tiff_lzw"),
        encoded(picture(), "TIFF", big_tiff=True),
        deep_tiff(),
    ]


def deep_tiff(limit: int = 4095) -> bytes:
    """Of three colours, 16 bits each, of which fewer are used."""
    import cv2

    values = np.asarray(picture()).astype(np.uint16) * limit // 255
    data: bytes = cv2.imencode(".tif", values)[1].tobytes()
    return data


def _heic() -> list[bytes]:
    import pillow_heif

    file = io.BytesIO()
    pillow_heif.from_pillow(picture()).save(file, quality=60, exif=phone_exif())
    return [file.getvalue(), encoded(picture(), "AVIF", exif=exif())]


def _gif() -> list[bytes]:
    frames = [picture().rotate(angle) for angle in (5, 10)]
    return [
        encoded(picture(), "GIF"),
        encoded(picture(), "GIF", save_all=True, append_images=frames, transparency=0),
    ]


def _sidecar() -> list[bytes]:
    pose = [[1, 0, 0, 0.5], [0, 0.8, -0.6, 1], [0, 0.6, 0.8, 2], [0, 0, 0, 1]]
    polycam = {f"t_{r}{c}": pose[r][c] for r in range(3) for c in range(4)}
    values = [
        {"gravity": [0.1, 0.98, -0.2], "frame": "camera", "sigma_deg": 2},
        {"gravity": [0, -1, 0], "frame": "device", "orientation": 6},
        {"transform": pose, "order": "rows"},
        {"cameraPoseARFrame": [number for row in pose for number in row]},
        polycam,
    ]
    return [json.dumps(value).encode() for value in values]


def _answers() -> list[bytes]:
    size = {"size": SIZE, "c": (SIZE[0] / 2, SIZE[1] / 2)}
    models = [one(name, f=40.0, **size) for name in ("pinhole", "radial", "eucm", "double_sphere")]
    older = (OLDER / "calibrations.jsonl").read_bytes()
    return [*(json_lines.dumps([model, FAILURE]).encode() for model in models), older]


def _table() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        (file,) = csv_table.write([one("radial"), one("kannala_brandt"), FAILURE], folder)
        return [file.read_bytes(), (OLDER / "calibrations.csv").read_bytes()]


CAMERAS = b"image,camera\na.jpg,one\nb.jpg,two\nfolder/c.jpg,\n"
TRUTH = (
    b"image,width,height,roll_deg,pitch_deg,vfov_deg,k1,model\na.png,72,56,1.5,-2,60,0.1,radial\n"
)
LEVELS = (
    b"file,tilt_deg,sigma_deg,rotation_x_deg,rotation_z_deg,spread_deg,views,verdict\n"
    b"a.webp,1.5,0.1,1.0,1.1,2.0,24,tilted\n"
)


def _opencv() -> list[bytes]:
    return [opencv.dumps(one(name)).encode() for name in ("radial", "kannala_brandt")]


RIG = b"""cameras:
  left: {yaw_deg: -30, pitch_deg: 5}
  right: {camera_from_rig: [0.966, 0, -0.259, 0], images: right_*.png, intrinsics: left}
"""
CAMCHAIN = b"""%YAML:1.0
cam0: {camera_model: pinhole, intrinsics: [461.6, 460.1, 362.6, 246.0]}
cam1:
  T_cn_cnm1: [[0, 0, -1, -0.11], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]]
"""
RIG_CONFIG = json.dumps(
    [
        {
            "cameras": [
                {"image_prefix": "left/", "ref_sensor": True},
                {"image_prefix": "right/", "cam_from_rig_rotation": [0.9, 0.1, 0.2, 0.3]},
            ]
        }
    ]
).encode()

MODEL_TEXT = {
    "cameras.txt": b"# comment\n1 PINHOLE 1000 800 810.5 800 500 400\n"
    b"2 SIMPLE_RADIAL 640 480 500 320 240 -0.1\n",
    "images.txt": b"3 0.5 0.5 -0.5 0.5 1.5 -2 3.25 1 left/a.jpg\n10.5 20.25 7 30 40 -1 50 60 9\n"
    b"8 1 0 0 0 0 0 0 2 right/a.jpg\n\n",
    "points3D.txt": b"7 1.5 -2.25 3 10 20 30 0.5 3 0\n9 1e3 0 -4 1 2 3 0.25 3 2\n",
    "rigs.txt": b"1 2 CAMERA 1 CAMERA 2 1 0.92 0.1 0.2 -0.3 1 2 3\n",
}

MODEL_BINARY = {
    "cameras.bin": struct.pack("<QIiQQ4d", 1, 1, 1, 1000, 800, 810.5, 800, 500, 400),
    "images.bin": struct.pack("<QI7dI", 1, 3, 0.5, 0.5, -0.5, 0.5, 1.5, -2, 3.25, 1)
    + b"folder/a.jpg\0"
    + struct.pack("<Qddqddq", 2, 10.5, 20.25, 7, 30, 40, -1),
    "points3D.bin": struct.pack("<QQdddBBBdQII", 1, 7, 1.5, -2.25, 3, 10, 20, 30, 0.5, 1, 3, 0),
}

LISTS = {
    "queries.txt": b"q/a.jpg SIMPLE_RADIAL 640 480 500 320 240 -0.1\nq/b.jpg\n",
    "pairs.txt": b"q/a.jpg db/1.jpg\nq/a.jpg db/2.jpg\n",
    "matches.txt": b"q/a.jpg 10.5 20.5 7\nq/a.jpg 30 40 9\n",
}


def _hdf5() -> list[bytes]:
    import h5py

    files = []
    for compression in (None, "gzip"):
        file = io.BytesIO()
        with h5py.File(file, "w") as store:
            keypoints = np.array([[0, 0], [10, 20], [30.5, 40]], np.float32)
            store.create_dataset("q/a.jpg/keypoints", data=keypoints, compression=compression)
            table = np.array([-1, 0, 2])
            store.create_dataset("q-a.jpg/db-1.jpg/matches0", data=table, compression=compression)
        files.append(file.getvalue())
    return files


CONVERTIBLE = {
    "convert JSON": "answers.jsonl",
    "convert CSV": "answers.csv",
    "convert COLMAP text": "cameras.txt",
    "convert COLMAP binary": "cameras.bin",
    "convert COLMAP database": "database.db",
    "convert OpenCV": "camera.yaml",
    "convert nerfstudio": "transforms.json",
    "convert fSpy": "photo.jpg.fspy",
    "convert Hugin": "photo.jpg.pto",
}
"""Readers of what ``geocalib convert`` reads, and the names of their files."""


def _convertible() -> dict[str, list[bytes]]:
    cameras = [one("radial", image="a.jpg"), one("radial", image="b.jpg", f=600.0)]
    round_ones = [one("kannala_brandt", image="a.jpg")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        picture().save(folder / "photo.jpg")
        pinhole = one("pinhole", size=SIZE, image=str(folder / "photo.jpg"))
        (project,) = fspy.write([pinhole], folder)
        fspy_file = project.read_bytes()
    found = {
        "convert JSON": _answers(),
        "convert CSV": _table(),
        "convert COLMAP text": [colmap.dumps(cameras).encode(), MODEL_TEXT["cameras.txt"]],
        "convert COLMAP binary": [MODEL_BINARY["cameras.bin"]],
        "convert COLMAP database": [colmap_database.dumps(cameras)],
        "convert OpenCV": [*_opencv(), ros.dumps(cameras[0]).encode()],
        "convert nerfstudio": [nerfstudio.dumps(c).encode() for c in (cameras, round_ones)],
        "convert fSpy": [fspy_file],
        "convert Hugin": [hugin.dumps(c).encode() for c in (cameras[0], round_ones[0])],
    }
    assert found.keys() == CONVERTIBLE.keys()
    return found


@cache
def corpus() -> dict[str, list[bytes]]:
    """Files by the reader of ``readers.READERS`` that takes them. Those of a folder are joined
    as ``joined`` has it."""
    return {
        "JPEG": _jpeg(),
        "PNG": _png(),
        "WebP": _webp(),
        "TIFF": _tiff(),
        "HEIC": _heic(),
        "GIF": _gif(),
        "EXIF": [exif(), phone_exif()],
        "XMP": [packet(), packet("12.5", "-30", "x")],
        "sidecar": _sidecar(),
        "answers": _answers(),
        "table": _table(),
        "cameras": [CAMERAS],
        "truth": [TRUTH],
        "levels": [LEVELS],
        "OpenCV": _opencv(),
        "rig YAML": [RIG, CAMCHAIN],
        "rig JSON": [RIG_CONFIG],
        "COLMAP text": [joined(name, data) for name, data in MODEL_TEXT.items()],
        "COLMAP binary": [joined(name, data) for name, data in MODEL_BINARY.items()],
        "hloc lists": [joined(name, data) for name, data in LISTS.items()],
        "HDF5": _hdf5(),
        **_convertible(),
    }


SEPARATOR = b"\x1e"


def joined(name: str, data: bytes) -> bytes:
    """A file of a folder with its name before it."""
    return name.encode() + SEPARATOR + data


def write_folder(folder: Path, files: dict[str, bytes], damaged: bytes) -> None:
    """All files, one of them as it was damaged."""
    name, _, data = damaged.partition(SEPARATOR)
    for key, good in files.items():
        (folder / key).write_bytes(data if key.encode() == name else good)
