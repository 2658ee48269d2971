"""How the package speaks to people at a terminal: notes and progress, on standard error."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

    from geocalib.result.calibration import Failure

UNBOUNDED = 10_000
"""Columns of a file or a pipe."""

ASCII = str.maketrans({"±": "+-", "°": "deg", "σ": "sigma", "…": "..."})
"""What signs become where there are none."""

PATIENCE = 30.0
"""Seconds between lines of progress where there is no terminal."""


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


def ascii_only(stream: TextIO) -> bool:
    """Whether a stream has no other signs, by its encoding, the locale and the terminal.

    Python itself changes LC_CTYPE of the plainest locale, and the encoding with it.
    """
    encoding = getattr(stream, "encoding", None) or "utf-8"
    locale = os.environ.get("LC_ALL") or os.environ.get("LANG")
    plain = locale in ("C", "POSIX") or os.environ.get("TERM") == "dumb"
    return plain or not encoding.lower().startswith("utf")


def legible(text: str, stream: TextIO) -> str:
    """The text in signs that a stream can show."""
    return text.translate(ASCII) if ascii_only(stream) else text


def printable(text: str) -> str:
    """The text on one line; file names may hold line breaks, control characters, stray bytes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def note(line: str) -> None:
    _say(line, "")


def warn(line: str) -> None:
    _say(f"warning: {line}", "yellow")


def fail(line: str) -> None:
    _say(f"error: {line}", "red")


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
    if hidden or total < 2:
        yield lambda: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    console = standard_error()
    if not console.is_terminal or console.is_dumb_terminal:
        yield _lines_of_progress(total, doing)
        return
    bar = Progress(
        SpinnerColumn("line" if ascii_only(sys.stderr) else "dots"),
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
    start = last = time.monotonic()
    done = 0

    def advance() -> None:
        nonlocal last, done
        done += 1
        now = time.monotonic()
        if now - last >= PATIENCE and done < total:
            last = now
            left = _duration((now - start) / done * (total - done))
            note(f"{doing}: {done} of {total}, about {left} left")

    return advance


def _duration(seconds: float) -> str:
    """In words, as exact as a guess can be."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
