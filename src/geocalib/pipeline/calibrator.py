"""``Calibrator``: photographs in, calibrations out.

Every method makes ``Options`` of its keywords and hands them to the stages. What the stages need is
imported when a method is called: who makes a calibrator has its network opened meanwhile.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from itertools import chain, islice
from typing import TYPE_CHECKING, overload

from geocalib.errors import ConfigError
from geocalib.pipeline.engines.load import EngineFuture, EngineSpec
from geocalib.pipeline.options import BY_EXIF, Options, rotation_mode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Unpack

    from geocalib.imaging import ImageSource
    from geocalib.nets.weights.card import WeightCard
    from geocalib.pipeline.engines.load import EngineName
    from geocalib.pipeline.engines.onnx import OnnxEngine
    from geocalib.pipeline.engines.torch import TorchEngine
    from geocalib.pipeline.job import Job
    from geocalib.pipeline.options import AnyRotation, CameraModels, Keywords
    from geocalib.pipeline.parallel.stream import Stages
    from geocalib.pipeline.predict import NetworkOutput
    from geocalib.pipeline.prepare import Prepared
    from geocalib.result.calibration import Calibration, Failure, Outcome


STAGES = "geocalib.pipeline.parallel.stream"
"""What a calibrator needs for its first photo: all stages."""


class Calibrator:
    """Calibrates photographs with one set of weights.

    It has no state that a call changes: threads may share one, several live side by side, and
    copies in other processes open the same weights.
    """

    def __init__(
        self,
        weights: str | Path = "auto",
        *,
        device: str = "auto",
        compile: bool = False,
        engine: EngineName = "auto",
    ) -> None:
        """weights: a name ("lean", "large", "published-pinhole", "published-distorted") or a file;
        "auto" takes large where it is installed and the network runs on a GPU, else lean.

        device: "auto" takes the first of cuda, mps and cpu that there is. compile: with
        torch.compile, which takes minutes at first and pays for many images of one size. engine:
        what runs the network, "torch" or "onnx" (``docs/speed.md``); "auto" takes torch where it
        has an accelerator, and where the weights or compile need it.
        """
        self._load(EngineFuture(EngineSpec(weights, device, engine, compile)))

    def _load(self, loading: EngineFuture) -> None:
        self.engine_spec, self._loading = loading.spec, loading
        if not self.engine_spec.certain:
            # An engine that there cannot be is an error here, not at the first photo.
            loading.engine()
        loading.afterwards(partial(import_module, STAGES))

    @classmethod
    def of(cls, made: EngineSpec | EngineFuture) -> Calibrator:
        """One with the engine of another, in another process: ``engine_spec`` travels. Or with an
        engine that is being loaded."""
        calibrator = cls.__new__(cls)
        calibrator._load(made if isinstance(made, EngineFuture) else EngineFuture(made))
        return calibrator

    def __reduce__(self) -> tuple[object, tuple[EngineSpec]]:
        """Pickled and copied by its arguments: networks do not travel."""
        return type(self).of, (self.engine_spec,)

    @property
    def _engine(self) -> OnnxEngine | TorchEngine:
        return self._loading.engine()

    @property
    def card(self) -> WeightCard:
        """What the weights are, and how they were made."""
        return self._engine.card

    @property
    def device(self) -> str:
        """The device that the network runs on."""
        return str(self._engine.device)

    @property
    def on_processor(self) -> bool:
        """Whether the network runs where everything else does."""
        return self._engine.on_processor

    # A path, too, is an iterable of paths to a type checker; the first of the two is meant.
    @overload
    def calibrate(  # type: ignore[overload-overlap]
        self,
        images: ImageSource,
        camera_model: CameraModels | None = ...,
        *,
        options: Options | None = ...,
        **keywords: Unpack[Keywords],
    ) -> Calibration: ...

    @overload
    def calibrate(
        self,
        images: Iterable[ImageSource],
        camera_model: CameraModels | None = ...,
        *,
        options: Options | None = ...,
        **keywords: Unpack[Keywords],
    ) -> list[Outcome]: ...

    def calibrate(
        self,
        images: ImageSource | Iterable[ImageSource],
        camera_model: CameraModels | None = None,
        *,
        options: Options | None = None,
        **keywords: Unpack[Keywords],
    ) -> Calibration | list[Outcome]:
        """The camera and gravity of a photograph, or of each of a list of any sizes.

        An image is a path, the bytes of a file, an open file, a PIL image, an array (H, W[, 3]) or
        a tensor (3, H, W); everything is in pixels of the original. A tensor (B, 3, H, W) and an
        array (B, H, W, 3) are lists of B images. One image that cannot be read or fitted raises an
        ``ImageError``; in a list it becomes a ``Failure`` and the others get their answers. What
        is wrong with the call itself raises another ``GeoCalibError``.

        camera_model and keywords: the fields of ``geocalib.Options``, which says what each of them
        means: focal, gravity, distortion, principal_point, aspect, vfov_deg, roll_deg and pitch_deg
        (what is known: a value, or a ``Prior``); shared_intrinsics and rig (what images share);
        exif, sensors, prior, crop and free_principal_point (what may be known beside the pixels);
        lines, drawn, ruler, any_rotation and keep_fields. options: all of them as one object
        instead. ``Calibration.priors`` tells how well the picture agrees with what was known.
        """
        from geocalib.pipeline.job import answer_of, listed

        checked = Options.create(options, camera_model, keywords)
        sources, alone = listed(images)
        outcomes = self._outcomes(sources, checked, alone)
        return answer_of(outcomes) if alone else outcomes

    def _outcomes(
        self, sources: Sequence[ImageSource], options: Options, alone: bool
    ) -> list[Outcome]:
        """The outcome of each image. alone: whether a single image was given."""
        from geocalib.pipeline.fit import lines_of_image
        from geocalib.pipeline.job import models_of
        from geocalib.pipeline.parallel.stream import answer, batch_size, stream

        count = len(sources)
        if count == 0:
            return []
        if options.lines == "only":
            return list(map(lines_of_image, sources, models_of(options, count)))
        # What is wrong with the call is said before the network has seen the images.
        job = self._job(options, count)
        rows, batches = zip(*job.batches(sources, batch_size(self._engine)), strict=True)
        answers: Iterator[Outcome]
        if alone or job.coupled:
            answers = chain.from_iterable(answer(self._engine, batch) for batch in batches)
        else:
            answers = stream(self._engine, self.engine_spec, batches, None)
        by_row = dict(zip(chain.from_iterable(rows), answers, strict=True))
        return [by_row[index] for index in range(count)]

    def calibrate_many(
        self,
        images: Iterable[ImageSource],
        camera_model: CameraModels | None = None,
        *,
        workers: int | None = None,
        options: Options | None = None,
        **keywords: Unpack[Keywords],
    ) -> Iterator[Outcome]:
        """The outcomes of any number of photographs, in order, as they come.

        images: also without an end: few of them are held at a time, and no outcome. An image that
        fails is a ``Failure``. workers: processes that share the work; by default one for each
        core, and none for a few images. Options are those of ``calibrate``, the same for all
        images, but for what images share: see ``calibrate_set``.
        """
        from geocalib.files.image_files import content_of
        from geocalib.pipeline.job import Batch
        from geocalib.pipeline.parallel.stream import batch_size, stream

        checked = Options.create(options, camera_model, keywords)
        checked.check_many()
        if checked.shared_intrinsics or checked.rig is not None:
            raise ConfigError("images that share a camera or a rig go to calibrate, or to a set")
        if workers is not None and workers < 1:
            raise ConfigError(f"workers is {workers}; at least 1 is needed")
        if checked.lines == "only":
            return chain.from_iterable(self._outcomes([one], checked, False) for one in images)
        job, every = self._job(checked, 1), map(content_of, images)
        few = iter(lambda: list(islice(every, batch_size(self._engine))), [])
        batches = (Batch(some, job.repeated(len(some))) for some in few)
        return stream(self._engine, self.engine_spec, batches, workers)

    def stages(
        self,
        camera_model: CameraModels | None = None,
        *,
        options: Options | None = None,
        **keywords: Unpack[Keywords],
    ) -> Stages:
        """The stages of ``calibrate_many``, for machines of their own."""
        from geocalib.pipeline.parallel.stream import Stages

        checked = Options.create(options, camera_model, keywords)
        checked.check_many()
        job = self._job(checked, 1)
        return Stages(self.engine_spec, self._engine.spec, job)

    def calibrate_set(
        self,
        images: Iterable[ImageSource],
        camera_model: CameraModels | None = None,
        *,
        cameras: Sequence[int] | None = None,
        resume_in: Path | None = None,
        options: Options | None = None,
        **keywords: Unpack[Keywords],
    ) -> Iterator[Outcome]:
        """The outcomes of any number of photographs of few cameras, in order (``docs/sets.md``).

        cameras: an integer per image, equal where the camera is; by default as shared_intrinsics
        says, which may also be "exif" or a table here, or else one took all. Images
        of one camera are fitted together, portrait and landscape alike, in memory that hardly
        grows with their number. One that does not show the camera of the others is left out: a
        ``Failure`` whose status is "outlier". Everything else as in ``calibrate``.
        resume_in: a folder for what the network saw in each image, which the same call after an
        interruption goes on from; it stays until you remove it. With keep_fields it is not used.
        """
        from dataclasses import replace

        from geocalib.pipeline.predict import run_network
        from geocalib.sets.calibrate import fit_set
        from geocalib.sets.camera_group import FitMethod
        from geocalib.sets.grouping import group
        from geocalib.sets.resume_cache import ResumeCache

        checked = Options.create(options, camera_model, keywords)
        checked.check_set()
        images = list(images)
        if not images:
            return iter(())
        groups = group(images, checked.shared_intrinsics or True) if cameras is None else cameras
        by_exif = cameras is None and checked.shared_intrinsics == BY_EXIF
        checked = replace(checked, shared_intrinsics=groups)
        job = self._job(checked, len(images))
        method = FitMethod(
            job.errors.model_to_fit(job.model),
            job.errors,
            job.warnings,
            bool(job.keep_fields),
            job.unnamed[0],
            by_exif,
        )
        run = partial(
            run_network, self._engine, with_lines=job.lines == "auto", rotation=job.rotation
        )
        groups = job.camera.tolist()
        if resume_in is None or job.keep_fields:
            return fit_set(run(images), groups, job.given, job.enabled, method)
        seen_by = (self.card, job.model.name, job.unnamed[0], job.lines, job.rotation, checked.crop)
        resumed = ResumeCache(resume_in, repr(seen_by))
        outputs = resumed.images(images, run)
        return fit_set(outputs, groups, job.given, job.enabled, method, resumed)

    @property
    def batch(self) -> int:
        """Images that the network takes at once, at most."""
        return self._engine.batch

    def prepare(self, image: ImageSource, *, lines: bool = True) -> Prepared | Failure:
        """The first of the three stages that ``calibrate`` takes an image through, for those who
        do other things between them: an image as the network wants to see it, or why not.

        lines: whether to look for straight ones.
        """
        from geocalib.pipeline.prepare import prepare

        return prepare(image, self._engine.spec, lines)

    def predict(
        self, images: Sequence[Prepared | Failure], *, any_rotation: AnyRotation = "auto"
    ) -> list[NetworkOutput | Failure]:
        """The second stage: what the network sees in prepared images, ``batch`` at a time. It does
        not depend on the others of a batch."""
        from geocalib.pipeline.predict import predict

        mode = rotation_mode(any_rotation)
        outputs: list[NetworkOutput | Failure] = []
        for start in range(0, len(images), self.batch):
            some = images[start : start + self.batch]
            outputs += predict(self._engine, some, mode, with_focal_estimates=True)
        return outputs

    def fit(
        self,
        outputs: Sequence[NetworkOutput | Failure],
        camera_model: CameraModels | None = None,
        *,
        options: Options | None = None,
        **keywords: Unpack[Keywords],
    ) -> list[Outcome]:
        """The third stage: the outcome of each image that the network has seen. As often as one
        likes, with this and that known: the network does not run again.

        Everything as in ``calibrate``; lines are used where ``prepare`` has looked for them.
        """
        from geocalib.pipeline.fit import fit_outputs, lines_of_output, without_lines

        if not outputs:
            return []
        checked = Options.create(options, camera_model, keywords)
        job = self._job(checked, len(outputs))
        if job.lines == "only":
            return [lines_of_output(output, job.model) for output in outputs]
        if job.lines == "off":
            outputs = [without_lines(output) for output in outputs]
        return fit_outputs(job, outputs)

    def check(
        self,
        count: int,
        camera_model: CameraModels | None = None,
        *,
        options: Options | None = None,
        **keywords: Unpack[Keywords],
    ) -> None:
        """Raise an error if ``fit`` cannot do this with so many images, before any is read."""
        self._job(Options.create(options, camera_model, keywords), count)

    def _job(self, options: Options, count: int) -> Job:
        from geocalib.pipeline.job import Job

        return Job.create(options, self.card, count)
