"""What people read: a table of the answers, and, on standard error, notes and a progress bar."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from geocalib.calibration import Calibration, Failure, Outcome
    from geocalib.cli.inputs import Found

Row = tuple["Text", ...]

HEADERS = ("image", "roll °", "pitch °", "vFoV °", "focal px", "distortion", "status")

UNBOUNDED = 10_000
"""Columns of a file or a pipe."""


@cache
def standard_error() -> Console:
    """One console, so that notes appear above a progress bar and not within it; as wide as the
    terminal, or as it takes where there is none."""
    from rich.console import Console

    width = None if sys.stderr.isatty() else UNBOUNDED
    return Console(stderr=True, width=width, highlight=False, emoji=False)


def standard_output() -> Console:
    """As wide as the terminal, or as it takes where there is none."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else UNBOUNDED
    return Console(width=width, highlight=False, emoji=False)


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

    standard_error().print(Text(printable(line), style), soft_wrap=True)


def count(number: int, noun: str) -> str:
    """The number of things, in words for people."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


@contextmanager
def progress(total: int, doing: str, hidden: bool = False) -> Iterator[Callable[[], None]]:
    """A bar with the time left, where there is a terminal and something to wait for; the function
    that it gives says that one more is done."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    console = standard_error()
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        transient=True,
        disable=hidden or total < 2 or not console.is_terminal,
        # Answers on standard output must not be drawn into the bar's console.
        redirect_stdout=False,
    )
    with bar:
        task = bar.add_task(doing, total=total)
        yield lambda: bar.advance(task)


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
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    folder = _shared_folder([cells[0].plain for cells in rows])
    where = f"in {folder.rstrip(os.sep) or os.sep}; " if folder else ""
    table = Table(
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        caption=Text(f"{where}± is one sigma"),
        caption_justify="left",
    )
    bent = any(cells[HEADERS.index("distortion")].plain for cells in rows)
    shown = [i for i, header in enumerate(HEADERS) if bent or header != "distortion"]
    for i in shown:
        words = HEADERS[i] in ("image", "status")
        table.add_column(
            HEADERS[i],
            justify="left" if words else "right",
            no_wrap=not words,
            overflow="fold",
        )
    for cells in rows:
        cells = (cells[0][len(folder) :], *cells[1:])
        table.add_row(*(cells[i] for i in shown))
    standard_output().print(table)


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
