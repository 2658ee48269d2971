"""A table of words: for people as Markdown or HTML, for programs as comma-separated values."""

from __future__ import annotations

from collections.abc import Sequence
from csv import writer
from dataclasses import dataclass
from html import escape
from io import StringIO


@dataclass(frozen=True)
class Table:
    """Rows of as many cells as the header has."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    """Sentences below it."""

    def markdown(self) -> str:
        """With columns that line up."""
        widths = [max(map(len, column)) for column in zip(self.header, *self.rows, strict=True)]

        def line(cells: Sequence[str]) -> str:
            padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
            return f"| {' | '.join(padded)} |\n"

        rule = line(["-" * width for width in widths])
        notes = "".join(f"\n{note}\n" for note in self.notes)
        return f"{self.title}\n\n{line(self.header)}{rule}{''.join(map(line, self.rows))}{notes}"

    def csv(self) -> str:
        """Its title on a line of its own, then header and rows as comma-separated values."""
        lines = StringIO()
        writer(lines, lineterminator="\n").writerows([[self.title], self.header, *self.rows])
        return lines.getvalue()

    def html(self) -> str:
        """A heading and a table element."""
        lines = [_row("th", self.header), *(_row("td", row) for row in self.rows)]
        notes = [f"<p>{escape(note)}</p>" for note in self.notes]
        return "\n".join([f"<h3>{escape(self.title)}</h3>", "<table>", *lines, "</table>", *notes])


def _row(kind: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{kind}>{escape(cell)}</{kind}>' for cell in cells)}</tr>"
