"""``Calibrator``: photographs in, calibrations out.

Image -> network -> fields -> fit -> calibration. Everything before and after is a thin skin on it.
"""

from __future__ import annotations

from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, overload

from geocalib.pipeline.engines import Loading, Recipe, settle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Literal, Unpack

    from geocalib.cameras.base import CameraModel
    from geocalib.imaging import ImageSource
    from geocalib.nets.card import WeightCard
    from geocalib.pipeline.arguments import CameraModels, Knowns, LinesMode, Options
    from geocalib.pipeline.calls import Calls
    from geocalib.pipeline.engines import EngineName
    from geocalib.pipeline.onnx_engine import OnnxEngine
    from geocalib.pipeline.predict import Seen
    from geocalib.pipeline.prepare import Prepared
    from geocalib.pipeline.rotation import AnyRotation
    from geocalib.pipeline.solve import KeepFields
    from geocalib.pipeline.staged import Stages
    from geocalib.pipeline.torch_engine import TorchEngine
    from geocalib.priors.crop import CropLike
    from geocalib.priors.enabled import UsualPrior
    from geocalib.result.calibration import Calibration, Failure, Outcome
    from geocalib.solver import Rig
    from geocalib.solver.known import Known


CALLS = "geocalib.pipeline.calls"
"""What a calibrator needs when it is asked."""


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
        # For who asks later; who asks at once does it himself.
        loading.afterwards(partial(import_module, CALLS))

    @classmethod
    def of(cls, made: Recipe | Loading) -> Calibrator:
        """The same as another, in another process: ``recipe`` travels. Or with an engine that is
        being loaded."""
        calibrator = cls.__new__(cls)
        calibrator._load(made if isinstance(made, Loading) else Loading(made))
        return calibrator

    def __reduce__(self) -> tuple[Callable[[Recipe], Calibrator], tuple[Recipe]]:
        """Copies, and those in other processes, load the same engine again."""
        return Calibrator.of, (self.recipe,)

    @cached_property
    def _calls(self) -> Calls:
        # Who waits for the network imports what is around it meanwhile.
        from geocalib.pipeline.calls import Calls

        return Calls(self.recipe, self._loading.engine())

    @property
    def _engine(self) -> OnnxEngine | TorchEngine:
        return self._calls.engine

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

    # A path, too, is an iterable of paths to a type checker; the first of the two is meant.
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
        images: Iterable[ImageSource],
        camera_model: CameraModels = ...,
        **options: Unpack[Options],
    ) -> list[Outcome]: ...

    def calibrate(
        self,
        images: ImageSource | Iterable[ImageSource],
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

        An image is a path, the bytes of a file, an open file, a PIL image, an array (H, W[, 3]) or
        a tensor (3, H, W); everything is in pixels of the original. A tensor (B, 3, H, W) and an
        array (B, H, W, 3) are lists of B images. One image that cannot be read or fitted raises an
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
        return self._calls.calibrate(
            images,
            camera_model,
            focal=focal,
            gravity=gravity,
            distortion=distortion,
            principal_point=principal_point,
            aspect=aspect,
            vfov_deg=vfov_deg,
            roll_deg=roll_deg,
            pitch_deg=pitch_deg,
            shared_intrinsics=shared_intrinsics,
            rig=rig,
            exif=exif,
            keep_fields=keep_fields,
            sensors=sensors,
            free_principal_point=free_principal_point,
            crop=crop,
            prior=prior,
            lines=lines,
            any_rotation=any_rotation,
        )

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
        return self._calls.calibrate_many(images, camera_model, workers, **options)

    def stages(self, camera_model: str | CameraModel, **options: Unpack[Options]) -> Stages:
        """The stages of ``calibrate_many``, for machines of their own."""
        return self._calls.stages(camera_model, **options)

    def calibrate_set(
        self,
        images: Iterable[ImageSource],
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
        return self._calls.calibrate_set(
            images,
            camera_model,
            cameras,
            resume_in,
            focal=focal,
            gravity=gravity,
            distortion=distortion,
            vfov_deg=vfov_deg,
            roll_deg=roll_deg,
            pitch_deg=pitch_deg,
            exif=exif,
            keep_fields=keep_fields,
            lines=lines,
            sensors=sensors,
            any_rotation=any_rotation,
            free_principal_point=free_principal_point,
            crop=crop,
        )

    @property
    def batch(self) -> int:
        """Images that the network takes at once, at most."""
        return self._engine.batch

    def prepare(self, image: ImageSource, *, lines: bool = True) -> Prepared | Failure:
        """The first of the three stages that ``calibrate`` takes an image through, for those who
        do other things between them: an image as the network wants to see it, or why not.

        lines: whether to look for straight ones.
        """
        return self._calls.prepare(image, lines)

    def look(
        self, images: Sequence[Prepared | Failure], *, any_rotation: AnyRotation = "auto"
    ) -> list[Seen | Failure]:
        """The second stage: what the network sees in prepared images, ``batch`` at a time. It does
        not depend on the others of a batch."""
        return self._calls.look(images, any_rotation)

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
        return self._calls.fit(sights, camera_model, lines, **known)

    def check(
        self,
        count: int,
        camera_model: str | CameraModel = "pinhole",
        *,
        lines: LinesMode = "auto",
        **known: Unpack[Knowns],
    ) -> None:
        """An error if ``fit`` cannot be asked this of so many images, said before any is read."""
        self._calls.check(count, camera_model, lines, **known)
