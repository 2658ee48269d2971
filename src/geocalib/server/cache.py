"""What the network saw in the last photos, for a while: fields and lines, and no pixels."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from geocalib.pipeline.predict import Seen
from geocalib.server.limits import RefusedError

GONE = "no photo of this id is kept (any longer); calibrate it again"


class Sights:
    """A bounded number of sights by ids that nobody can guess. Threads may share it."""

    def __init__(
        self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """most: sights at a time; seconds: since a sight was last asked for, after which it is
        forgotten."""
        self._most, self._seconds, self._clock = most, seconds, clock
        self._sights: OrderedDict[str, tuple[float, Seen]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        with self._lock:
            self._forget()
            return len(self._sights)

    def keep(self, sight: Seen) -> str:
        """The id of a sight that is kept from now on."""
        name = secrets.token_urlsafe(18)
        with self._lock:
            self._sights[name] = (self._clock(), sight)
            self._forget()
        return name

    def find(self, name: str) -> Seen:
        """The sight of an id, or a refusal."""
        with self._lock:
            self._forget()
            if name not in self._sights:
                raise RefusedError(404, GONE)
            sight = self._sights[name][1]
            self._sights[name] = (self._clock(), sight)
            self._sights.move_to_end(name)
            return sight

    def _forget(self) -> None:
        """Drop what is too old or too many; the one that was asked for last is at the end."""
        oldest = self._clock() - self._seconds
        while self._sights:
            first = next(iter(self._sights))
            if len(self._sights) <= self._most and self._sights[first][0] >= oldest:
                return
            del self._sights[first]
