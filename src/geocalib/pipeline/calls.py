"""What a ``Calibrator`` does when it is asked.

Apart from it, as this needs nearly everything: it is imported while the network is being opened,
and not before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from geocalib.cameras import get_model
from geocalib.cameras.base import CameraModel
from geocalib.errors import ConfigError
from geocalib.files.image_files import content_of
from geocalib.imaging import ImageSource
from geocalib.pipeline.arguments import (
    CameraModels,
    Knowns,
    LinesMode,
    Options,
    alone_of,
    listed,
    models_of,
)
from geocalib.pipeline.engines import Recipe
from geocalib.pipeline.lines_alone import (
    check_lines,
    check_nothing_told,
    lines_of_image,
    lines_of_sight,
)
from geocalib.pipeline.predict import Seen, predict, see
from geocalib.pipeline.prepare import Prepared, prepare
from geocalib.pipeline.question import Question, errors_of, groups_of, rotation_of, warnings_of
from geocalib.pipeline.rotation import AnyRotation, Mode, mode_of
from geocalib.pipeline.solve import Task, solve
from geocalib.pipeline.staged import Stages
from geocalib.pipeline.stream import answer, size_of_chunks, stream
from geocalib.priors.enabled import EnabledPriors
from geocalib.result.calibration import Calibration, Failure, Outcome
from geocalib.solver.coupling import couple
from geocalib.solver.known import Given

if TYPE_CHECKING:
    from geocalib.pipeline.onnx_engine import OnnxEngine
    from geocalib.pipeline.torch_engine import TorchEngine


class Calls:
    """The methods of ``Calibrator``, which tells what they do, by an engine."""

    def __init__(self, recipe: Recipe, engine: OnnxEngine | TorchEngine) -> None:
        """recipe: of the engine, for other processes."""
        self.recipe, self.engine = recipe, engine

    def calibrate(
        self,
        images: ImageSource | Iterable[ImageSource],
        camera_model: CameraModels,
        **options: Unpack[Options],
    ) -> Calibration | list[Outcome]:
        sources, alone = listed(images)
        outcomes = self._outcomes(sources, camera_model, alone, **options)
        return alone_of(outcomes) if alone else outcomes

    def _outcomes(
        self,
        sources: Sequence[ImageSource],
        camera_model: CameraModels,
        alone: bool,
        *,
        lines: LinesMode = "auto",
        any_rotation: AnyRotation = "auto",
        **known: Unpack[Knowns],
    ) -> list[Outcome]:
        """Of each image. alone: of one that is asked about by itself."""
        check_lines(lines)
        rotation = rotation_of(any_rotation, known.get("gravity"), known.get("roll_deg"))
        models, count = models_of(camera_model, len(sources)), len(sources)
        if count == 0:
            return []
        if lines == "only":
            check_nothing_told(known, rotation)
            return list(map(lines_of_image, sources, models))
        # What is wrong with the call is said before the network has seen the images.
        question = self._question(models, lines, any_rotation, **known)
        rows, chunks = zip(*question.chunks(sources, size_of_chunks(self.engine)), strict=True)
        answers: Iterator[Outcome]
        if alone or not question.coupling.separate:
            answers = chain.from_iterable(answer(self.engine, chunk) for chunk in chunks)
        else:
            answers = stream(self.engine, self.recipe, chunks, None)
        by_row = dict(zip(chain.from_iterable(rows), answers, strict=True))
        return [by_row[index] for index in range(count)]

    def calibrate_many(
        self,
        images: Iterable[ImageSource],
        camera_model: str | CameraModel,
        workers: int | None,
        **options: Unpack[Options],
    ) -> Iterator[Outcome]:
        if options.get("shared_intrinsics") or options.get("rig") is not None:
            raise ConfigError("images that share a camera or a rig go to calibrate, or to a set")
        if workers is not None and workers < 1:
            raise ConfigError(f"workers is {workers}; at least 1 is needed")
        lines, model = options.get("lines", "auto"), get_model(camera_model)
        check_lines(lines)
        if lines == "only":
            each = (self._outcomes([image], model, alone=False, **options) for image in images)
            return chain.from_iterable(each)
        question = Question.create([model], self.engine.card, **options)
        size, every = size_of_chunks(self.engine), map(content_of, images)
        few = iter(lambda: list(islice(every, size)), [])
        return stream(self.engine, self.recipe, map(question.repeated, few), workers)

    def stages(self, camera_model: str | CameraModel, **options: Unpack[Options]) -> Stages:
        question = Question.create([get_model(camera_model)], self.engine.card, **options)
        return Stages(self.recipe, self.engine.spec, question)

    def calibrate_set(
        self,
        images: Iterable[ImageSource],
        camera_model: str | CameraModel,
        cameras: Sequence[int] | None,
        resume_in: Path | None,
        **options: Unpack[Options],
    ) -> Iterator[Outcome]:
        from geocalib.sets.album import Method
        from geocalib.sets.calibrate import fit_set
        from geocalib.sets.shelf import Shelf

        images = list(images)
        model, count = get_model(camera_model), len(images)
        if count == 0:
            return iter(())
        groups = groups_of(True if cameras is None else cameras, count)
        coupling = couple(count, groups, None)
        given = Given.create(
            model,
            coupling,
            focal=options.get("focal"),
            gravity=options.get("gravity"),
            distortion=options.get("distortion"),
            vfov_deg=options.get("vfov_deg"),
            roll_deg=options.get("roll_deg"),
            pitch_deg=options.get("pitch_deg"),
        )
        if options.get("free_principal_point") is not None:
            raise ConfigError("the principal point of a set is fixed; drop free_principal_point")
        crop, keep_fields = options.get("crop"), bool(options.get("keep_fields"))
        exif, sensors = options.get("exif", True), options.get("sensors", False)
        enabled = EnabledPriors.create(count, exif, sensors, crop, None)
        errors = errors_of(self.engine.card)
        method = Method(
            errors.model_to_fit(model), errors, warnings_of(self.engine.card), keep_fields
        )
        lines = options.get("lines", "auto")
        rotation = rotation_of(
            options.get("any_rotation", "auto"), options.get("gravity"), options.get("roll_deg")
        )
        see = partial(self.see, with_lines=lines == "auto", any_rotation=rotation)
        cameras = coupling.camera.tolist()
        if resume_in is None or keep_fields:
            return fit_set(see(images), cameras, given, enabled, method)
        shelf = Shelf(resume_in, repr((self.engine.card, model.name, lines, rotation, crop)))
        return fit_set(shelf.sights(images, see), cameras, given, enabled, method, shelf)

    def prepare(self, image: ImageSource, lines: bool) -> Prepared | Failure:
        return prepare(image, self.engine.spec, lines)

    def look(
        self, images: Sequence[Prepared | Failure], any_rotation: AnyRotation
    ) -> list[Seen | Failure]:
        mode, sights = mode_of(any_rotation), list[Seen | Failure]()
        for start in range(0, len(images), self.engine.batch):
            some = images[start : start + self.engine.batch]
            sights += predict(self.engine, some, mode, with_opinions=True)
        return sights

    def fit(
        self,
        sights: Sequence[Seen | Failure],
        camera_model: str | CameraModel,
        lines: LinesMode,
        **known: Unpack[Knowns],
    ) -> list[Outcome]:
        if not sights:
            return []
        model = get_model(camera_model)
        task = self._checked(len(sights), model, lines, **known)
        if lines == "only":
            return [s if isinstance(s, Failure) else lines_of_sight(s, model) for s in sights]
        if lines == "off":
            sights = [s if isinstance(s, Failure) else replace(s, segments=None) for s in sights]
        return solve(task, sights)

    def check(
        self,
        count: int,
        camera_model: str | CameraModel,
        lines: LinesMode,
        **known: Unpack[Knowns],
    ) -> None:
        self._checked(count, get_model(camera_model), lines, **known)

    def _checked(
        self, count: int, model: CameraModel, lines: LinesMode, **known: Unpack[Knowns]
    ) -> Task:
        check_lines(lines)
        if lines == "only":
            check_nothing_told(known, "auto")
        return self._question([model] * count, lines, "auto", **known).task

    def _question(
        self,
        models: Sequence[CameraModel],
        lines: LinesMode,
        any_rotation: AnyRotation,
        **known: Unpack[Knowns],
    ) -> Question:
        return Question.create(
            models, self.engine.card, lines=lines, any_rotation=any_rotation, **known
        )

    def see(
        self, sources: Sequence[ImageSource], with_lines: bool, any_rotation: Mode
    ) -> Iterator[Seen | Failure]:
        return see(self.engine, sources, with_lines, any_rotation)
