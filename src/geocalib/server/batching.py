"""Images of all clients in batches: as many at once as it makes sense to look at.
They are worked on in processes with a core each, or in this one, where an accelerator does most of
the work.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol, TypeVar

from geocalib.errors import GeoCalibError
from geocalib.pipeline.calibrator import Calibrator
from geocalib.pipeline.engines.load import EngineSpec
from geocalib.pipeline.parallel.stream import TOGETHER
from geocalib.pipeline.parallel.threads import LARGEST_BATCH
from geocalib.pipeline.parallel.workers import WorkerLostError, Workers
from geocalib.result.calibration import Failure
from geocalib.server.limits import ServerLimits
from geocalib.server.log import unexpected
from geocalib.server.requests import OptionsBody
from geocalib.server.stages import ServedAnswer, answers
from geocalib.server.uploads import Upload

WINDOW_SECONDS = 0.004
"""How long the first of a batch waits for others."""
UNEXPECTED = "image: something went wrong with it here, which is in the server's log"
RECENT = 0.2
"""Weight of the last batch in what is said of late ones."""


@dataclass(frozen=True)
class Item:
    """One image on its way."""

    image: Upload
    options: OptionsBody
    answer: Future[ServedAnswer] = field(default_factory=Future)


class Batcher:
    """Threads that each hand the next batch to the backend."""

    def __init__(
        self, backend: WorkerBackend, limits: ServerLimits, note: Callable[[int], None]
    ) -> None:
        """note: is given the size of every batch."""
        self._backend, self._limits, self._note = backend, limits, note
        self.seconds_each = 0.0
        """Between two images of late, when there is no lack of them."""
        self._idle, self._lock = 0, threading.Lock()
        self._items: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name="batches", daemon=True)
            for _ in range(backend.count)
        ]
        for thread in self._threads:
            thread.start()

    def add(self, image: Upload, options: OptionsBody) -> Future[ServedAnswer]:
        """The answer for an image, once it is there. Cancelled, the image is passed over."""
        item = Item(image, options)
        self._items.put(item)
        return item.answer

    def stop(self) -> None:
        """Finish what was added, and end."""
        for _ in self._threads:
            self._items.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (batch := self._next()) is not None:
            wanted = [item for item in batch if item.answer.set_running_or_notify_cancel()]
            if not wanted:
                continue
            self._note(len(wanted))
            began = time.monotonic()
            alike: dict[OptionsBody, list[Item]] = defaultdict(list)
            for item in wanted:
                alike[item.options].append(item)
            for options, items in alike.items():
                # Lines and rulers are of one photo: of another, the same ones say nothing.
                groups = [[item] for item in items] if options.options.of_one else [items]
                for group in groups:
                    self._answer(group)
            each = (time.monotonic() - began) / len(wanted) / self._backend.count
            self.seconds_each += RECENT * (each - self.seconds_each)

    def _next(self) -> list[Item] | None:
        """The next images; None if there will be no more."""
        with self._lock:
            self._idle += 1
        first = self._items.get()
        with self._lock:
            self._idle -= 1
        if first is None:
            return None
        time.sleep(WINDOW_SECONDS)
        # What waits is shared with those who have nothing to do.
        share = math.ceil((1 + self._items.qsize()) / (1 + self._idle))
        share = min(self._backend.most, share)
        batch = [first]
        while len(batch) < share:
            try:
                item = self._items.get_nowait()
            except queue.Empty:
                break
            if item is None:
                self._items.put(None)  # For the next round, which ends with it.
                break
            batch.append(item)
        return batch

    def _answer(self, items: Sequence[Item], tries: int = 2) -> None:
        """Answers to images with the same options. Where something goes wrong with several,
        each is tried alone: one must not spoil the others. tries: where a process ends, which may
        have nothing to do with its image."""
        images = [item.image for item in items]
        try:
            found = self._backend.ask(answers, images, items[0].options, self._limits)
        except GeoCalibError as error:  # What is requested of them cannot be.
            for item in items:
                item.answer.set_exception(error)
        except Exception as error:
            if len(items) > 1:
                for item in items:
                    self._answer([item])
            elif isinstance(error, WorkerLostError) and tries > 1:
                self._answer(items, tries - 1)
            else:
                unexpected(error)
                failure = Failure(images[0].name or None, None, None, UNEXPECTED)
                items[0].answer.set_result(ServedAnswer(failure, failure))
        else:
            for item, answer in zip(items, found, strict=True):
                item.answer.set_result(answer)


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
