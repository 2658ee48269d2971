"""What people read: a table of the answers."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from geocalib import console

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from geocalib.cli.inputs import FoundImages
    from geocalib.result.calibration import Calibration, Outcome

Row = tuple["Text", ...]

HEADERS = ("image", "roll °", "pitch °", "vFoV °", "focal px", "distortion", "status")

NARROWEST = 10
"""Signs across a column of words, at least."""


def tell(found: FoundImages) -> None:
    """What is to be said of the paths of a command; images that are missing fail by themselves."""
    for line in found.notes:
        console.warn(line)
    for line in found.problems:
        console.fail(line)


def row(outcome: Outcome) -> Row:
    """The cells of an image in the table."""
    from rich.text import Text

    from geocalib.result.calibration import Failure
    from geocalib.result.uncertainty import with_sigma

    name = Text(console.printable(outcome.image or ""))
    if isinstance(outcome, Failure):
        return (name, *[Text()] * 5, Text(outcome.status or "failed", "red"))
    sigma = outcome.sigma
    names = outcome.cameras.model.parameters
    distortion = zip(names, outcome.distortion, sigma.distortion, strict=True)
    return (
        name,
        Text(with_sigma(outcome.roll_deg, sigma.roll_deg, "+z.2f")),
        Text(with_sigma(outcome.pitch_deg, sigma.pitch_deg, "+z.2f")),
        Text(with_sigma(outcome.vfov_deg, sigma.vfov_deg, ".1f")),
        Text(with_sigma(outcome.fy, sigma.focal, ".0f")),
        Text("\n".join(f"{name} {with_sigma(value, s, '+.4f')}" for name, value, s in distortion)),
        _status(outcome),
    )


def print_table(rows: Sequence[Row]) -> None:
    """The table on standard output. A folder that all images share is named once, and nothing is
    said of distortion, or of sigmas, where there are none."""
    folder = _shared_folder([cells[0].plain for cells in rows])
    notes = [f"in {folder.rstrip(os.sep) or os.sep}"] if folder else []
    if any("±" in cell.plain for cells in rows for cell in cells[1:-1]):
        notes.append("± is one sigma")
    bent = any(cells[HEADERS.index("distortion")].plain for cells in rows)
    shown = [i for i, header in enumerate(HEADERS) if bent or header != "distortion"]
    short = [(cells[0][len(folder) :], *cells[1:]) for cells in rows]
    draw_table(
        [HEADERS[i] for i in shown],
        [[cells[i] for i in shown] for cells in short],
        ("image", "status"),
        "; ".join(notes) or None,
    )


def draw_table(
    headers: Sequence[str],
    rows: Sequence[Sequence[Text]],
    words: Collection[str],
    caption: str | None = None,
    beside_data: bool = False,
) -> None:
    """A table on standard output, or on standard error where data go to the other.

    words: the headers of columns that hold words. They stand on the left and are folded where it
    is narrow; where there is no room for the numbers, each row becomes lines of its own.
    """
    from rich.text import Text

    stream = sys.stderr if beside_data else sys.stdout
    screen = console.standard_error() if beside_data else console.standard_output()

    def signs(text: Text) -> Text:
        return Text(console.legible(text.plain, stream), text.style)

    rows = [[signs(cell) for cell in cells] for cells in rows]
    columns = [(console.legible(header, stream), header in words) for header in headers]
    widest = [
        max(len(line) for line in (shown, *_lines(rows, i))) for i, (shown, _) in enumerate(columns)
    ]
    needed = sum(
        min(width, NARROWEST) if wordy else width
        for width, (_, wordy) in zip(widest, columns, strict=True)
    )
    # Two spaces between columns, and one at either end.
    if needed + 2 * len(columns) <= screen.width:
        screen.print(_table(columns, rows, console.ascii_only(stream)))
    else:
        for cells in rows:
            screen.print(cells[0])
            for (shown, _), cell in zip(columns[1:], cells[1:], strict=True):
                if cell.plain:
                    value = Text("; ").join(cell.split())
                    screen.print(Text(f"  {shown}: ").append_text(value))
    if caption is not None:
        screen.print(signs(Text(caption, "dim italic")))


def _lines(rows: Sequence[Sequence[Text]], column: int) -> Iterator[str]:
    return (line for cells in rows for line in cells[column].plain.splitlines())


def _table(
    columns: Sequence[tuple[str, bool]], rows: Sequence[Sequence[Text]], ascii: bool
) -> Table:
    """An empty table; columns are given by their headers and whether they hold words."""
    from rich.box import SIMPLE_HEAD, Box
    from rich.table import Table

    box = Box(str(SIMPLE_HEAD).replace("─", "-"), ascii=True) if ascii else SIMPLE_HEAD
    table = Table(box=box, padding=(0, 1, 0, 0))
    for header, wordy in columns:
        justify: Literal["left", "right"] = "left" if wordy else "right"
        table.add_column(header, justify=justify, no_wrap=not wordy, overflow="fold")
    for cells in rows:
        table.add_row(*cells)
    return table


def _shared_folder(names: Sequence[str]) -> str:
    """What all of several names begin with, up to its last separator."""
    # Characters will do, as the cut is at a separator; and names need not be alike in kind.
    prefix = os.path.commonprefix(names) if len(names) > 1 else ""  # noqa: RUF071
    return prefix[: prefix.rfind(os.sep) + 1]


def _status(calibration: Calibration) -> Text:
    from rich.text import Text

    lines = map(console.printable, calibration.verdict)
    return Text("\n".join(lines), "green" if calibration.trusted else "yellow")
