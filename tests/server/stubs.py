"""A calibrator that waits to be told, and a server of it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from geocalib import Calibrator
from geocalib.result.calibration import Failure


class Held:
    """A calibrator that looks at nothing until it is let go, and notes how much it looked at."""

    def __init__(self, calibrator: Calibrator) -> None:
        self._calibrator = calibrator
        self.free, self.looking = threading.Event(), threading.Event()
        self.batches: list[int] = []
        self.hated: dict[tuple[int, int], type[Exception]] = {}
        """Sizes of images that make a batch fail, and how."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._calibrator, name)

    def predict(self, images: Sequence[Any], **options: Any) -> Any:
        self.looking.set()
        assert self.free.wait(30)
        self.batches.append(len(images))
        for image in images:
            if not isinstance(image, Failure) and image.file.size in self.hated:
                raise self.hated[image.file.size]("what nobody expects")
        return self._calibrator.predict(images, **options)
