"""The parts of a plan on this machine: one stream of photos on all its cores."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial

from geocalib.batch.photos import photos_of
from geocalib.batch.plan import PhotoPart
from geocalib.pipeline.calibrator import Calibrator
from geocalib.pipeline.options import Options
from geocalib.pipeline.parallel.stream import interleaved
from geocalib.result.calibration import Failure, Outcome

Named = tuple[str, Outcome]


def answers(
    parts: Sequence[PhotoPart], calibrator: Calibrator, options: Options, workers: int | None
) -> Iterator[tuple[PhotoPart, list[Named]]]:
    """Each part, when all its photos have their outcomes."""
    names: deque[str] = deque()

    def photos() -> Iterator[str | bytes | Failure]:
        for part in parts:
            for name, source in photos_of(part):
                names.append(name)
                yield source

    many = partial(calibrator.calibrate_many, workers=workers, options=options)
    outcomes = interleaved(photos(), many)
    for part in parts:
        # The name is there as soon as there is an outcome.
        yield part, [_named(next(outcomes), names) for _ in part.entries]


def _named(outcome: Outcome, names: deque[str]) -> Named:
    return names.popleft(), outcome
