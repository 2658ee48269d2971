"""``geocalib serve`` in a process of its own."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import time
from types import TracebackType

READY = re.compile(r"serving at (http://([\d.]+):(\d+))")
PATIENCE_SECONDS = 120


class Served:
    """A server on any free port, ended with the block."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, "-m", "geocalib", "serve", "--port", "0", *options]
        # Not a pipe: nobody reads while it runs.
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(command, stderr=self._log)
        end = time.monotonic() + PATIENCE_SECONDS
        while (found := READY.search(self.logged)) is None:
            assert self.process.poll() is None, self.logged
            assert time.monotonic() < end, self.logged
            time.sleep(0.05)
        self.address, self.host, self.port = found[1], found[2], int(found[3])

    @property
    def logged(self) -> str:
        """All that was said so far."""
        self._log.seek(0)
        return self._log.read()

    def __enter__(self) -> Served:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end(signal.SIGKILL)
        self._log.close()

    def end(self, number: signal.Signals) -> None:
        """Send a signal, and wait for the end."""
        self.process.send_signal(number)
        self.process.wait(PATIENCE_SECONDS)
