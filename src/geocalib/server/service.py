"""What a server does, apart from HTTP: images through the stages of a calibrator."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from geocalib.errors import ImageError
from geocalib.imaging import read_size
from geocalib.pipeline.calibrator import Calibrator, rotation_of
from geocalib.pipeline.predict import Seen
from geocalib.pipeline.prepare import Prepared
from geocalib.pipeline.request import Lines
from geocalib.pipeline.rotation import Mode
from geocalib.result.calibration import Failure, Outcome
from geocalib.server.batching import Answer, Batcher
from geocalib.server.cache import Sights
from geocalib.server.limits import MEGA, Limits, busy
from geocalib.server.requests import Options
from geocalib.server.uploads import Budget, Upload

Result = TypeVar("Result")


@dataclass(frozen=True)
class Answered:
    """An outcome, and the id by which it can be asked for again."""

    name: str
    outcome: Outcome
    id: str | None

    @property
    def record(self) -> dict[str, Any]:
        """As ``--json`` has it, with the id."""
        return {**self.outcome.to_dict(), "id": self.id, "name": self.name}


class Service:
    """One calibrator for all clients."""

    def __init__(self, calibrator: Calibrator, limits: Limits) -> None:
        self.calibrator, self.limits = calibrator, limits
        self.sights = Sights(limits.kept, 60 * limits.kept_minutes)
        self.budget = Budget(limits.upload_bytes)
        self.waiting = 0
        """Images that were accepted and have no answer yet."""
        self._batcher = Batcher(calibrator)
        # To read a photo and to find its lines leaves Python to others most of the time.
        self._pool = ThreadPoolExecutor(max(2, os.cpu_count() or 1), "work")

    def stop(self) -> None:
        """Finish what was accepted."""
        self._pool.shutdown()
        self._batcher.stop()

    async def calibrate(self, images: Sequence[Upload], options: Options) -> list[Answered]:
        """The answer for each image, in order."""
        knowns = options.knowns
        self.calibrator.check(
            len(images), options.camera_model.value, lines=options.lines.value, **knowns
        )
        mode = rotation_of("auto", knowns.get("gravity"), knowns.get("roll_deg"))
        with self._places(len(images)):
            each = (self._calibrate(image, mode, options) for image in images)
            answers = await asyncio.gather(*each)
            if options.shared:
                outcomes = await self.fit([answer.sight for answer in answers], options)
            else:
                outcomes = [answer.outcome or _failed(answer.sight) for answer in answers]
        return [
            Answered(image.name, outcome, self._keep(answer.sight))
            for image, answer, outcome in zip(images, answers, outcomes, strict=True)
        ]

    async def fit(self, sights: Sequence[Seen | Failure], options: Options) -> list[Outcome]:
        """The outcomes of what was seen."""
        return await self.run(
            lambda: self.calibrator.fit(
                sights, options.camera_model.value, lines=options.lines.value, **options.knowns
            )
        )

    async def run(self, work: Callable[[], Result]) -> Result:
        """The result of some work, done in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def _calibrate(self, image: Upload, mode: Mode, options: Options) -> Answer:
        with_lines = options.lines is not Lines.OFF
        prepared = await self.run(lambda: self._prepare(image, with_lines))
        if isinstance(prepared, Failure):
            return Answer(prepared, prepared)
        return await asyncio.wrap_future(self._batcher.add(prepared, mode, options))

    def _prepare(self, image: Upload, lines: bool) -> Prepared | Failure:
        name = image.name or None
        try:
            size = read_size(image.data)
        except ImageError as error:
            return Failure(name, None, None, str(error))
        if size[0] * size[1] > self.limits.pixels:
            most = self.limits.pixels / MEGA
            sentence = f"image is {size[0]}x{size[1]} pixels, more than {most:g} megapixels"
            return Failure(name, *size, f"{sentence}; shrink it first")
        prepared = self.calibrator.prepare(image.data, lines=lines)
        if isinstance(prepared, Failure):
            return replace(prepared, image=name)
        file = replace(prepared.file, path=name, name=name or "image")
        return replace(prepared, file=file)

    def _keep(self, sight: Seen | Failure) -> str | None:
        return None if isinstance(sight, Failure) else self.sights.keep(sight)

    @contextmanager
    def _places(self, count: int) -> Iterator[None]:
        if self.waiting and self.waiting + count > self.limits.queue:
            raise busy()
        self.waiting += count
        try:
            yield
        finally:
            self.waiting -= count


def _failed(sight: Seen | Failure) -> Failure:
    assert isinstance(sight, Failure)
    return sight
