"""Text in the cells of CSV tables, such that spreadsheets take it for text.

A cell that begins with = + - @ would be a formula: that of a file's name may do anything.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from geocalib.files import replacing

_RISKY = re.compile(r"'*[=+\-@\t\r\n]")
_ESCAPED = re.compile(r"'+[=+\-@\t\r\n]")


def write_rows(path: Path, rows: Iterable[Iterable[object]]) -> None:
    """Write a table, the header among its rows; whole or not at all."""
    with replacing(path) as file:
        # File names need not be valid text: their bytes go through unchanged.
        stream = io.TextIOWrapper(file, encoding="utf-8", errors="surrogateescape", newline="")
        print_rows(stream, rows)
        stream.detach()


def print_rows(stream: TextIO, rows: Iterable[Iterable[object]]) -> None:
    """The same to a stream of text."""
    csv.writer(_Lines(stream)).writerows(rows)


class _Lines:
    """A stream whose lines end in a line feed. The writer itself does not know: it would leave
    carriage returns in cells without quotes, and these would end a row."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, row: str) -> None:
        self._stream.write(row.removesuffix("\r\n") + "\n")


def escape(text: str) -> str:
    """The text, with an apostrophe before it where it might be a formula.

    >>> escape("=1+1.jpg"), escape("'=1"), escape("a-b.jpg"), escape("'a")
    ("'=1+1.jpg", "''=1", 'a-b.jpg', "'a")
    """
    return f"'{text}" if _RISKY.match(text) else text


def unescape(cell: str) -> str:
    """The text that ``escape`` was given.

    >>> unescape("'=1+1.jpg"), unescape("''=1"), unescape("a-b.jpg"), unescape("'a")
    ('=1+1.jpg', "'=1", 'a-b.jpg', "'a")
    """
    return cell[1:] if _ESCAPED.match(cell) else cell
