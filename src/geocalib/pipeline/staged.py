"""The stages apart: workers prepare and solve, and an accelerator in this process sees in between.

Each chunk is one batch, filled up to one size. Which photos are seen together depends on their
order alone, so that the same photos in the same order get the same answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from geocalib.imaging import ImageSource, InputSpec
from geocalib.pipeline.chunks import Chunk, apart, in_order
from geocalib.pipeline.engines import Recipe
from geocalib.pipeline.full_batches import FullBatches
from geocalib.pipeline.predict import Engine, Seen, predict
from geocalib.pipeline.prepare import Prepared, prepare
from geocalib.pipeline.question import Question
from geocalib.pipeline.solve import solve
from geocalib.pipeline.workers import Workers
from geocalib.records import dataclass
from geocalib.result.calibration import Failure, Outcome

PIECE = 8
"""Photos of a batch that a worker takes at once."""
LOOKING = 2
"""Threads with the accelerator: one moves pixels and fields while it works for the other."""
AHEAD = 12
"""Batches on their way. Photos with lines take very different times and answers come in order: with
half as many, workers wait for the slowest of a batch."""

WHITE = 255
"""The brightest value of a byte."""

Photos = Chunk[ImageSource]
Sights = Chunk[Seen | Failure]
Inputs = Future[list[Prepared | Failure]]
Outcomes = Future[list[Outcome]]


def by_stages(engine: Engine, batches: Iterable[Photos], pool: Workers) -> Iterator[Outcome]:
    """The outcomes of all photos, in order, as they come."""
    full = FullBatches(engine)
    inputs = partial(pool.ask, _prepare, full.spec)
    outcomes = partial(pool.ask, _solve)

    def look(batch: Photos, parts: list[Inputs]) -> list[Outcomes]:
        images = [_unpacked(image) for part in parts for image in part.result()]
        sights = predict(full, images, batch.any_rotation, batch.task.enabled.photos)
        seen = Chunk(sights, batch.task, batch.with_lines, batch.any_rotation)
        return [pool.submit(apart, outcomes, piece) for piece in seen.split(PIECE)]

    def start(batch: Photos) -> Future[list[Outcomes]]:
        parts = [pool.submit(apart, inputs, piece) for piece in batch.split(PIECE)]
        return network.submit(look, batch, parts)

    with ThreadPoolExecutor(LOOKING, "geocalib-network") as network:
        for pieces in in_order(start, batches, AHEAD):
            for piece in pieces:
                yield from piece.result()


@dataclass(frozen=True)
class Stages:
    """The three stages, for machines of their own: what one hands to the next travels well."""

    recipe: Recipe
    """Of the engine."""
    spec: InputSpec
    question: Question
    """About one photo."""

    def prepare(self, photos: Sequence[ImageSource]) -> list[Prepared | Failure]:
        """Where there are processors."""
        return apart(partial(_prepare, self.spec), self.question.repeated(photos))

    def see(self, engine: Engine, inputs: Sequence[Prepared | Failure]) -> list[Seen | Failure]:
        """Where the engine is."""
        images = list(map(_unpacked, inputs))
        question = self.question
        return predict(engine, images, question.any_rotation, question.task.enabled.photos)

    def solve(self, sights: Sequence[Seen | Failure]) -> list[Outcome]:
        """Where there are processors."""
        task = self.question.repeated([b""] * len(sights)).task
        chunk = Chunk(sights, task, self.question.with_lines, self.question.any_rotation)
        return apart(_solve, chunk)


def _prepare(spec: InputSpec, chunk: Photos) -> list[Prepared | Failure]:
    """In a worker."""
    return [_packed(prepare(photo, spec, chunk.with_lines)) for photo in chunk.photos]


def _solve(chunk: Sights) -> list[Outcome]:
    """In a worker."""
    return solve(chunk.task, chunk.photos)


# What travels between processes is as small as it can be without a loss.


def _packed(image: Prepared | Failure) -> Prepared | Failure:
    if isinstance(image, Failure):
        return image
    levels: Any = np.rint(image.image * WHITE).astype(np.uint8)
    return replace(image, image=levels)


def _unpacked(image: Prepared | Failure) -> Prepared | Failure:
    if isinstance(image, Failure):
        return image
    return replace(image, image=np.asarray(image.image, np.float32) / np.float32(WHITE))
