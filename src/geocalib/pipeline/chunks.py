"""A few photos at a time, of any number: what is asked about them, and answers in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Generic, TypeVar

from geocalib.errors import GeoCalibError, ImageError
from geocalib.pipeline.predict import Seen
from geocalib.pipeline.prepare import path_of
from geocalib.pipeline.rotation import Mode
from geocalib.pipeline.solve import Task
from geocalib.records import dataclass
from geocalib.result.calibration import Failure

Photo = TypeVar("Photo")
"""What a photo is: a source, or what a network has seen in it."""
Result = TypeVar("Result")


@dataclass(frozen=True)
class Chunk(Generic[Photo]):
    """A few photos, and what is asked about them."""

    photos: Sequence[Photo]
    task: Task
    with_lines: bool
    any_rotation: Mode

    def __len__(self) -> int:
        return len(self.photos)

    def split(self, size: int) -> list[Chunk[Photo]]:
        """Parts of that size, in order; the last may be smaller."""
        parts = [range(at, min(at + size, len(self))) for at in range(0, len(self), size)]
        return [
            replace(self, photos=[self.photos[row] for row in rows], task=self.task[rows])
            for rows in parts
        ]


def apart(
    run: Callable[[Chunk[Photo]], Sequence[Result]], chunk: Chunk[Photo]
) -> list[Result | Failure]:
    """What becomes of the photos of a chunk; where it fails, of each by itself, so that one that
    fails costs the others nothing. What is wrong with the call is raised."""
    try:
        return list(run(chunk))
    except Exception as error:
        if isinstance(error, GeoCalibError) and not isinstance(error, ImageError):
            raise
        if len(chunk) > 1:
            return [found for one in chunk.split(1) for found in apart(run, one)]
        path = _path(chunk.photos[0])
        reason = str(error).partition("\n")[0] or type(error).__name__
        return [Failure(path, None, None, f"{path or 'image'}: {reason}")]


def _path(photo: Any) -> str | None:
    match photo:
        case Seen():
            return photo.file.path
        case Failure():
            return photo.image
    return path_of(photo)


def in_order(
    start: Callable[[Chunk[Photo]], Future[Result]], chunks: Iterable[Chunk[Photo]], most: int
) -> Iterator[Result]:
    """What becomes of chunks that are started, at most so many before the first of them is done
    and taken: those who ask for less get less done."""
    started: deque[Future[Result]] = deque()
    for chunk in chunks:
        started.append(start(chunk))
        while started and (len(started) >= most or started[0].done()):
            yield started.popleft().result()
    while started:
        yield started.popleft().result()
