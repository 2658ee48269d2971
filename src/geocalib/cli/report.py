"""What people read: a table of the answers, and, on standard error, notes and progress."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Literal, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from geocalib.calibration import Calibration, Failure, Outcome
    from geocalib.cli.inputs import Found

Row = tuple["Text", ...]

HEADERS = ("image", "roll °", "pitch °", "vFoV °", "focal px", "distortion", "status")

UNBOUNDED = 10_000
"""Columns of a file or a pipe."""

NARROWEST = 10
"""Signs across a column of words, at least."""

ASCII = str.maketrans({"±": "+-", "°": "deg", "σ": "sigma", "…": "..."})
"""What signs become where there are none."""

PATIENCE = 30.0
"""Seconds without a word, of a long run that nobody watches."""


@cache
def standard_error() -> Console:
    """One console, so that notes appear above a progress bar and not within it."""
    return _console(sys.stderr)


def standard_output() -> Console:
    """A new one, as tests exchange the stream."""
    return _console(sys.stdout)


def _console(stream: TextIO) -> Console:
    """As wide as COLUMNS says, or as the terminal is, or as it takes where there is none."""
    from rich.console import Console

    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and int(columns) > 0 else None
    if width is None and not stream.isatty():
        width = UNBOUNDED
    return Console(stderr=stream is sys.stderr, width=width, highlight=False, emoji=False)


def _ascii_only(stream: TextIO) -> bool:
    """Whether a stream has no other signs, by its encoding, the locale and the terminal.

    Python itself changes LC_CTYPE of the plainest locale, and the encoding with it.
    """
    encoding = getattr(stream, "encoding", None) or "utf-8"
    locale = os.environ.get("LC_ALL") or os.environ.get("LANG")
    plain = locale in ("C", "POSIX") or os.environ.get("TERM") == "dumb"
    return plain or not encoding.lower().startswith("utf")


def legible(text: str, stream: TextIO) -> str:
    """The text in signs that a stream can show."""
    return text.translate(ASCII) if _ascii_only(stream) else text


def printable(text: str) -> str:
    """The text on one line; file names may hold line breaks, control characters, stray bytes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def note(line: str) -> None:
    _say(line, "")


def warn(line: str) -> None:
    _say(f"warning: {line}", "yellow")


def fail(line: str) -> None:
    _say(f"error: {line}", "red")


def tell(found: Found) -> None:
    """What is to be said of the paths of a command; images that are missing fail by themselves."""
    for line in found.notes:
        warn(line)
    for line in found.problems:
        fail(line)


def failures(failed: Iterable[Failure]) -> None:
    """One line for each image without an answer."""
    for failure in failed:
        name = failure.image or "image"
        fail(failure.error if failure.error.startswith(name) else f"{name}: {failure.error}")


def outliers(found: Iterable[Failure]) -> None:
    """One line for each image that does not belong to its group."""
    for outlier in found:
        warn(f"outlier: {outlier.error}")


def _say(line: str, style: str) -> None:
    from rich.text import Text

    text = Text(printable(legible(line, sys.stderr)), style)
    standard_error().print(text, soft_wrap=True)


def count(number: int, noun: str) -> str:
    """The number of things, in words for people."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


@contextmanager
def progress(total: int, doing: str, hidden: bool = False) -> Iterator[Callable[[], None]]:
    """A bar with the time left, where there is something to wait for; without a terminal a line
    now and then. The function that it gives says that one more is done."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    console = standard_error()
    if hidden or total < 2:
        yield lambda: None
        return
    if not console.is_terminal or console.is_dumb_terminal:
        yield _lines_of_progress(total, doing)
        return
    bar = Progress(
        SpinnerColumn("line" if _ascii_only(sys.stderr) else "dots"),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        transient=True,
        # Answers on standard output must not be drawn into the bar's console.
        redirect_stdout=False,
    )
    with bar:
        task = bar.add_task(doing, total=total)
        yield lambda: bar.advance(task)


def _lines_of_progress(total: int, doing: str) -> Callable[[], None]:
    start = told = time.monotonic()
    done = 0

    def advance() -> None:
        nonlocal told, done
        done += 1
        now = time.monotonic()
        if now - told >= PATIENCE and done < total:
            told = now
            left = _duration((now - start) / done * (total - done))
            note(f"{doing}: {done} of {total}, about {left} left")

    return advance


def _duration(seconds: float) -> str:
    """In words, as exact as a guess can be."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def row(outcome: Outcome) -> Row:
    """The cells of an image in the table."""
    from rich.text import Text

    from geocalib.calibration import Failure

    name = Text(printable(outcome.image or ""))
    if isinstance(outcome, Failure):
        return (name, *[Text()] * 5, Text(outcome.status or "failed", "red"))
    sigma = outcome.sigma
    names = outcome.camera.model.parameters
    distortion = zip(names, outcome.distortion, sigma.distortion, strict=True)
    return (
        name,
        Text(_value(outcome.roll_deg, sigma.roll_deg, "+.2f")),
        Text(_value(outcome.pitch_deg, sigma.pitch_deg, "+.2f")),
        Text(_value(outcome.vfov_deg, sigma.vfov_deg, ".1f")),
        Text(_value(outcome.fy, sigma.focal, ".0f")),
        Text("\n".join(f"{name} {_value(value, s, '+.4f')}" for name, value, s in distortion)),
        _status(outcome),
    )


def print_table(rows: Sequence[Row]) -> None:
    """The table on standard output. A folder that all images share is named once, and nothing is
    said of distortion where there is none."""
    folder = _shared_folder([cells[0].plain for cells in rows])
    where = f"in {folder.rstrip(os.sep) or os.sep}; " if folder else ""
    bent = any(cells[HEADERS.index("distortion")].plain for cells in rows)
    shown = [i for i, header in enumerate(HEADERS) if bent or header != "distortion"]
    short = [(cells[0][len(folder) :], *cells[1:]) for cells in rows]
    draw_table(
        [HEADERS[i] for i in shown],
        [[cells[i] for i in shown] for cells in short],
        ("image", "status"),
        f"{where}± is one sigma",
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
    console = standard_error() if beside_data else standard_output()

    def signs(text: Text) -> Text:
        return Text(legible(text.plain, stream), text.style)

    rows = [[signs(cell) for cell in cells] for cells in rows]
    columns = [(legible(header, stream), header in words) for header in headers]
    widest = [
        max(len(line) for line in (shown, *_lines(rows, i))) for i, (shown, _) in enumerate(columns)
    ]
    needed = sum(
        min(width, NARROWEST) if wordy else width
        for width, (_, wordy) in zip(widest, columns, strict=True)
    )
    # Two spaces between columns, and one at either end.
    if needed + 2 * len(columns) <= console.width:
        console.print(_table(columns, rows, _ascii_only(stream)))
    else:
        for cells in rows:
            console.print(cells[0])
            for (shown, _), cell in zip(columns[1:], cells[1:], strict=True):
                if cell.plain:
                    value = Text("; ").join(cell.split())
                    console.print(Text(f"  {shown}: ").append_text(value))
    if caption is not None:
        console.print(signs(Text(caption, "dim italic")))


def _lines(rows: Sequence[Sequence[Text]], column: int) -> Iterator[str]:
    return (line for cells in rows for line in cells[column].plain.splitlines())


def _table(
    columns: Sequence[tuple[str, bool]], rows: Sequence[Sequence[Text]], ascii: bool
) -> Table:
    """Of columns by their headers and whether they hold words."""
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


def _value(value: float, sigma: float, form: str) -> str:
    """A number with its sigma, in a width that does not depend on them: columns line up."""
    if not math.isfinite(value):
        return "-"
    unsigned = form.lstrip("+")
    if sigma == 0:
        return f"{value:{form}} fixed"
    return f"{value:{form}} ± {sigma:{unsigned}}" if math.isfinite(sigma) else f"{value:{form}} ± ?"


def _status(calibration: Calibration) -> Text:
    from rich.text import Text

    from geocalib.solver import Status

    if calibration.trusted:
        return Text("ok", "green")
    doubts = list(calibration.warnings)
    if calibration.status != Status.CONVERGED:
        doubts.insert(0, str(calibration.status))
    return Text("\n".join(printable(doubt) for doubt in doubts), "yellow")
