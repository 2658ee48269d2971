"""Answers in the order of the questions, where some of those have failed before they were asked."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from geocalib.result.calibration import Failure, Outcome

Item = TypeVar("Item")


def interleaved(
    items: Iterable[Item | Failure], answer: Callable[[Iterator[Item]], Iterator[Outcome]]
) -> Iterator[Outcome]:
    """The outcome of each item, in order: failures are handed on, the others answered, which may
    run ahead."""
    order: deque[Failure | None] = deque()

    def asked() -> Iterator[Item]:
        for item in items:
            if isinstance(item, Failure):
                order.append(item)
            else:
                order.append(None)
                yield item

    for outcome in answer(asked()):
        while (failure := order.popleft()) is not None:
            yield failure
        yield outcome
    yield from (failure for failure in order if failure is not None)
