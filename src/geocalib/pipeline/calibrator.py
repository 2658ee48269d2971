"""``Calibrator``: photographs in, calibrations out.

Image -> network -> fields -> fit -> calibration. Everything before and after is a thin skin on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal, TypedDict, Unpack, overload

from geocalib.cameras import get_model
from geocalib.cameras.base import CameraModel
from geocalib.errors import ConfigError, CouplingError, ImageError
from geocalib.imaging import ImageSource, read_photo
from geocalib.lines.detect import SHORT_SIDE, detect
from geocalib.lines.vanishing import TOO_FEW, calibrate_by_lines
from geocalib.nets.card import WeightCard
from geocalib.pipeline.arguments import CameraModels, check_models, listed, models_of
from geocalib.pipeline.engines import EngineName, load_engine
from geocalib.pipeline.predict import LARGEST_BATCH, Seen, see
from geocalib.pipeline.prepare import path_of
from geocalib.pipeline.rotation import AnyRotation, Mode, mode_of
from geocalib.pipeline.solve import KeepFields, Task, solve
from geocalib.priors.crop import CropLike
from geocalib.priors.enabled import EnabledPriors, UsualPrior
from geocalib.result.calibration import Calibration, Failure, Outcome
from geocalib.result.trust import UNTRAINED, doubts
from geocalib.solver import Rig
from geocalib.solver.coupling import couple
from geocalib.solver.field_errors import FieldErrors
from geocalib.solver.given import Given
from geocalib.solver.priors import Known

Precision = Literal["float32", "bfloat16"]
LinesMode = Literal["auto", "off", "only"]


class Options(TypedDict, total=False):
    """The keywords of ``Calibrator.calibrate``."""

    focal: Known
    gravity: Known
    distortion: Known
    principal_point: Known
    aspect: Known
    vfov_deg: Known
    roll_deg: Known
    pitch_deg: Known
    shared_intrinsics: bool | Sequence[int]
    rig: Rig | None
    exif: bool
    keep_fields: KeepFields
    lines: LinesMode
    sensors: bool
    any_rotation: AnyRotation
    free_principal_point: float | None
    crop: CropLike
    prior: UsualPrior


class Calibrator:
    """Calibrates photographs with one set of weights.

    It has no state that a call changes: threads may share one, and several live side by side.
    """

    def __init__(
        self,
        weights: str | Path = "lean",
        *,
        device: str = "auto",
        precision: Precision = "float32",
        compile: bool = False,
        engine: EngineName = "auto",
    ) -> None:
        """weights: a name ("lean", "published-pinhole", "published-distorted") or a file.

        device: "auto" takes the first of cuda, mps and cpu that there is. precision: of the
        network, where the device has it; the fit is always as precise as it needs to be. compile:
        with torch.compile, which takes minutes at first and pays for many images of one size.
        engine: what runs the network, "torch" or "onnx" (``docs/speed.md``); "auto" takes torch
        where it has an accelerator, and where the weights, bfloat16 or compile need it.
        """
        if precision not in ("float32", "bfloat16"):
            raise ConfigError(f"precision is {precision!r}; known: float32, bfloat16")
        half = precision == "bfloat16"
        self._engine = load_engine(weights, engine, device, half=half, compile=compile)
        self.card: WeightCard = self._engine.card
        self.device = str(self._engine.device)
        self._errors = FieldErrors(
            self.card.confidence_scale, self.card.sigma_scale, self.card.legacy_up_field
        )
        self._warnings = () if self.card.trained else (UNTRAINED,)

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
        if lines not in ("auto", "off", "only"):
            raise ConfigError(f"lines is {lines!r}; known: auto, off, only")
        rotation = _rotation(any_rotation, gravity, roll_deg)
        sources, alone = listed(images)
        models, count = models_of(camera_model, len(sources)), len(sources)
        if count == 0:
            return []
        if lines == "only":
            known = (focal, gravity, distortion, principal_point, aspect)
            values = (*known, vfov_deg, roll_deg, pitch_deg, rig, crop, free_principal_point)
            flags = (sensors, rotation == "on", shared_intrinsics is not False, prior != "none")
            if any(flags) or any(value is not None for value in values):
                raise ConfigError('lines="only" takes images and a camera model, and nothing else')
            outcomes = list(map(_lines_only, sources, models))
            return _alone(outcomes) if alone else outcomes
        # What is wrong with the call is said before the network has seen the images.
        coupling = couple(count, _groups(shared_intrinsics, count), rig)
        check_models(models, coupling, distortion is not None)
        given = Given.create(
            next((model for model in models if model.wide), models[0]),
            coupling,
            focal=focal,
            gravity=gravity,
            distortion=distortion,
            principal_point=principal_point,
            aspect=aspect,
            vfov_deg=vfov_deg,
            roll_deg=roll_deg,
            pitch_deg=pitch_deg,
        )
        if principal_point is not None and (crop is not None or free_principal_point is not None):
            raise ConfigError(
                "principal_point already says where it is; drop crop and free_principal_point"
            )
        if prior != "none" and rig is not None:
            raise ConfigError("a rig takes no photographs as people do; drop prior")
        enabled = EnabledPriors.create(count, exif, sensors, crop, free_principal_point, prior)
        task = Task(
            models[0],
            given,
            coupling.camera,
            rig,
            enabled,
            self._errors,
            self._warnings,
            keep_fields,
        )
        together = LARGEST_BATCH if coupling.separate else count
        answers: dict[int, Outcome] = {}
        for model in dict.fromkeys(models):
            every = [index for index in range(count) if models[index] is model]
            for start in range(0, len(every), together):
                rows = every[start : start + together]
                few = [sources[index] for index in rows]
                sights = list(self._see(few, lines == "auto", rotation))
                found = solve(replace(task[rows], model=model), sights)
                answers.update(zip(rows, found, strict=True))
        outcomes = [answers[index] for index in range(count)]
        return _alone(outcomes) if alone else outcomes

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
        groups = _groups(True if cameras is None else cameras, count)
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
        method = Method(self._errors.fitted(model), self._errors, self._warnings, keep_fields)
        rotation = _rotation(any_rotation, gravity, roll_deg)
        see = partial(self._see, with_lines=lines == "auto", any_rotation=rotation)
        cameras = coupling.camera.tolist()
        if resume_in is None or keep_fields:
            return fit_set(see(images), cameras, given, enabled, method)
        shelf = Shelf(resume_in, repr((self.card, model.name, lines, rotation, crop)))
        return fit_set(shelf.sights(images, see), cameras, given, enabled, method, shelf)

    def _see(
        self, sources: Sequence[ImageSource], with_lines: bool, any_rotation: Mode
    ) -> Iterator[Seen | Failure]:
        return see(self._engine, sources, with_lines, any_rotation)


def _lines_only(source: ImageSource, model: CameraModel) -> Outcome:
    """What straight lines alone say of one image."""
    try:
        photo = read_photo(source, SHORT_SIDE)
    except ImageError as error:
        return Failure(path_of(source), None, None, str(error))
    answer = calibrate_by_lines(detect(photo), photo.size, model, path_of(source))
    if answer is None:
        return Failure(path_of(source), *photo.size, f"{photo.name}: {TOO_FEW}")
    return replace(answer, warnings=(*photo.notes, *doubts(answer)))


def _alone(outcomes: Sequence[Outcome]) -> Calibration:
    """The answer for a single image."""
    if isinstance(outcomes[0], Failure):
        raise ImageError(outcomes[0].error)
    return outcomes[0]


def _rotation(any_rotation: AnyRotation, *known: Known) -> Mode:
    """How to find out which side is up: who knows gravity, or roll, knows it."""
    mode = mode_of(any_rotation)
    return mode if mode == "on" or all(value is None for value in known) else "off"


def _groups(shared: bool | Sequence[int], count: int) -> Sequence[int] | None:
    """Which of the images share a camera, as ``fit`` wants it."""
    if isinstance(shared, bool):
        return [0] * count if shared else None
    if len(shared) != count:
        raise CouplingError(
            f"shared_intrinsics holds {len(shared)} integers for {count} images; give one each"
        )
    return shared
