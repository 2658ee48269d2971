"""Where batches are worked on: in processes with a core each, or in this one, where an accelerator
does most of the work."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Protocol, TypeVar

from geocalib.pipeline.calibrator import Calibrator
from geocalib.pipeline.engines.load import EngineSpec
from geocalib.pipeline.parallel.stream import TOGETHER
from geocalib.pipeline.parallel.threads import LARGEST_BATCH
from geocalib.pipeline.parallel.workers import Workers

Result = TypeVar("Result")


class WorkerBackend(Protocol):
    """Threads may ask at the same time."""

    @property
    def count(self) -> int:
        """How many can work at the same time."""

    @property
    def most(self) -> int:
        """Images that it makes sense to ask about at once."""

    def ask(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """What a function of ``geocalib.server.stages`` returns."""

    def stop(self) -> None:
        """When nothing more is needed."""


class InProcess:
    """This process: one batch is read while the accelerator looks at another."""

    count = 2
    most = LARGEST_BATCH

    def __init__(self, calibrator: Calibrator) -> None:
        self._calibrator = calibrator

    def ask(self, work: Callable[..., Result], *arguments: Any) -> Result:
        return work(self._calibrator, *arguments)

    def stop(self) -> None:
        pass


class Processes:
    """Others. A photo that one of them dies of costs nothing but its own answer."""

    most = TOGETHER

    def __init__(self, spec: EngineSpec, count: int) -> None:
        self.count, self._spec, self._workers = count, spec, Workers(count)
        # They start now, and not at the first request.
        for ready in [self._workers.submit(self.ask, _nothing) for _ in range(count)]:
            ready.result()

    def ask(self, work: Callable[..., Result], *arguments: Any) -> Result:
        return self._workers.ask(_done, self._spec, work, arguments)

    def stop(self) -> None:
        self._workers.__exit__()


def _done(spec: EngineSpec, work: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
    """Do the work within a worker process."""
    return work(_calibrator(spec), *arguments)


@cache
def _calibrator(spec: EngineSpec) -> Calibrator:
    return Calibrator.of(spec)


def _nothing(_: Calibrator) -> None:
    pass
