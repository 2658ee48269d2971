"""Ways to damage a file, which hypothesis chooses among and shrinks."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable
from random import Random

from hypothesis import strategies as st

from fuzz.corpus import SEPARATOR

HEADER = 256
"""Bytes in which half of the damage is done."""

NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)

WORDS = (
    *(b"", b"0", b"-1", b"nan", b"inf", b"-inf", b"1e999", b"1e-300", b"1e300", b"0x10"),
    *(b"9" * 30, b"9" * 400, b"null", b"true", b"[]", b"{}", b"[[]]", b'""', b"'", b'"', b"\\"),
    *(b"*", b"&a", b"*a", b"!!python/name:os.system", b"%", b"\t", b"\r", b"\n", b",", b":", b"#"),
    *(b"\0", b"\xff\xfe", b"\xef\xbb\xbf", "ä".encode(), "\u2028".encode(), b"\xed\xa0\x80"),
    *(b"2024-02-30", b"1_000", b"1.5.2", b"..", b"/", b"a" * 300, b"[" * 300, b"{a: " * 60),
)

PIECES = re.compile(rb"[A-Za-z_0-9.+-]+|[^A-Za-z_0-9.+-]")


def _byte(data: bytearray, at: int, value: int) -> None:
    data[at] = value & 0xFF


def _flip(data: bytearray, at: int, value: int) -> None:
    data[at] ^= 1 << (value & 7)


def _number(data: bytearray, at: int, value: int) -> None:
    """Two or four bytes in either order."""
    number = NUMBERS[value % len(NUMBERS)]
    width = 4 if value & 16 else 2
    order = ">" if value & 32 else "<"
    data[at : at + width] = (
        struct.pack(f"{order}Q", number)[:width]
        if order == "<"
        else (struct.pack(">Q", number)[-width:])
    )


def _cut(data: bytearray, at: int, value: int) -> None:
    del data[at:]


def _remove(data: bytearray, at: int, value: int) -> None:
    del data[at : at + 1 + value % 64]


def _repeat(data: bytearray, at: int, value: int) -> None:
    data[at:at] = data[at : at + 1 + value % 64] * (1 + value % 5)


def _insert(data: bytearray, at: int, value: int) -> None:
    data[at:at] = bytes([value & 0xFF]) * (1 + value % 32)


BYTES: tuple[Callable[[bytearray, int, int], None], ...] = (
    *(_byte, _flip, _number, _number),
    *(_cut, _remove, _repeat, _insert),
)


def _step(data: bytearray, kind: int, place: int, value: int) -> None:
    """One damage; places count in 65536ths of the header or of all."""
    if not data:
        return
    reach = min(len(data), HEADER) if place & 1 else len(data)
    BYTES[kind % len(BYTES)](data, place * reach >> 16, value)


def _sound_png(data: bytes) -> bytes:
    """With right checksums: a decoder would look no further."""
    at, parts = 8, [data[:8]]
    while at + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        if length > len(data) - at - 12:
            break
        body = data[at + 4 : at + 8 + length]
        parts += [data[at : at + 4], body, struct.pack(">I", zlib.crc32(body))]
        at += 12 + length
    return b"".join(parts) + data[at:]


_steps = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 65535), st.integers(0, 255)),
    min_size=1,
    max_size=4,
)


@st.composite
def damaged_bytes(draw: st.DrawFn, files: list[bytes]) -> bytes:
    """One of the files with a few bytes wrong."""
    name, mark, body = (
        draw(st.sampled_from(files)).rpartition(SEPARATOR)
        if _in_folder(files)
        else (b"", b"", draw(st.sampled_from(files)))
    )
    data = bytearray(body)
    for step in draw(_steps):
        _step(data, *step)
    result = bytes(data)
    if result.startswith(b"\x89PNG") and draw(st.booleans()):
        result = _sound_png(result)
    return name + mark + result


@st.composite
def damaged_text(draw: st.DrawFn, files: list[bytes]) -> bytes:
    """One of the files with a few words wrong, and now and then its bytes."""
    if draw(st.integers(0, 3)) == 0:
        return draw(damaged_bytes(files))
    text = draw(st.sampled_from(files))
    name, mark, body = text.partition(SEPARATOR) if _in_folder(files) else (b"", b"", text)
    pieces = PIECES.findall(body)
    for place, word in draw(
        st.lists(st.tuples(st.integers(0, 65535), st.sampled_from(WORDS)), min_size=1, max_size=3)
    ):
        at = place * len(pieces) >> 16
        if place & 1:
            pieces[at : at + 1] = [word]
        else:
            pieces[at:at] = [word]
    return name + mark + b"".join(pieces)


def _in_folder(files: list[bytes]) -> bool:
    return re.match(rb"[\w]+\.\w+" + SEPARATOR, files[0]) is not None


def damaged(data: bytes, random: Random) -> bytes:
    """A file with a few bytes wrong, for those who do not shrink what they find."""
    harmed = bytearray(data)
    for _ in range(random.randint(1, 4)):
        _step(harmed, random.randrange(len(BYTES)), random.randrange(65536), random.randrange(256))
    return bytes(harmed)
