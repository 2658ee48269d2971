"""The size that a WebP file states: its decoder makes room for it as soon as it is opened."""

from __future__ import annotations

SIDE = 0x3FFF
"""Bits of a side in pictures that are not extended."""


def webp_size(head: bytes) -> tuple[int, int] | None:
    """(width, height) by the first 30 bytes of a file; None if it is no WebP."""
    if head[:4] != b"RIFF" or head[8:12] != b"WEBP":
        return None

    def number(start: int, end: int) -> int:
        return int.from_bytes(head[start:end], "little")

    kind = head[12:16]
    if kind == b"VP8X":
        return number(24, 27) + 1, number(27, 30) + 1
    if kind == b"VP8L":
        return (number(21, 25) & SIDE) + 1, (number(21, 25) >> 14 & SIDE) + 1
    return number(26, 28) & SIDE, number(28, 30) & SIDE
