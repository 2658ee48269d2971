"""Files that appear whole or not at all, and errors that say which file they are about."""

from __future__ import annotations

import os
import shutil
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

PARTIAL = ".partial"
LOCK = ".lock"
"""What the names of files end in that users have not named."""

STREAMS = ("/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/")
"""How the names of streams begin."""


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes the place of ``path`` in the end, and vanishes on any error.

    The folder of it is made, and a link is followed. What is no plain file, as /dev/stdout, is
    written to as it is.
    """
    with naming(path):
        if is_special(path):
            # A stream may lead to a file that has something in it.
            with path.open("ab") as file:
                yield file
            return
        place = Path(os.path.realpath(path))
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = place.with_name(f"{place.name[:150]}.{uuid.uuid4().hex}{PARTIAL}")
        try:
            with partial.open("xb") as file:
                yield file
                file.flush()
                # Or a crash of the machine may leave an empty file under the name.
                os.fsync(file.fileno())
            with suppress(FileNotFoundError):
                shutil.copymode(place, partial)
            os.replace(partial, place)
        finally:
            partial.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes | memoryview) -> None:
    """Write a file whole, and make its folder."""
    with replacing(path) as file:
        file.write(content)


def write_text(path: Path, text: str) -> None:
    """Write a file whole, and make its folder."""
    # File names need not be valid text: their bytes go through unchanged.
    write_bytes(path, text.encode("utf-8", errors="surrogateescape"))


def is_special(path: str | Path) -> bool:
    """Whether this is a device, a pipe, or a stream of the process, whatever that leads to."""
    if os.fspath(path).startswith(STREAMS):
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Errors of the system say which file was to be written: a full disk does not."""
    try:
        yield
    except OSError as error:
        unnamed = error.filename is None or str(error.filename).endswith((PARTIAL, LOCK))
        if error.errno is None or not unnamed:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
