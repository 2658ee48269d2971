"""What was seen of each picture of a set, kept on disk until all of them are done.

The network takes hours for thousands of pictures, and their fit needs them all: so a run that was
interrupted finds here what it has seen already. A record belongs to a file as it is (path, size,
time of change) and to the options it was calibrated with.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from geocalib.errors import FormatError
from geocalib.files import replacing
from geocalib.sets.image_record import ImageRecord

SUFFIX = ".record"
"""What the names of records end in."""

S = TypeVar("S")
T = TypeVar("T")


class ResumeCache:
    """A folder of records, from which an interrupted run resumes."""

    def __init__(self, folder: Path, options: str) -> None:
        """options: all else that the records depend on, as any text."""
        self.folder = folder
        self._options = options
        folder.mkdir(parents=True, exist_ok=True)

    def images(
        self, images: Sequence[S], see: Callable[[Sequence[S]], Iterator[T]]
    ) -> Iterator[T | ImageRecord]:
        """Each picture as its record in the cache, or else from ``see``, a few at a time."""
        there = [self._exists(image) for image in images]
        fresh = see([image for image, known in zip(images, there, strict=True) if not known])
        for image, known in zip(images, there, strict=True):
            yield self._read(image) if known else next(fresh)

    def _exists(self, image: object) -> bool:
        place = self._place(image)
        return place is not None and place.exists()

    def _read(self, image: object) -> ImageRecord:
        place = self._place(image)
        assert place is not None
        try:
            return ImageRecord.from_bytes(place.read_bytes(), str(place))
        except OSError as error:
            raise self._useless(f"{place} cannot be read ({error.strerror})") from error
        except FormatError as error:
            raise self._useless(str(error)) from error

    def _useless(self, why: str) -> FormatError:
        return FormatError(f"{why}; delete {self.folder} to start again")

    def keep(self, record: ImageRecord) -> None:
        """Put a record there; one of a picture that is no file is not kept."""
        place = self._place(record.file.path)
        if place is not None:
            with replacing(place) as file:
                file.write(record.to_bytes())

    def _place(self, image: object) -> Path | None:
        if not isinstance(image, str | os.PathLike):
            return None
        try:
            state = os.stat(image)
        except OSError:
            return None
        key = (os.path.abspath(image), state.st_size, state.st_mtime_ns, self._options)
        return self.folder / f"{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}{SUFFIX}"


def clear(folder: Path) -> None:
    """Remove the records of a folder, and the folder if nothing else is in it."""
    for record in folder.glob(f"*{SUFFIX}"):
        record.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()
