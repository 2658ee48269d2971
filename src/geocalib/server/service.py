"""What a server does, apart from HTTP: images through the stages of a calibrator."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from geocalib.pipeline.calibrator import Calibrator
from geocalib.pipeline.options import Options
from geocalib.pipeline.parallel.workers import WorkerLostError
from geocalib.pipeline.predict import NetworkOutput
from geocalib.result.calibration import Calibration, Failure, Outcome
from geocalib.server.batching import Batcher, InProcess, Processes, WorkerBackend
from geocalib.server.cache import PhotoCache
from geocalib.server.grids import output_of
from geocalib.server.limits import RefusedError, ServerLimits, busy
from geocalib.server.metrics import Metrics
from geocalib.server.requests import OptionsBody, RefitRequest, RenderRequest
from geocalib.server.stages import picture
from geocalib.server.uploads import Upload, UploadBudget

LONGEST_WAIT = 60
"""Seconds that a client has to wait, at most."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Answered:
    """An outcome, and the id by which it can be found again."""

    name: str
    outcome: Outcome
    id: str | None

    @property
    def record(self) -> dict[str, Any]:
        """As ``--json`` has it, with the id."""
        return {**self.outcome.to_dict(), "id": self.id, "name": self.name}


class Service:
    """One calibrator for all clients. But for ``stop``, to be called from one event loop."""

    def __init__(self, calibrator: Calibrator, limits: ServerLimits, workers: int) -> None:
        """workers: processes to do the work; 0: this one."""
        self.calibrator, self.limits = calibrator, limits
        self.outputs = PhotoCache(limits.kept, 60 * limits.kept_minutes)
        self.budget = UploadBudget(limits.upload_bytes)
        self.ready = True
        self._waiting = 0
        self.metrics = Metrics(lambda: self._waiting, lambda: len(self.outputs))
        self._backend: WorkerBackend = (
            Processes(calibrator.engine_spec, workers) if workers else InProcess(calibrator)
        )
        self._batcher = Batcher(self._backend, limits, self.metrics.batches.observe)
        self._pictures = ThreadPoolExecutor(self._backend.count, "pictures")
        # Those who drag a slider do not wait for the photos of others.
        self._fits = ThreadPoolExecutor(2, "fits")

    def stop(self) -> None:
        """Finish what was accepted, and stop."""
        self.ready = False
        self._pictures.shutdown()
        self._fits.shutdown()
        self._batcher.stop()
        self._backend.stop()

    async def calibrate(self, images: Sequence[Upload], body: OptionsBody) -> list[Answered]:
        """The answer for each image, in order."""
        options = body.options
        self.calibrator.check(len(images), options=options)
        with self._places(len(images)):
            waiting = [self._batcher.add(image, body) for image in images]
            answers = await asyncio.gather(*map(asyncio.wrap_future, waiting))
            outcomes = [answer.outcome for answer in answers]
            if options.shared_intrinsics:
                outcomes = [*await self._fit([answer.output for answer in answers], options)]
        return [
            self._answered(image.name, answer.output, outcome)
            for image, answer, outcome in zip(images, answers, outcomes, strict=True)
        ]

    async def refit(self, wanted: RefitRequest) -> list[Answered]:
        """The answers of what was seen before, with other things known."""
        if wanted.fields is not None:
            sent = output_of(wanted.fields)
            with self._places(1):
                (outcome,) = await self._fit([sent], wanted.options)
            return [Answered("", outcome, None)]
        if len(wanted.names) > self.limits.images:
            raise RefusedError(422, f"more than {self.limits.images} ids; send fewer at a time")
        outputs = [self.outputs.find(name).output for name in wanted.names]
        with self._places(len(outputs)):
            outcomes = await self._fit(outputs, wanted.options)
        for name, outcome in zip(wanted.names, outcomes, strict=True):
            self.outputs.renew(name, outcome)
        return [
            Answered(output.file.path or "", outcome, name)
            for output, outcome, name in zip(outputs, outcomes, wanted.names, strict=True)
        ]

    async def render(self, image: Upload, wanted: RenderRequest) -> bytes:
        """The file of a picture."""
        with self._places(1):
            calibration = await self._calibration(wanted)
            draw = partial(self._backend.ask, picture, image, calibration, wanted, self.limits)
            try:
                return await _in(self._pictures, draw)
            except WorkerLostError as error:
                raise RefusedError(422, f"image: {error}") from None

    async def _calibration(self, wanted: RenderRequest) -> Calibration:
        if wanted.record is not None:
            return Calibration.from_dict(wanted.record)
        output = self.outputs.find(wanted.id or "").output
        (outcome,) = await self._fit([output], wanted.options)
        if isinstance(outcome, Failure):
            raise RefusedError(422, outcome.error)
        return outcome

    async def _fit(
        self, outputs: Sequence[NetworkOutput | Failure], options: Options
    ) -> list[Outcome]:
        """The outcomes of what was seen."""
        return await _in(self._fits, partial(self.calibrator.fit, outputs, options=options))

    def _answered(
        self, name: str, output: NetworkOutput | Failure, outcome: Outcome | None
    ) -> Answered:
        assert outcome is not None  # Those that are fitted together have theirs by now.
        self.metrics.images.labels("ok" if outcome.ok else "failed").inc()
        kept = None if isinstance(output, Failure) else self.outputs.keep(output, outcome)
        return Answered(name, outcome, kept)

    @contextmanager
    def _places(self, count: int) -> Iterator[None]:
        """So many images wait for an answer; a refusal if there is no room for them."""
        if self._waiting and self._waiting + count > self.limits.queue:
            wait = math.ceil(self._waiting * self._batcher.seconds_each)
            raise busy(min(max(1, wait), LONGEST_WAIT))
        self._waiting += count
        try:
            yield
        finally:
            self._waiting -= count


async def _in(pool: ThreadPoolExecutor, work: Callable[[], Result]) -> Result:
    """The result of some work, done in a thread."""
    return await asyncio.get_running_loop().run_in_executor(pool, work)
