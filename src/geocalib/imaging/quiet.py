"""Pillow's warnings kept from those who only gave us a file, and cannot mend what it says.

``warnings.catch_warnings`` exchanges the filters of the whole process for a while, under the feet
of other threads. Here one filter stays among them, and holds in a thread only while it reads.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Reading(threading.local):
    """Stands in a filter where there usually is a pattern of modules."""

    now = False

    def match(self, module: str) -> bool:
        return self.now


_READING = _Reading()
_FILTER: Any = ("ignore", None, Warning, _READING, 0)


@contextmanager
def quiet() -> Iterator[None]:
    """No warning is given, nor turned into an error, in this thread."""
    filters: Any = warnings.filters
    if _FILTER not in filters:
        filters.insert(0, _FILTER)
    before, _READING.now = _READING.now, True
    try:
        yield
    finally:
        _READING.now = before
