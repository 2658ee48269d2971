"""Any number of photos through the three stages, on every core, in order.

Where processors run the network, each worker process takes a few photos through all stages: nothing
but names and answers travels. Where an accelerator does, workers prepare and fit, and it runs the
network in this process in between. Each batch is then filled up to one size: which photos are seen
together depends on their order alone, so that the same photos in the same order get the same
answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from geocalib.arrays import to_numpy
from geocalib.errors import GeoCalibError, ImageError
from geocalib.geometry.fields import Fields
from geocalib.imaging import ImageSource, InputSpec
from geocalib.pipeline.engines.load import EngineSpec
from geocalib.pipeline.fit import fit_outputs
from geocalib.pipeline.job import Batch, Image, Job
from geocalib.pipeline.orientation import Pictures
from geocalib.pipeline.parallel.threads import threads
from geocalib.pipeline.parallel.workers import Workers
from geocalib.pipeline.predict import Engine, NetworkOutput, predict, run_network
from geocalib.pipeline.prepare import Prepared, path_of, prepare
from geocalib.records import dataclass
from geocalib.result.calibration import Failure, Outcome

FEW = 16
"""Photos for which starting workers does not pay."""
TOGETHER = 8
"""Photos that a worker takes at once: more are fitted for less, but come later."""
AHEAD = 2
"""Batches on their way for each worker."""
PIECE = 8
"""Photos of an accelerator's batch that a worker takes at once."""
NETWORK_THREADS = 2
"""Threads with the accelerator: one moves pixels and fields while it works for the other."""
BATCHES_AHEAD = 12
"""Batches on their way to the accelerator. Photos with lines take very different times and answers
come in order: with half as many, workers wait for the slowest of a batch."""
WHITE = 255
"""The brightest value of a byte."""

Photos = Batch[ImageSource]
Outputs = Batch[NetworkOutput | Failure]
Inputs = Future[list[Prepared | Failure]]
Outcomes = Future[list[Outcome]]
Result = TypeVar("Result")
Item = TypeVar("Item")


def batch_size(engine: Engine) -> int:
    """Photos that a worker takes at once, or that the accelerator does."""
    return TOGETHER if engine.on_processor else engine.batch


def stream(
    engine: Engine, spec: EngineSpec, batches: Iterable[Photos], workers: int | None
) -> Iterator[Outcome]:
    """The outcomes of all photos, in order, as they come.

    A photo that fails, or that a worker dies of, is a ``Failure``; what is wrong with the call is
    raised. spec: of the engine. workers: processes; by default as many as there are cores, but
    none for a few photos. 1 is none, too.
    """
    every = iter(batches)
    first: list[Photos] = []
    if workers is None:
        while sum(map(len, first)) <= FEW and (more := next(every, None)) is not None:
            first.append(more)
        workers = threads() if sum(map(len, first)) > FEW else 1
    every = chain(first, every)
    if workers == 1:
        for batch in every:
            yield from isolate_failures(partial(answer, engine), batch)
        return
    with Workers(workers) as pool:
        yield from (
            _whole(spec, every, pool) if engine.on_processor else _by_stages(engine, every, pool)
        )


def answer(engine: Engine, batch: Photos) -> list[Outcome]:
    """The outcomes of a few photos: all three stages."""
    job = batch.job
    outputs = list(
        run_network(
            engine, batch.images, job.lines == "auto", job.rotation, job.enabled.expects_photos
        )
    )
    return fit_outputs(job, outputs)


def isolate_failures(
    run: Callable[[Batch[Image]], Sequence[Result]], batch: Batch[Image]
) -> list[Result | Failure]:
    """What becomes of the photos of a batch; where it fails, of each by itself, so that one that
    fails costs the others nothing. What is wrong with the call is raised."""
    try:
        return list(run(batch))
    except Exception as error:
        if isinstance(error, GeoCalibError) and not isinstance(error, ImageError):
            raise
        if len(batch) > 1:
            return [found for one in batch.split(1) for found in isolate_failures(run, one)]
        path = _path(batch.images[0])
        reason = str(error).partition("\n")[0] or type(error).__name__
        return [Failure(path, None, None, f"{path or 'image'}: {reason}")]


def _path(image: Any) -> str | None:
    match image:
        case NetworkOutput():
            return image.file.path
        case Failure():
            return image.image
    return path_of(image)


def in_order(
    start: Callable[[Batch[Image]], Future[Result]], batches: Iterable[Batch[Image]], most: int
) -> Iterator[Result]:
    """What becomes of batches that are started, at most so many before the first of them is done
    and taken: those who ask for less get less done."""
    started: deque[Future[Result]] = deque()
    for batch in batches:
        started.append(start(batch))
        while started and (len(started) >= most or started[0].done()):
            yield started.popleft().result()
    while started:
        yield started.popleft().result()


def _whole(spec: EngineSpec, batches: Iterable[Photos], pool: Workers) -> Iterator[Outcome]:
    """Each batch through all stages in one worker."""
    ask = partial(pool.ask, _answer_in_worker, spec)
    answers = in_order(
        lambda batch: pool.submit(isolate_failures, ask, batch), batches, AHEAD * pool.count
    )
    return chain.from_iterable(answers)


def _answer_in_worker(spec: EngineSpec, batch: Photos) -> list[Outcome]:
    return answer(_engine(spec), batch)


@cache
def _engine(spec: EngineSpec) -> Engine:
    return spec.load()


def _by_stages(engine: Engine, batches: Iterable[Photos], pool: Workers) -> Iterator[Outcome]:
    """Workers prepare and fit, and the engine runs here."""
    full = FullBatches(engine)
    inputs = partial(pool.ask, _prepare_in_worker, full.spec)
    outcomes = partial(pool.ask, _fit_in_worker)

    def run(batch: Photos, parts: list[Inputs]) -> list[Outcomes]:
        images = [_unpacked(image) for part in parts for image in part.result()]
        outputs = predict(full, images, batch.job.rotation, batch.job.enabled.expects_photos)
        pieces = Batch(outputs, batch.job).split(PIECE)
        return [pool.submit(isolate_failures, outcomes, piece) for piece in pieces]

    def start(batch: Photos) -> Future[list[Outcomes]]:
        parts = [pool.submit(isolate_failures, inputs, piece) for piece in batch.split(PIECE)]
        return network.submit(run, batch, parts)

    with ThreadPoolExecutor(NETWORK_THREADS, "geocalib-network") as network:
        for pieces in in_order(start, batches, BATCHES_AHEAD):
            for piece in pieces:
                yield from piece.result()


@dataclass(frozen=True)
class Stages:
    """The three stages, for machines of their own: what one hands to the next travels well."""

    engine_spec: EngineSpec
    input_spec: InputSpec
    job: Job
    """The job of one photo."""

    def prepare(self, photos: Sequence[ImageSource]) -> list[Prepared | Failure]:
        """Run the first stage, on processors."""
        batch = Batch(photos, self.job.repeated(len(photos)))
        return isolate_failures(partial(_prepare_in_worker, self.input_spec), batch)

    def predict(
        self, engine: Engine, inputs: Sequence[Prepared | Failure]
    ) -> list[NetworkOutput | Failure]:
        """Run the second stage, where the engine is."""
        images = list(map(_unpacked, inputs))
        return predict(engine, images, self.job.rotation, self.job.enabled.expects_photos)

    def fit(self, outputs: Sequence[NetworkOutput | Failure]) -> list[Outcome]:
        """Run the third stage, on processors."""
        return isolate_failures(_fit_in_worker, Batch(outputs, self.job.repeated(len(outputs))))


def _prepare_in_worker(spec: InputSpec, batch: Photos) -> list[Prepared | Failure]:
    with_lines = batch.job.lines == "auto"
    return [_packed(prepare(photo, spec, with_lines)) for photo in batch.images]


def _fit_in_worker(batch: Outputs) -> list[Outcome]:
    return fit_outputs(batch.job, batch.images)


def _packed(image: Prepared | Failure) -> Prepared | Failure:
    """Its pixels as bytes: what travels between processes is as small as it can be without a
    loss."""
    if isinstance(image, Failure):
        return image
    levels: Any = np.rint(image.image * WHITE).astype(np.uint8)
    return replace(image, image=levels)


def _unpacked(image: Prepared | Failure) -> Prepared | Failure:
    if isinstance(image, Failure):
        return image
    return replace(image, image=np.asarray(image.image, np.float32) / np.float32(WHITE))


def interleaved(
    items: Iterable[Item | Failure], answer: Callable[[Iterator[Item]], Iterator[Outcome]]
) -> Iterator[Outcome]:
    """The outcome of each item, in order: failures are handed on, the others answered, which may
    run ahead."""
    order: deque[Failure | None] = deque()

    def waiting() -> Iterator[Item]:
        for item in items:
            if isinstance(item, Failure):
                order.append(item)
            else:
                order.append(None)
                yield item

    for outcome in answer(waiting()):
        while (failure := order.popleft()) is not None:
            yield failure
        yield outcome
    yield from (failure for failure in order if failure is not None)


ORIENTATION_BATCH = 8
"""Images whose orientation is wanted at once: the first run over all settles it for most."""


class FullBatches:
    """An engine whose batches are all of one size. See ``geocalib.pipeline.predict.Engine``.

    Which kernels an accelerator chooses, and so the last bits of what it computes, depends on the
    size of a batch. With one size they depend on the photo alone, and not on how many others came
    with it.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def spec(self) -> InputSpec:
        """What it wants to see."""
        return self._engine.spec

    @property
    def batch(self) -> int:
        """Images that it takes at once, always."""
        return self._engine.batch

    @property
    def on_processor(self) -> bool:
        """Whether the engine runs on processors."""
        return self._engine.on_processor

    @property
    def confidence_scale(self) -> float | None:
        """The scale of confidences, as ``FitOptions`` takes it."""
        return self._engine.confidence_scale

    @property
    def has_orientation(self) -> bool:
        """Whether it can tell how pictures stand."""
        return self._engine.has_orientation

    @property
    def has_focal_head(self) -> bool:
        """Whether a second network tells the focal length."""
        return self._engine.has_focal_head

    def predict(self, images: Pictures) -> Fields:
        """The fields of (B, 3, H, W) images, in the memory of this process: moved there at once,
        which is much quicker than image by image."""
        fields = self._engine.predict(_filled_up(images, self.batch))
        return fields[: len(images)].map(to_numpy)

    def predict_oriented(self, images: Pictures) -> tuple[Fields, Pictures]:
        """The fields likewise, and how the images stand."""
        fields, stands = self._engine.predict_oriented(_filled_up(images, self.batch))
        return fields[: len(images)].map(to_numpy), stands[: len(images)]

    def orientation(self, images: Pictures) -> Pictures:
        """(B, 4) log-probabilities that the images stand turned by 0 to 3 quarters, a few at a
        time."""
        pieces = [
            images[at : at + ORIENTATION_BATCH] for at in range(0, len(images), ORIENTATION_BATCH)
        ]
        return np.concatenate(
            [
                self._engine.orientation(_filled_up(piece, ORIENTATION_BATCH))[: len(piece)]
                for piece in pieces
            ]
        )

    def focal_estimate(self, images: Pictures) -> npt.NDArray[np.float64]:
        """(B, 2) the logarithm of the focal length by the diagonal, and its sigma."""
        return self._engine.focal_estimate(_filled_up(images, self.batch))[: len(images)]


def _filled_up(images: Pictures, count: int) -> Pictures:
    """The images, with the last one repeated until they are so many."""
    return np.concatenate([images, *[images[-1:]] * (count - len(images))])
