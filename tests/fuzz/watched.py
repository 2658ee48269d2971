"""A process that reads damaged files under watch: of its time, its memory and what it prints.

Started as a script it is that process; ``Watched`` is its other end.
"""

from __future__ import annotations

import os
import pickle
import resource
import select
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

SECONDS = 5.0
"""Of the processor, for one file."""
PATIENCE = 60.0
"""Seconds on the clock, where other programs may be busy, after which a file hangs."""
MEMORY = 1 << 30
"""Bytes beyond what the process has when it starts."""


class Watched:
    """Reads one damaged file after the other, and survives each."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, reader: str, data: bytes) -> str | None:
        """What went wrong with a file beyond a ``GeoCalibError``; None if nothing did."""
        if self._process is None:
            self._process = self._start()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        pickle.dump((reader, data), process.stdin)
        process.stdin.flush()
        if not select.select([process.stdout], [], [], PATIENCE)[0]:
            self.close()
            return f"no answer within {PATIENCE:g} s"
        try:
            verdict: str | None = pickle.load(process.stdout)
        except EOFError:
            self.close()
            return f"the process died: {process.returncode}"
        return verdict

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    @staticmethod
    def _start() -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )


def serve() -> None:
    """Answer until nobody asks."""
    from fuzz.readers import READERS
    from geocalib.cli.streams import hush_libraries

    answers = os.fdopen(os.dup(1), "wb")
    said = tempfile.TemporaryFile()  # noqa: SIM115
    for stream in (1, 2):
        os.dup2(said.fileno(), stream)
    hush_libraries()
    warnings.simplefilter("error")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    while True:
        try:
            reader, data = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        with tempfile.TemporaryDirectory() as folder:
            start = time.process_time()
            verdict = _verdict(lambda: READERS[reader](data, Path(folder)))  # noqa: B023
            seconds = time.process_time() - start
        sys.stdout.flush()
        sys.stderr.flush()
        said.seek(0)
        if words := said.read():
            verdict = f"it printed {words[:500]!r}; {verdict}"
            said.seek(0)
            said.truncate()
        if seconds > SECONDS:
            verdict = f"it took {seconds:.1f} s; {verdict}"
        pickle.dump(verdict, answers)
        answers.flush()


def _verdict(read: object) -> str | None:
    from geocalib.errors import GeoCalibError

    assert callable(read)
    try:
        read()
    except GeoCalibError as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, MemoryError):
                return traceback.format_exc()
            cause = cause.__cause__ or cause.__context__
        if "\n" in str(error):
            return f"more than one line: {error}"
        return None
    except BaseException:
        return traceback.format_exc()
    return None


if __name__ == "__main__":
    serve()
