"""Files that once did more harm than they should, and bombs: small files that claim to be large."""

from __future__ import annotations

import json
import struct
import zlib

import pytest

from fuzz.corpus import (
    MODEL_BINARY,
    MODEL_TEXT,
    corpus,
    encoded,
    exif,
    joined,
    picture,
)
from fuzz.watched import Watched


def png(width: int, height: int, *chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG with that size in its header, and more chunks before its end."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    every = [(b"IHDR", header), *chunks, (b"IDAT", zlib.compress(bytes(999))), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in every
    )


def long_chunk() -> bytes:
    """A PNG whose pixels are there, in a chunk that claims two gigabytes."""
    good = encoded(picture(), "PNG")
    at = good.index(b"IDAT")
    return good[: at - 4] + b"\x7f\xff\xff\xff" + good[at:]


def webp(kind: bytes, side: int) -> bytes:
    """A WebP file that states a size."""
    if kind == b"VP8X":
        body = bytes(4) + 2 * (side - 1).to_bytes(3, "little")
    elif kind == b"VP8L":
        body = b"\x2f" + ((side - 1) | (side - 1) << 14).to_bytes(4, "little")
    else:
        body = b"\x10\x02\x00\x9d\x01\x2a" + 2 * side.to_bytes(2, "little")
    content = b"WEBP" + kind + struct.pack("<I", len(body)) + body + bytes(40)
    return b"RIFF" + struct.pack("<I", len(content)) + content


def tiff(**tags: int) -> bytes:
    """A TIFF file with other values in its tags, by their numbers as t256."""
    good = bytearray(encoded(picture(), "TIFF", compression="tiff_lzw"))
    (start,) = struct.unpack_from("<I", good, 4)
    (count,) = struct.unpack_from("<H", good, start)
    for i in range(count):
        at = start + 2 + 12 * i
        (tag,) = struct.unpack_from("<H", good, at)
        if (value := tags.get(f"t{tag}")) is not None:
            struct.pack_into("<HII", good, at + 2, 4, 1, value)
    return bytes(good)


def jpeg_of(side: int, **options: object) -> bytes:
    """A JPEG that states another size than it has."""
    good = encoded(picture(), "JPEG", **options)
    mark = good.index(b"\xff\xc2" if options.get("progressive") else b"\xff\xc0")
    return good[: mark + 5] + struct.pack(">HH", side, side) + good[mark + 9 :]


def gif_of(side: int) -> bytes:
    good = bytearray(encoded(picture(), "GIF"))
    struct.pack_into("<HH", good, 6, side, side)
    frame = good.index(b"\x2c", 13 + 3 * 256)
    struct.pack_into("<HH", good, frame + 5, side, side)
    return bytes(good)


def heic_of(side: int) -> bytes:
    good = corpus()["HEIC"][0]
    at = good.index(b"ispe") + 8
    return good[:at] + struct.pack(">II", side, side) + good[at + 8 :]


def answer(**changes: object) -> bytes:
    """A line of answers with other values."""
    record = json.loads(corpus()["answers"][0].splitlines()[0])
    return json.dumps(record | changes).encode() + b"\n"


def aliases(depth: int) -> str:
    """YAML that grows by ten with each line."""
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, depth)]
    return "\n".join(lines)


def cut_gif() -> bytes:
    """Of two pictures, the second without its end."""
    data = encoded(picture(), "GIF", save_all=True, append_images=[picture().rotate(9)])
    return data[: data.rindex(b"\x21\xf9\x04") + 5]


BOMBS: dict[str, tuple[str, bytes]] = {
    "PNG of 50000": ("PNG", png(50000, 50000)),
    "PNG of 14000 in a few bytes": ("PNG", png(14000, 14000)),
    "PNG of 4 billion": ("PNG", png(0xFFFFFFFF, 0xFFFFFFFF)),
    "PNG chunk": ("PNG", long_chunk()),
    "WebP canvas": ("WebP", webp(b"VP8X", 1 << 24)),
    "WebP lossless": ("WebP", webp(b"VP8L", 16383)),
    "WebP lossy": ("WebP", webp(b"VP8 ", 16383)),
    "JPEG": ("JPEG", jpeg_of(65500)),
    "JPEG of 14000": ("JPEG", jpeg_of(14000)),
    "JPEG in passes": ("JPEG", jpeg_of(5700, progressive=True, subsampling=0)),
    "GIF": ("GIF", gif_of(65535)),
    "GIF of 5700": ("GIF", gif_of(5700)),
    "HEIC": ("HEIC", heic_of(65535)),
    "HEIC of 5700": ("HEIC", heic_of(5700)),
    "TIFF": ("TIFF", tiff(t256=65535, t257=65535)),
    "TIFF of 5700": ("TIFF", tiff(t256=5700, t257=5700)),
    "TIFF strips": ("TIFF", tiff(t278=0x7FFFFFFF)),
    "TIFF strip bytes": ("TIFF", tiff(t279=0x7FFFFFFF)),
    "TIFF samples": ("TIFF", tiff(t277=65535)),
    "YAML aliases": ("rig YAML", f"cameras:\n  a: [x]\n{aliases(12)}".encode()),
    "YAML aliases as a camera": (
        "rig YAML",
        f"{aliases(12)}\ncameras:\n  left: *a11\n".encode(),
    ),
    "YAML aliases as a value": (
        "rig YAML",
        f"{aliases(12)}\ncameras:\n  left: {{yaw_deg: *a11}}\n".encode(),
    ),
    "YAML aliases as a name": (
        "rig YAML",
        f"{aliases(12)}\ncameras:\n  left: {{images: *a11}}\n".encode(),
    ),
    "YAML aliases as a rotation": (
        "rig YAML",
        f"{aliases(12)}\ncameras:\n  left: {{camera_from_rig: *a11}}\n".encode(),
    ),
    "YAML that holds itself": ("rig YAML", b"cameras:\n  left: &a [*a]\n"),
    "YAML depth": ("rig YAML", b"[" * 100_000),
    "JSON depth": ("rig JSON", b"[" * 100_000),
    "JSON depth beside a photo": ("sidecar", b"[" * 100_000),
    "JSON depth of answers": ("answers", b'{"schema": ' + b"[" * 100_000 + b"\n"),
    "XMP entities": ("XMP", b'<!DOCTYPE a [<!ENTITY b "' + b"c" * 1000 + b'">]><a>&b;&b;</a>'),
    "a CSV cell": ("table", corpus()["table"][0].split(b"\n")[0] + b"\n" + b"a" * 200_000),
    "an empty HDF5 dataset": ("HDF5", b""),
    "COLMAP keypoints": (
        "COLMAP binary",
        joined("images.bin", MODEL_BINARY["images.bin"].replace(struct.pack("<Q", 2), b"\xff" * 8)),
    ),
}

CASES: dict[str, tuple[str, bytes]] = {
    "a GIF whose second picture is cut": ("GIF", cut_gif()),
    "a TIFF that libtiff has words for": ("TIFF", corpus()["TIFF"][1][:400]),
    "EXIF with a count beyond its end": (
        "EXIF",
        exif().replace(b"\x0f\x01\x02\x00", b"\x0f\x01\x02\xff"),
    ),
    "a focal length of next to nothing": ("answers", answer(fx=1e-300, fy=1e-300)),
    "a focal length that a picture shrinks to a point by": ("answers", answer(fx=1e-3, fy=1e-3)),
    "a focal length without end": ("answers", answer(fx=1e300, fy=1e300)),
    "a principal point far away": ("answers", answer(cx=1e300, cy=-1e300)),
    "whole numbers longer than a float": ("answers", answer(cx=10**400, fx=10**400)),
    "a width longer than a float": ("answers", answer(width=10**400)),
    "gravity longer than a float": ("answers", answer(gravity=[10**400, 0, 0])),
    "a height of a hundred digits, which ended OpenCV's own parser": (
        "OpenCV",
        corpus()["OpenCV"][0].replace(b"image_height: 480", b"image_height: 480" + b"9" * 89),
    ),
    "columns with a line break in them": ("table", b'image,"wi\ndth"\n'),
    "a document of OpenCV that is no mapping": (
        "OpenCV",
        corpus()["OpenCV"][0].replace(b"---", b"-\0-"),
    ),
    "a matrix of fewer numbers": (
        "OpenCV",
        corpus()["OpenCV"][0].replace(b"rows: 3", b"rows: 4", 1),
    ),
    "a 3D point beyond 64 bits": (
        "COLMAP text",
        joined("images.txt", MODEL_TEXT["images.txt"].replace(b"60 9", b"60 " + b"9" * 30)),
    ),
    "a quaternion of next to nothing": (
        "COLMAP text",
        joined(
            "images.txt",
            MODEL_TEXT["images.txt"].replace(b"0.5 0.5 -0.5 0.5", b"1e-200 0 0 1e-300"),
        ),
    ),
    "a quaternion without end": (
        "COLMAP text",
        joined("images.txt", MODEL_TEXT["images.txt"].replace(b"0.5 0.5", b"1e300 1e300", 1)),
    ),
    "a rotation without end": (
        "rig YAML",
        b"cameras: {a: {camera_from_rig: [[1.0e+300, 0, 0], [0, 1, 0], [0, 0, 1]]}}",
    ),
    "a quaternion of a rig without end": (
        "rig YAML",
        b"cameras: {a: {camera_from_rig: [1.0e+300, 1.0e+300, 0, 0]}}",
    ),
    "a focal length of next to nothing in a model": (
        "convert COLMAP binary",
        MODEL_BINARY["cameras.bin"].replace(struct.pack("<d", 810.5), struct.pack("<Q", 1)),
    ),
    "a size longer than a float": (
        "COLMAP text",
        joined("cameras.txt", MODEL_TEXT["cameras.txt"].replace(b"1000", b"9" * 400)),
    ),
    "HDF5 with its groups displaced": (
        "HDF5",
        corpus()["HDF5"][0].replace(b"HEAP", b"HEAQ"),
    ),
    "HDF5 with its nodes displaced": ("HDF5", corpus()["HDF5"][0].replace(b"SNOD", b"SNOE")),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs(watched: Watched, name: str) -> None:
    assert watched.read(*BOMBS[name]) is None


@pytest.mark.parametrize("kind", [b"zTXt", b"iCCP"])
def test_a_chunk_of_nothing_in_few_bytes(watched: Watched, kind: bytes) -> None:
    """As a text, and as a profile of colours."""
    nothing = zlib.compress(bytes(1 << 27), level=1)
    assert watched.read("PNG", png(64, 64, (kind, b"a\0\0" + nothing))) is None


@pytest.mark.parametrize("name", CASES)
def test_cases(watched: Watched, name: str) -> None:
    assert watched.read(*CASES[name]) is None


def test_the_watch_sees_what_goes_wrong(watched: Watched) -> None:
    verdict = watched.read("no such reader", b"")
    assert verdict is not None
    assert "KeyError" in verdict
