"""What the network saw in the last photos, for a while: fields and lines, and no pixels."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from geocalib.pipeline.predict import NetworkOutput
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.evidence import Traces
from geocalib.server.limits import RefusedError

GONE = "no photo of this id is kept (any longer); calibrate it again"


@dataclass(frozen=True)
class CachedPhoto:
    """What there is of a photo."""

    output: NetworkOutput
    traces: Traces | None
    """Its lines, as the last fit with lines used them."""
    used: float
    """When it was used last, seconds."""


class PhotoCache:
    """A bounded number of photos by random ids. Threads may share it."""

    def __init__(
        self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """most: photos at a time; seconds: after its last use a photo is dropped."""
        self._most, self._seconds, self._clock = most, seconds, clock
        self._kept: OrderedDict[str, CachedPhoto] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        with self._lock:
            self._forget()
            return len(self._kept)

    def keep(self, output: NetworkOutput, outcome: Outcome) -> str:
        """Keep a photo, and return its id."""
        name = secrets.token_urlsafe(18)
        with self._lock:
            self._kept[name] = CachedPhoto(output, _traces(outcome), self._clock())
            self._forget()
        return name

    def find(self, name: str) -> CachedPhoto:
        """What is kept under an id, or a refusal."""
        with self._lock:
            self._forget()
            if name not in self._kept:
                raise RefusedError(404, GONE)
            kept = self._kept[name] = replace(self._kept[name], used=self._clock())
            self._kept.move_to_end(name)
            return kept

    def renew(self, name: str, outcome: Outcome) -> None:
        """Note how another fit used the lines, if it did and the sight is kept still."""
        traces = _traces(outcome)
        with self._lock:
            if traces is not None and name in self._kept:
                self._kept[name] = replace(self._kept[name], traces=traces)

    def _forget(self) -> None:
        """Drop what is too old or too many; the one that was used last is at the end."""
        oldest = self._clock() - self._seconds
        while self._kept:
            first = next(iter(self._kept))
            if len(self._kept) <= self._most and self._kept[first].used >= oldest:
                return
            del self._kept[first]


def _traces(outcome: Outcome) -> Traces | None:
    if isinstance(outcome, Calibration) and outcome.lines is not None:
        return outcome.lines.traces
    return None
