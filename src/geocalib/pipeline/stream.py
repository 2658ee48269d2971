"""Any number of photos through the three stages, on every core, in order.

Where processors run the network, each worker process takes a few photos through all stages: nothing
but names and answers travels. Where an accelerator does, ``geocalib.pipeline.staged`` keeps it fed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, partial
from itertools import chain

from geocalib.imaging import ImageSource
from geocalib.pipeline.chunks import Chunk, apart, in_order
from geocalib.pipeline.engines import Recipe
from geocalib.pipeline.predict import Engine, see
from geocalib.pipeline.solve import solve
from geocalib.pipeline.staged import by_stages
from geocalib.pipeline.threads import threads
from geocalib.pipeline.workers import Workers
from geocalib.result.calibration import Outcome

FEW = 16
"""Photos for which starting workers does not pay."""
TOGETHER = 8
"""Photos that a worker takes at once: more are fitted for less, but come later."""
AHEAD = 2
"""Chunks on their way for each worker."""


Photos = Chunk[ImageSource]


def size_of_chunks(engine: Engine) -> int:
    """Photos: those that a worker takes at once, or a batch."""
    return TOGETHER if engine.on_processor else engine.batch


def stream(
    engine: Engine, recipe: Recipe, chunks: Iterable[Photos], workers: int | None
) -> Iterator[Outcome]:
    """The outcomes of all photos, in order, as they come.

    A photo that fails, or that a worker dies of, is a ``Failure``; what is wrong with the call is
    raised. recipe: of the engine. workers: processes; by default as many as there are cores, but
    none for a few photos. 1 is none, too.
    """
    every = iter(chunks)
    first: list[Photos] = []
    if workers is None:
        while sum(map(len, first)) <= FEW and (more := next(every, None)) is not None:
            first.append(more)
        workers = threads() if sum(map(len, first)) > FEW else 1
    every = chain(first, every)
    if workers == 1:
        for chunk in every:
            yield from apart(partial(answer, engine), chunk)
        return
    with Workers(workers) as pool:
        yield from (
            _whole(recipe, every, pool) if engine.on_processor else by_stages(engine, every, pool)
        )


def answer(engine: Engine, chunk: Photos) -> list[Outcome]:
    """The outcomes of a few photos: all three stages."""
    sights = list(
        see(
            engine,
            chunk.photos,
            chunk.with_lines,
            chunk.any_rotation,
            with_opinions=chunk.task.enabled.photos,
        )
    )
    return solve(chunk.task, sights)


def _whole(recipe: Recipe, chunks: Iterable[Photos], pool: Workers) -> Iterator[Outcome]:
    ask = partial(pool.ask, _answer_by, recipe)
    answers = in_order(lambda chunk: pool.submit(apart, ask, chunk), chunks, AHEAD * pool.count)
    return chain.from_iterable(answers)


def _answer_by(recipe: Recipe, chunk: Photos) -> list[Outcome]:
    """In a worker."""
    return answer(_engine(recipe), chunk)


@cache
def _engine(recipe: Recipe) -> Engine:
    return recipe.load()
