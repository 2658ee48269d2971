"""Requests that no honest client sends: damaged images, bombs, polyglots, mangled forms."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from random import Random

from fuzz.corpus import corpus, encoded, picture
from fuzz.damage import WORDS, damaged

BOUNDARY = b"frontier"
FORM = f"multipart/form-data; boundary={BOUNDARY.decode()}"
JSON = "application/json"
PATHS = ("/v1/calibrate", "/v1/refit", "/v1/render", "/v1/export")
NO_LINES = b'{"lines": "off"}'


@dataclass(frozen=True)
class Sent:
    """A request."""

    kind: str
    path: str
    body: bytes
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": FORM})


def part(name: bytes, data: bytes, filename: bytes | None = None, extra: bytes = b"") -> bytes:
    """One part of a form."""
    file = b"" if filename is None else b'; filename="' + filename + b'"'
    head = b'Content-Disposition: form-data; name="' + name + b'"' + file + b"\r\n" + extra
    return b"--" + BOUNDARY + b"\r\n" + head + b"\r\n" + data + b"\r\n"


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + b"--" + BOUNDARY + b"--\r\n"


def _image(data: bytes) -> bytes:
    return form(part(b"image", data, b"a.jpg"), part(b"request", NO_LINES))


@cache
def _images() -> list[bytes]:
    every = corpus()
    return [data for kind in ("JPEG", "PNG", "WebP", "HEIC", "TIFF", "GIF") for data in every[kind]]


def truncated(random: Random) -> Sent:
    data = random.choice(_images())
    return Sent("truncated", PATHS[0], _image(data[: random.randrange(len(data))]))


def mutated(random: Random) -> Sent:
    return Sent("mutated", PATHS[0], _image(damaged(random.choice(_images()), random)))


def bomb(random: Random) -> Sent:
    """Few bytes that claim to be very many pixels."""
    width, height = random.choice([(60000, 60000), (16000, 12000), (9000, 8000), (50000, 2000)])

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    png = b"\x89PNG\r\n\x1a\n" + chunk(
        b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    )
    png += chunk(b"IDAT", zlib.compress(bytes(100_000))) + chunk(b"IEND", b"")
    gif = b"GIF89a" + struct.pack("<HH", width & 0xFFFF, height & 0xFFFF) + b"\x80\0\0" + bytes(99)
    jpeg = bytearray(encoded(picture(), "JPEG"))
    at = jpeg.index(b"\xff\xc0") + 5
    jpeg[at : at + 4] = struct.pack(">HH", min(height, 65500), min(width, 65500))
    return Sent("bomb", PATHS[0], _image(random.choice([png, gif, bytes(jpeg)])))


def polyglot(random: Random) -> Sent:
    """Two kinds of file in one."""
    first = random.choice(_images())
    second = random.choice(
        [b"PK\x03\x04", b"%PDF-1.7\n", b"<svg onload='x'/>", b"#!/bin/sh\n", b"MZ", *_images()]
    )
    data = random.choice([first + second, second + first, second[:12] + first[12:]])
    return Sent("polyglot", PATHS[0], _image(data))


def no_image(random: Random) -> Sent:
    data = random.choice(
        [b"", b"\0" * 500, random.randbytes(300), b"{}", b"http://a/b.jpg", b"/etc"]
    )
    return Sent("no image", PATHS[0], _image(data))


def wrong_type(random: Random) -> Sent:
    kinds = (
        "image/jpeg",
        "text/html",
        "multipart/mixed; boundary=a",
        "multipart/form-data",
        "a;;",
    )
    kinds += (f"{FORM}; charset=utf-7", "multipart/form-data; boundary=", "application/jsonx")
    headers = {"content-type": random.choice(kinds)}
    return Sent("wrong type", random.choice(PATHS), random.choice(_images()), headers)


def mangled_form(random: Random) -> Sent:
    """A form with bytes wrong anywhere."""
    body = form(part(b"request", NO_LINES), part(b"image", b"tiny", b"a.jpg"))
    return Sent("mangled form", random.choice(PATHS), damaged(body, random))


def odd_form(random: Random) -> Sent:
    """Sound, but not what a form should be."""
    bodies = (
        b"",
        form(),
        form(part(b"image", b"a text, no file")),
        form(part(b"request", NO_LINES, b"a.json")),
        form(part(b"image", b"x", b"a" * 5000)),
        form(part(b"image", b"x", b"../../etc/passwd\0.jpg")),
        form(part(b"", b"x", b"")),
        form(*[part(b"image", b"x", b"a")] * 70),
        form(*[part(b"request", b"{}")] * 20),
        form(part(b"image", b"x", b"a", b"X-Large: " + b"a" * 40_000 + b"\r\n")),
        form(part(b"image", b"x", b"a", b"X-Many: a\r\n" * 3000)),
        form(part(b"request", b"9" * 2_000_000)),
    )
    return Sent("odd form", random.choice(PATHS), random.choice(bodies))


def malformed_json(random: Random) -> Sent:
    image = base64.b64encode(b"no image").decode()
    path, value = random.choice(
        [
            (PATHS[0], {"images": [{"name": "a", "data": image}], "vfov_deg": 50}),
            (PATHS[1], {"id": "a", "roll_deg": {"value": 1, "sigma": 2}, "pitch_deg": 0}),
            (PATHS[3], {"records": [{"schema": "geocalib/4", "width": 3}], "format": "csv"}),
        ]
    )
    text = json.dumps(value).encode()
    way = random.randrange(4)
    if way == 0:
        text = damaged(text, random)
    elif way == 1:
        at = random.randrange(len(text))
        text = text[:at] + random.choice(WORDS) + text[at:]
    elif way == 2:
        text = random.choice(
            [b"[" * 100_000, b'{"a":' * 50_000, b"1e999", b"\xff\xfe{}", b'"\\ud800"']
        )
    else:
        text = text.replace(b"50", random.choice(WORDS) or b"0")
    return Sent("malformed JSON", path, text, {"content-type": JSON})


def huge_header(random: Random) -> Sent:
    """Long, but not longer than a server must take."""
    headers = {"content-type": FORM, "x-odd": "a" * random.choice([100, 5000])}
    headers["content-type"] += "; x=" + "y" * random.choice([10, 4000])
    return Sent("huge header", random.choice(PATHS), b"", headers)


KINDS: tuple[Callable[[Random], Sent], ...] = (
    *(truncated, truncated, mutated, mutated, mutated, mutated),
    *(bomb, polyglot, no_image, wrong_type, mangled_form, odd_form),
    *(malformed_json, malformed_json, huge_header),
)


def requests(count: int, seed: int = 17) -> list[Sent]:
    """The same ones on every run."""
    random = Random(seed)
    return [KINDS[index % len(KINDS)](random) for index in range(count)]


def verdict(sent: Sent, status: int, text: str) -> str | None:
    """What is wrong with an answer, if anything."""
    if status == 200 and sent.kind in ("truncated", "mutated", "polyglot"):
        return None  # What is left of it is an image.
    if not 400 <= status < 500:
        return f"{sent.kind}: status {status}: {text[:200]}"
    try:
        sentence = json.loads(text)["error"]
    except (ValueError, KeyError, TypeError):
        return f"{sent.kind}: {status} without a sentence: {text[:200]}"
    if not (isinstance(sentence, str) and 8 < len(sentence) < 500 and "\n" not in sentence):
        return f"{sent.kind}: {status}: no sentence: {sentence!r:.200}"
    return None
