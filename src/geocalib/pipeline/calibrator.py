"""``Calibrator``: photographs in, calibrations out.

Image -> network -> fields -> fit -> calibration. Everything before and after is a thin skin on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack, overload

from geocalib.cameras import get_model
from geocalib.cameras.base import CameraModel
from geocalib.errors import ConfigError
from geocalib.imaging import ImageSource
from geocalib.nets.card import WeightCard
from geocalib.pipeline.arguments import (
    CameraModels,
    Knowns,
    LinesMode,
    Options,
    alone_of,
    listed,
    models_of,
)
from geocalib.pipeline.engines import EngineName, Loading, Recipe, settle
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
from geocalib.pipeline.solve import KeepFields, Task, solve
from geocalib.pipeline.staged import Stages
from geocalib.pipeline.stream import answer, size_of_chunks, stream
from geocalib.priors.crop import CropLike
from geocalib.priors.enabled import EnabledPriors, UsualPrior
from geocalib.result.calibration import Calibration, Failure, Outcome
from geocalib.solver import Rig
from geocalib.solver.coupling import couple
from geocalib.solver.given import Given
from geocalib.solver.priors import Known

if TYPE_CHECKING:
    from geocalib.pipeline.onnx_engine import OnnxEngine
    from geocalib.pipeline.torch_engine import TorchEngine


class Calibrator:
    """Calibrates photographs with one set of weights.

    It has no state that a call changes: threads may share one, and several live side by side.
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
        self._load(Loading(Recipe(settle(weights, device), engine, device, compile)))

    def _load(self, loading: Loading) -> None:
        self.recipe, self._loading = loading.recipe, loading
        if not self.recipe.certain:
            # Who asks for what there is not hears of it here, not at the first photo.
            loading.engine()

    @classmethod
    def of(cls, made: Recipe | Loading) -> Calibrator:
        """The same as another, in another process: ``recipe`` travels. Or with an engine that is
        being loaded."""
        calibrator = cls.__new__(cls)
        calibrator._load(made if isinstance(made, Loading) else Loading(made))
        return calibrator

    @cached_property
    def _engine(self) -> OnnxEngine | TorchEngine:
        return self._loading.engine()

    @property
    def card(self) -> WeightCard:
        """What the weights are, and how they were made."""
        return self._engine.card

    @property
    def device(self) -> str:
        """Where the network runs."""
        return str(self._engine.device)

    @property
    def on_processor(self) -> bool:
        """Whether the network runs where everything else does."""
        return self._engine.on_processor

    # A path, too, is a sequence of paths to a type checker; the first of the two is meant.
    @overload
    def calibrate(  # type: ignore[overload-overlap]
        self,
        images: ImageSource,
        camera_model: str | CameraModel = ...,
        **options: Unpack[Options],
    ) -> Calibration: ...

    @overload
    def calibrate(
        self,
        images: Sequence[ImageSource],
        camera_model: CameraModels = ...,
        **options: Unpack[Options],
    ) -> list[Outcome]: ...

    def calibrate(
        self,
        images: ImageSource | Sequence[ImageSource],
        camera_model: CameraModels = "pinhole",
        *,
        focal: Known = None,
        gravity: Known = None,
        distortion: Known = None,
        principal_point: Known = None,
        aspect: Known = None,
        vfov_deg: Known = None,
        roll_deg: Known = None,
        pitch_deg: Known = None,
        shared_intrinsics: bool | Sequence[int] = False,
        rig: Rig | None = None,
        exif: bool = True,
        keep_fields: KeepFields = False,
        lines: LinesMode = "auto",
        sensors: bool = False,
        any_rotation: AnyRotation = "auto",
        free_principal_point: float | None = None,
        crop: CropLike = None,
        prior: UsualPrior = "none",
    ) -> Calibration | list[Outcome]:
        """The camera and gravity of a photograph, or of each of a list of any sizes.

        An image is a path, the bytes of a file, a PIL image, an array (H, W[, 3]) or a tensor
        (3, H, W); everything is in pixels of the original. A tensor (B, 3, H, W) and an array
        (B, H, W, 3) are lists of B images. One image that cannot be read or fitted raises an
        ``ImageError``; in a list it becomes a ``Failure`` and the others get their answers. What
        is wrong with the call itself raises another ``GeoCalibError``.
        camera_model: a name of ``geocalib.cameras`` or a model; of several images, also one each.

        focal (fy), gravity (pointing down, in the camera frame), distortion, principal_point,
        aspect (fx / fy): None leaves it free (the principal point: at the centre; the aspect: at
        1), a value fixes it,
        ``Prior(value, sigma)`` pulls it; one for all, or one per image. vfov_deg, in place of
        focal, and roll_deg with pitch_deg, in place of gravity: likewise, with sigmas in degrees;
        a ``Prior`` on one of the two angles leaves the other free. exif: takes the focal length
        that a file tells of as a soft prior where none is given, unless the picture makes it
        improbable; ``Calibration.priors`` tells how well they agree.
        shared_intrinsics: True if one camera took all images, or an integer per image, equal
        where the camera is; its images must have one size, portrait or landscape. rig: known
        rotations between the cameras of the images. keep_fields: the calibrations hold what the
        network saw; "full": at the size of the originals.
        lines: "auto" sharpens the network's answer with straight lines where there are enough,
        "off" does not look for any, and "only" asks lines alone (``geocalib.lines.vanishing``).
        sensors: takes gravity from a drone's gimbal and from files beside the images, too
        (``docs/priors.md``).
        any_rotation: "auto" notices where another side than the upper one is clearly up, "on" (or
        True) takes the likeliest side, and "off" (or False) the upper one; where gravity is given,
        there is nothing to notice. crop: where in a larger picture, whose middle is the principal
        point, an image was cut out: a ``Crop`` or its six numbers, one for all or one per image.
        free_principal_point: frees it around the middle with this sigma, in units of the longer
        side of the (larger) picture. prior: "photos" takes the focal length for one that people
        use where nobody tells it (``geocalib.priors.photos``).
        """
        check_lines(lines)
        rotation = rotation_of(any_rotation, gravity, roll_deg)
        sources, alone = listed(images)
        models, count = models_of(camera_model, len(sources)), len(sources)
        if count == 0:
            return []
        known: Knowns = {
            "focal": focal,
            "gravity": gravity,
            "distortion": distortion,
            "principal_point": principal_point,
            "aspect": aspect,
            "vfov_deg": vfov_deg,
            "roll_deg": roll_deg,
            "pitch_deg": pitch_deg,
            "shared_intrinsics": shared_intrinsics,
            "rig": rig,
            "exif": exif,
            "keep_fields": keep_fields,
            "sensors": sensors,
            "free_principal_point": free_principal_point,
            "crop": crop,
            "prior": prior,
        }
        if lines == "only":
            check_nothing_told(known, rotation)
            outcomes = list(map(lines_of_image, sources, models))
            return alone_of(outcomes) if alone else outcomes
        # What is wrong with the call is said before the network has seen the images.
        question = self._question(models, lines, any_rotation, **known)
        rows, chunks = zip(*question.chunks(sources, size_of_chunks(self._engine)), strict=True)
        answers: Iterator[Outcome]
        if alone or not question.coupling.separate:
            answers = chain.from_iterable(answer(self._engine, chunk) for chunk in chunks)
        else:
            answers = stream(self._engine, self.recipe, chunks, None)
        by_row = dict(zip(chain.from_iterable(rows), answers, strict=True))
        outcomes = [by_row[index] for index in range(count)]
        return alone_of(outcomes) if alone else outcomes

    def calibrate_many(
        self,
        images: Iterable[ImageSource],
        camera_model: str | CameraModel = "pinhole",
        *,
        workers: int | None = None,
        **options: Unpack[Options],
    ) -> Iterator[Outcome]:
        """The outcomes of any number of photographs, in order, as they come.

        images: also without an end: few of them are held at a time, and no outcome. An image that
        fails is a ``Failure``. workers: processes that share the work; by default one for each
        core, and none for a few images. Options are those of ``calibrate``, the same for all
        images, but for what images share: see ``calibrate_set``.
        """
        if options.get("shared_intrinsics") or options.get("rig") is not None:
            raise ConfigError("images that share a camera or a rig go to calibrate, or to a set")
        if workers is not None and workers < 1:
            raise ConfigError(f"workers is {workers}; at least 1 is needed")
        lines, model = options.get("lines", "auto"), get_model(camera_model)
        check_lines(lines)
        if lines == "only":
            return (one for image in images for one in self.calibrate([image], model, **options))
        question = Question.create([model], self.card, **options)
        size, every = size_of_chunks(self._engine), iter(images)
        few = iter(lambda: list(islice(every, size)), [])
        return stream(self._engine, self.recipe, map(question.repeated, few), workers)

    def stages(self, camera_model: str | CameraModel, **options: Unpack[Options]) -> Stages:
        """The stages of ``calibrate_many``, for machines of their own."""
        question = Question.create([get_model(camera_model)], self.card, **options)
        return Stages(self.recipe, self._engine.spec, question)

    def calibrate_set(
        self,
        images: Sequence[ImageSource],
        camera_model: str | CameraModel = "pinhole",
        *,
        cameras: Sequence[int] | None = None,
        focal: Known = None,
        gravity: Known = None,
        distortion: Known = None,
        vfov_deg: Known = None,
        roll_deg: Known = None,
        pitch_deg: Known = None,
        exif: bool = True,
        keep_fields: bool = False,
        lines: Literal["auto", "off"] = "auto",
        sensors: bool = False,
        any_rotation: AnyRotation = "auto",
        free_principal_point: float | None = None,
        crop: CropLike = None,
        resume_in: Path | None = None,
    ) -> Iterator[Outcome]:
        """The outcomes of any number of photographs of few cameras, in order (``docs/sets.md``).

        cameras: an integer per image, equal where the camera is; by default one took all. Images
        of one camera are fitted together, portrait and landscape alike, in memory that hardly
        grows with their number. One that does not show the camera of the others is left out: a
        ``Failure`` whose status is "outlier". Everything else as in ``calibrate``.
        resume_in: a folder for what the network saw in each image, which the same call after an
        interruption goes on from; it stays until you remove it. With keep_fields it is not used.
        """
        from geocalib.sets.album import Method
        from geocalib.sets.calibrate import fit_set
        from geocalib.sets.shelf import Shelf

        model, count = get_model(camera_model), len(images)
        if count == 0:
            return iter(())
        groups = groups_of(True if cameras is None else cameras, count)
        coupling = couple(count, groups, None)
        given = Given.create(
            model,
            coupling,
            focal=focal,
            gravity=gravity,
            distortion=distortion,
            vfov_deg=vfov_deg,
            roll_deg=roll_deg,
            pitch_deg=pitch_deg,
        )
        if free_principal_point is not None:
            raise ConfigError("the principal point of a set is fixed; drop free_principal_point")
        enabled = EnabledPriors.create(count, exif, sensors, crop, None)
        errors = errors_of(self.card)
        method = Method(errors.fitted(model), errors, warnings_of(self.card), keep_fields)
        rotation = rotation_of(any_rotation, gravity, roll_deg)
        see = partial(self._see, with_lines=lines == "auto", any_rotation=rotation)
        cameras = coupling.camera.tolist()
        if resume_in is None or keep_fields:
            return fit_set(see(images), cameras, given, enabled, method)
        shelf = Shelf(resume_in, repr((self.card, model.name, lines, rotation, crop)))
        return fit_set(shelf.sights(images, see), cameras, given, enabled, method, shelf)

    @property
    def batch(self) -> int:
        """Images that the network takes at once, at most."""
        return self._engine.batch

    def prepare(self, image: ImageSource, *, lines: bool = True) -> Prepared | Failure:
        """The first of the three stages that ``calibrate`` takes an image through, for those who
        do other things between them: an image as the network wants to see it, or why not.

        lines: whether to look for straight ones.
        """
        return prepare(image, self._engine.spec, lines)

    def look(
        self, images: Sequence[Prepared | Failure], *, any_rotation: AnyRotation = "auto"
    ) -> list[Seen | Failure]:
        """The second stage: what the network sees in prepared images, ``batch`` at a time. It does
        not depend on the others of a batch."""
        mode, sights = mode_of(any_rotation), list[Seen | Failure]()
        for start in range(0, len(images), self.batch):
            some = images[start : start + self.batch]
            sights += predict(self._engine, some, mode, with_opinions=True)
        return sights

    def fit(
        self,
        sights: Sequence[Seen | Failure],
        camera_model: str | CameraModel = "pinhole",
        *,
        lines: LinesMode = "auto",
        **known: Unpack[Knowns],
    ) -> list[Outcome]:
        """The third stage: the outcome of each image that the network has seen. As often as one
        likes, with this and that known: the network does not run again.

        Everything as in ``calibrate``; lines are used where ``prepare`` has looked for them.
        """
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
        camera_model: str | CameraModel = "pinhole",
        *,
        lines: LinesMode = "auto",
        **known: Unpack[Knowns],
    ) -> None:
        """An error if ``fit`` cannot be asked this of so many images, said before any is read."""
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
        return Question.create(models, self.card, lines=lines, any_rotation=any_rotation, **known)

    def _see(
        self, sources: Sequence[ImageSource], with_lines: bool, any_rotation: Mode
    ) -> Iterator[Seen | Failure]:
        return see(self._engine, sources, with_lines, any_rotation)
