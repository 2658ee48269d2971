"""Standard output and standard error of a command: there, forgiving, and its own."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from typing import TextIO


def make_ready() -> None:
    """Give a stream to write to in the place of one that was closed, and let none of them stop at
    a character that its terminal lacks."""
    # Their numbers are free, and the next files that are opened would have them.
    if sys.stdout is None:
        sys.stdout = _nowhere(1)
    if sys.stderr is None:
        sys.stderr = _nowhere(2)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _nowhere(number: int) -> TextIO:
    null = os.open(os.devnull, os.O_WRONLY)
    if null != number:
        os.dup2(null, number)
        os.close(null)
    return os.fdopen(number, "w", encoding="utf-8")


def hush_libraries() -> None:
    """Hide messages of libraries, which users can do nothing about. Decoders that are not
    written in Python print to the file behind standard error, which from here on is ours alone."""
    warnings.simplefilter("ignore")
    logging.getLogger().addHandler(logging.NullHandler())
    old = sys.stderr
    sys.stderr = os.fdopen(
        os.dup(2), "w", buffering=1, encoding=old.encoding, errors="backslashreplace"
    )
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    os.close(null)
