"""For the tests of commands: a calibrator that answers at once, and photos to give to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from PIL import Image
from typer.testing import Result

from calibrations import one
from geocalib.errors import GeoCalibError
from geocalib.imaging import is_blank, read_photo
from geocalib.pipeline.engines.load import EngineSpec
from geocalib.pipeline.options import AUTO, Options
from geocalib.result.calibration import Failure, Outcome
from geocalib.sets.grouping import group

Run = Callable[..., Result]
"""Runs a command, given its words and ``stdin`` as bytes."""


@dataclass(frozen=True)
class NothingToLoad:
    """In the place of ``EngineFuture``."""

    spec: EngineSpec


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
        return self.of(NothingToLoad(EngineSpec(weights, device, engine)))  # type: ignore[arg-type]

    def of(self, made: NothingToLoad) -> FakeCalibrator:
        self.opened.append((str(made.spec.weights), made.spec.device))
        self.engines.append(made.spec.engine)
        return self

    @property
    def card(self) -> SimpleNamespace:
        return SimpleNamespace(name="fake", trained=self.trained)

    @property
    def images(self) -> list[str]:
        """The names of all images seen, in order."""
        return [Path(image).name for images, _ in self.calls for image in images]

    def calibrate(
        self,
        images: Sequence[str],
        camera_model: str | None = None,
        *,
        options: Options | None = None,
        **known: Any,
    ) -> list[Outcome]:
        return self._answers(images, _asked(options, camera_model, known))

    def calibrate_many(
        self,
        images: Iterable[Any],
        camera_model: str | None = None,
        *,
        workers: int | None = None,
        options: Options | None = None,
        **known: Any,
    ) -> Iterator[Outcome]:
        """One by one; it is a call if there is an image."""
        asked = _asked(options, camera_model, known)
        self.workers = workers
        seen: list[Any] = []
        for image in images:
            if isinstance(image, str) and self.interrupt_at == Path(image).name:
                raise KeyboardInterrupt
            if not seen:
                self.calls.append((seen, asked))
            seen.append(image)
            yield self._one(image, asked["camera_model"])

    def calibrate_set(
        self,
        images: Sequence[str],
        camera_model: str | None = None,
        *,
        cameras: Sequence[int] | None = None,
        resume_in: Path | None = None,
        options: Options | None = None,
        **known: Any,
    ) -> Iterator[Outcome]:
        asked = _asked(options, camera_model, known)
        shared = asked.pop("shared_intrinsics", True)
        asked["cameras"] = group(images, shared) if cameras is None else cameras
        return iter(self._answers(images, {**asked, "resume_in": resume_in}))

    def _answers(self, images: Sequence[str], asked: dict[str, Any]) -> list[Outcome]:
        if self.interrupt_at in [Path(image).name for image in images]:
            raise KeyboardInterrupt
        self.calls.append((list(images), asked))
        return [self._one(image, asked["camera_model"]) for image in images]

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
        # Pictures of noise are of no lens that bends.
        model = "pinhole" if camera_model == AUTO else camera_model
        return replace(one(model, name, f=focal, **camera), warnings=(*photo.notes, *blank))


def _asked(
    options: Options | None, camera_model: str | None, known: dict[str, Any]
) -> dict[str, Any]:
    """What was asked by name: what commands always say, and what differs from the defaults."""
    asked = Options.create(options, camera_model, known)  # type: ignore[arg-type]
    always = ("camera_model", "exif", "keep_fields", "lines")
    return {name: getattr(asked, name) for name in dict.fromkeys((*always, *asked.given()))}


def picture(width: int = 64, height: int = 48, seed: int = 0) -> Image.Image:
    """Something with contrast."""
    pixels = np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)
