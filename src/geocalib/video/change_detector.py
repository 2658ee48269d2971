"""When measurements that disagree are outliers, and when they are a change.

A filter that rejects a measurement is challenged by one that starts from it. The challenger takes
over once it has accepted a few measurements in a row: they agree with each other, so something has
changed. One that does not last was made of outliers, and the old filter goes on without them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, Self, TypeVar

LEVEL = 1e-4
"""Probability of a measurement that is rejected although nothing is wrong with it."""

TAKE_OVER = 4
"""Measurements in a row that make a challenger the new filter."""

Z = TypeVar("Z")
Z_in = TypeVar("Z_in", contravariant=True)


class Filter(Protocol[Z_in]):
    """An estimate that measurements improve. It never changes; each update is another one."""

    def accepts(self, measurement: Z_in) -> bool:
        """Whether the measurement is what could be expected."""

    def updated(self, measurement: Z_in) -> Self:
        """The filter after one measurement more."""


F = TypeVar("F", bound=Filter)  # type: ignore[type-arg]


class ChangeDetector(Generic[F, Z]):
    """Follows measurements with the filter that fits them."""

    def __init__(self, start: Callable[[Z], F]) -> None:
        """start: a filter from its first measurement."""
        self._start = start
        self._challenger: F | None = None
        self._run: list[int] = []
        self.current: F | None = None
        self.segments: list[int | None] = []
        """For each measurement, the number of the filter it went into; None for outliers."""
        self.segment = 0
        """The number of the current filter: how many others there were before."""

    def add(self, measurement: Z | None) -> None:
        """The next measurement, None where it is missing."""
        self.segments.append(None)
        here = len(self.segments) - 1
        if measurement is None:
            return
        if self.current is None or self.current.accepts(measurement):
            self.current = self._grown(self.current, measurement)
            self.segments[here] = self.segment
            self._challenger, self._run = None, []
            return
        if self._challenger is None or not self._challenger.accepts(measurement):
            self._challenger, self._run = None, []
        self._challenger = self._grown(self._challenger, measurement)
        self._run.append(here)
        if len(self._run) == TAKE_OVER:
            self.segment += 1
            for number in self._run:
                self.segments[number] = self.segment
            self.current, self._challenger, self._run = self._challenger, None, []

    def _grown(self, filter: F | None, measurement: Z) -> F:
        return self._start(measurement) if filter is None else filter.updated(measurement)
