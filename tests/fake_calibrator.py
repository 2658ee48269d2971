"""For the tests of commands: a calibrator that answers at once, and photos to give to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from PIL import Image
from typer.testing import Result

from calibrations import one
from geocalib.errors import GeoCalibError
from geocalib.imaging import is_blank, read_photo
from geocalib.pipeline.calibrator import Calibrator
from geocalib.pipeline.engines import Recipe
from geocalib.result.calibration import Failure, Outcome

Run = Callable[..., Result]
"""Runs a command, given its words and ``stdin`` as bytes."""


@dataclass(frozen=True)
class NothingToLoad:
    """In the place of ``Loading``."""

    recipe: Recipe


@dataclass
class FakeCalibrator:
    """Reads images and takes keywords as the real one does; the camera it finds has a vFoV of 60
    degrees."""

    calls: list[tuple[list[str], dict[str, Any]]] = field(default_factory=list)
    """Images and keywords of each call."""
    opened: list[tuple[str, str]] = field(default_factory=list)
    """Weights and device of each construction."""
    engines: list[str] = field(default_factory=list)
    """Of each construction."""
    trained: bool = True
    interrupt_at: str | None = None
    """The name of an image that the user does not wait for."""
    device: str = "cpu"
    workers: int | None = None
    """Of the last call."""

    def __call__(self, weights: str, *, device: str, engine: str = "auto") -> FakeCalibrator:
        return self.of(NothingToLoad(Recipe(weights, engine, device)))  # type: ignore[arg-type]

    def of(self, made: NothingToLoad) -> FakeCalibrator:
        self.opened.append((str(made.recipe.weights), made.recipe.device))
        self.engines.append(made.recipe.engine)
        return self

    @property
    def card(self) -> SimpleNamespace:
        return SimpleNamespace(name="fake", trained=self.trained)

    @property
    def images(self) -> list[str]:
        """The names of all images seen, in order."""
        return [Path(image).name for images, _ in self.calls for image in images]

    def calibrate(
        self, images: Sequence[str], camera_model: str = "pinhole", **known: Any
    ) -> list[Outcome]:
        signature(Calibrator.calibrate).bind(self, images, camera_model, **known)
        return self._answers(images, camera_model, known)

    def calibrate_many(
        self,
        images: Iterable[Any],
        camera_model: str = "pinhole",
        *,
        workers: int | None = None,
        **known: Any,
    ) -> Iterator[Outcome]:
        """One by one; it is a call if there is an image."""
        signature(Calibrator.calibrate).bind(self, (), camera_model, **known)
        self.workers = workers
        seen: list[Any] = []
        for image in images:
            if isinstance(image, str) and self.interrupt_at == Path(image).name:
                raise KeyboardInterrupt
            if not seen:
                self.calls.append((seen, {"camera_model": camera_model, **known}))
            seen.append(image)
            yield self._one(image, camera_model)

    def calibrate_set(
        self, images: Sequence[str], camera_model: str = "pinhole", **known: Any
    ) -> Iterator[Outcome]:
        signature(Calibrator.calibrate_set).bind(self, images, camera_model, **known)
        return iter(self._answers(images, camera_model, known))

    def _answers(
        self, images: Sequence[str], camera_model: str, known: dict[str, Any]
    ) -> list[Outcome]:
        if self.interrupt_at in [Path(image).name for image in images]:
            raise KeyboardInterrupt
        self.calls.append((list(images), {"camera_model": camera_model, **known}))
        return [self._one(image, camera_model) for image in images]

    def _one(self, image: Any, camera_model: str) -> Outcome:
        try:
            photo = read_photo(image)
        except GeoCalibError as error:
            return Failure(image if isinstance(image, str) else None, None, None, str(error))
        width, height = photo.size
        camera = {"size": photo.size, "c": (width / 2, height / 2)}
        focal = height / (2 * math.tan(math.radians(30)))
        blank = ("the photo shows next to nothing",) if is_blank(photo.pixels) else ()
        name = image if isinstance(image, str) else None
        return replace(one(camera_model, name, f=focal, **camera), warnings=(*photo.notes, *blank))


def picture(width: int = 64, height: int = 48, seed: int = 0) -> Image.Image:
    """Something with contrast."""
    pixels = np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)
