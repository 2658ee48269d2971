"""One process at a time on one output. The system ends a lock with the process that holds it."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from geocalib.errors import OutputError
from geocalib.files.whole import LOCK, is_special, naming

WITHOUT_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
"""What file systems answer that know no locks: there one goes on without."""

HELD_BY = 64
"""Bytes that the number of a process takes at most."""


@contextmanager
def locked(output: Path) -> Iterator[None]:
    """Hold the lock of an output; an error if another process holds it.

    The lock is on ``OUTPUT.lock``, which is gone in the end, or stays behind a crash without
    meaning anything.
    """
    if is_special(output):
        yield
        return
    place = Path(f"{os.path.realpath(output) if output.is_symlink() else output}{LOCK}")
    folders = [folder for folder in place.parents if not folder.exists()]
    with naming(output):
        place.parent.mkdir(parents=True, exist_ok=True)
        file = _taken(place, output)
    try:
        yield
    finally:
        # Removed while it is held: the one who waits for it sees that its file is gone.
        with suppress(OSError):
            place.unlink()
        os.close(file)
        # Folders that were made for nothing else are empty now.
        with suppress(OSError):
            for folder in folders:
                folder.rmdir()


def _taken(place: Path, output: Path) -> int:
    """The open file of the lock."""
    while True:
        file = os.open(place, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(file)
        except OSError as error:
            if error.errno in WITHOUT_LOCKS:
                return file
            holder = os.read(file, HELD_BY).decode(errors="replace").strip()
            os.close(file)
            if error.errno not in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
                raise
            who = f"process {holder}" if holder else "another process"
            raise OutputError(
                f"{output} is being written by {who}; wait for it, or choose another output"
            ) from None
        if _is_still(file, place):
            os.ftruncate(file, 0)
            os.write(file, f"{os.getpid()}\n".encode())
            return file
        # Its last holder has removed it in between.
        os.close(file)


def _is_still(file: int, place: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), place.stat())
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    FAR = 1 << 20
    """Where the locked byte is: others may not read it, but the number before it."""

    def _lock(file: int) -> None:
        os.lseek(file, FAR, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(file, 0, os.SEEK_SET)
else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
