"""Images of all clients through the network together, as many as it takes at once."""

from __future__ import annotations

import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeVar

from geocalib.pipeline.calibrator import Calibrator
from geocalib.pipeline.predict import LARGEST_BATCH, Seen
from geocalib.pipeline.prepare import Prepared
from geocalib.pipeline.rotation import Mode
from geocalib.result.calibration import Failure, Outcome
from geocalib.server.requests import Options

WINDOW_SECONDS = 0.004
"""How long the first of a batch waits for others."""
RECENT = 0.2
"""Weight of the last batch in what is said of late ones."""


Member = TypeVar("Member")


@dataclass(frozen=True)
class Answer:
    """What became of one image."""

    sight: Seen | Failure
    outcome: Outcome | None
    """None where it is to be fitted together with others."""


@dataclass(frozen=True)
class Item:
    """One image on its way."""

    image: Prepared
    mode: Mode
    options: Options
    answer: Future[Answer] = field(default_factory=Future)


class Batcher:
    """A thread that takes images through the network and the fit."""

    def __init__(self, calibrator: Calibrator, note: Callable[[int], None]) -> None:
        """note: is told the size of every batch."""
        self._calibrator, self._note = calibrator, note
        self.seconds_each = 0.0
        """What an image took of late."""
        self._items: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="batches", daemon=True)
        self._thread.start()

    def add(self, image: Prepared, mode: Mode, options: Options) -> Future[Answer]:
        """The answer for an image, once it is there. Cancelled, the image is passed over."""
        item = Item(image, mode, options)
        self._items.put(item)
        return item.answer

    def stop(self) -> None:
        """Finish what was added, and end."""
        self._items.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (batch := self._next()) is not None:
            wanted = [item for item in batch if item.answer.set_running_or_notify_cancel()]
            if not wanted:
                continue
            self._note(len(wanted))
            began = time.monotonic()
            for alike in _grouped(wanted, [item.mode for item in wanted]):
                self._answer(alike)
            each = (time.monotonic() - began) / len(wanted)
            self.seconds_each += RECENT * (each - self.seconds_each)

    def _next(self) -> list[Item] | None:
        """The next images; None if there will be no more."""
        first = self._items.get()
        if first is None:
            return None
        batch, until = [first], time.monotonic() + WINDOW_SECONDS
        while len(batch) < LARGEST_BATCH:
            # Those that wait already are taken at once; for others, a moment.
            late = len(batch) >= self._calibrator.batch
            try:
                item = self._items.get(timeout=0 if late else max(0, until - time.monotonic()))
            except queue.Empty:
                break
            if item is None:
                self._items.put(None)  # For the next round, which ends with it.
                break
            batch.append(item)
        return batch

    def _answer(self, items: Sequence[Item]) -> None:
        """Answers to images of one mode. Where something goes wrong with several, each is tried
        alone: one must not spoil the others."""
        try:
            sights = self._calibrator.look(
                [item.image for item in items], any_rotation=items[0].mode
            )
            answers = self._fitted(items, sights)
        except Exception as error:
            if len(items) == 1:
                items[0].answer.set_exception(error)
                return
            for item in items:
                self._answer([item])
            return
        for item, answer in zip(items, answers, strict=True):
            item.answer.set_result(answer)

    def _fitted(self, items: Sequence[Item], sights: Sequence[Seen | Failure]) -> list[Answer]:
        """With outcomes, where images stand for themselves; those of equal options in one fit."""
        outcomes: dict[int, Outcome] = {}
        rows = [row for row, item in enumerate(items) if not item.options.shared]
        for alike in _grouped(rows, [items[row].options for row in rows]):
            options = items[alike[0]].options
            found = self._calibrator.fit(
                [sights[row] for row in alike],
                options.camera_model.value,
                lines=options.lines.value,
                **options.knowns,
            )
            outcomes.update(zip(alike, found, strict=True))
        return [Answer(sight, outcomes.get(row)) for row, sight in enumerate(sights)]


def _grouped(members: Sequence[Member], keys: Sequence[Hashable]) -> list[list[Member]]:
    groups: dict[Hashable, list[Member]] = defaultdict(list)
    for member, key in zip(members, keys, strict=True):
        groups[key].append(member)
    return list(groups.values())
