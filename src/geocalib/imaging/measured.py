"""A file that makes no room for more bytes than it has: damaged ones ask for gigabytes."""

from __future__ import annotations

import io
import os


class Measured(io.BufferedReader):
    """As ``open(name, "rb")``, of what ``open(name, "rb", 0)`` gives."""

    def __init__(self, raw: io.FileIO) -> None:
        super().__init__(raw)
        self._length = os.fstat(raw.fileno()).st_size

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size > 0:
            size = min(size, max(0, self._length - self.tell()))
        return super().read(size)
