"""``Calibrator``: photographs in, calibrations out.

Image -> network -> fields -> fit -> calibration. Everything before and after is a thin skin on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Literal, TypedDict, Unpack, overload

import torch
from torch import Tensor

from geocalib.cameras import get_model
from geocalib.cameras.base import CameraModel
from geocalib.cameras.legacy import LegacySimpleRadial, without_legacy
from geocalib.cameras.simple_radial import SimpleRadial
from geocalib.errors import ConfigError, CouplingError, ImageError
from geocalib.geometry.fields import LOG_ASPECT, Fields
from geocalib.imaging import ImageSource, read_photo
from geocalib.imaging.enlarge import enlarge
from geocalib.lines.detect import SHORT_SIDE, detect
from geocalib.lines.turned import refine_turned
from geocalib.lines.vanishing import TOO_FEW, calibrate_by_lines
from geocalib.nets.weights import WeightCard, load_network
from geocalib.pipeline.arguments import CameraModels, check_models, listed, models_of
from geocalib.pipeline.predict import LARGEST_BATCH, Eye, Seen, find_device, path_of
from geocalib.pipeline.rotation import AnyRotation, Mode, mode_of
from geocalib.priors.clues import Clues, File, started
from geocalib.priors.crop import CropLike
from geocalib.priors.weigh import Answer, weigh
from geocalib.result.calibration import Calibration, Failure, Outcome
from geocalib.result.trust import UNTRAINED, doubts
from geocalib.solver import FitOptions, FitResult, Rig, fit
from geocalib.solver.coupling import couple
from geocalib.solver.given import Given, Mapping
from geocalib.solver.joint import fit_turned
from geocalib.solver.plane import Plane
from geocalib.solver.priors import Known

Precision = Literal["float32", "bfloat16"]
LinesMode = Literal["auto", "off", "only"]
KeepFields = bool | Literal["full"]


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


@dataclass(frozen=True)
class _Task:
    """Images to fit together, and what is known of them."""

    sources: Sequence[ImageSource]
    model: CameraModel
    given: Given
    camera: Tensor
    """(B,) integers, equal for images of one camera."""
    rig: Rig | None
    clues: Clues

    def __getitem__(self, index: Sequence[int]) -> _Task:
        """A part of it."""
        rows = list(index)
        rig = self.rig
        if rig is not None:
            camera, time = torch.as_tensor(rig.camera), torch.as_tensor(rig.time)
            rig = replace(rig, camera=camera[rows], time=time[rows])
        sources = [self.sources[i] for i in rows]
        given, camera, clues = self.given[rows], self.camera[rows], self.clues[rows]
        return _Task(sources, self.model, given, camera, rig, clues)


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
    ) -> None:
        """weights: a name ("lean", "published-pinhole", "published-distorted") or a file.

        device: "auto" takes the first of cuda, mps and cpu that there is. precision: of the
        network; the fit is always as precise as it needs to be. compile: with torch.compile,
        which takes minutes at first and pays for many images of one size.
        """
        if precision not in ("float32", "bfloat16"):
            raise ConfigError(f"precision is {precision!r}; known: float32, bfloat16")
        self.device = find_device(device)
        loaded = load_network(weights)
        self.card: WeightCard = loaded.card
        self._eye = Eye(loaded, self.device, half=precision == "bfloat16", compile=compile)

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
        side of the (larger) picture.
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
            flags = (sensors, rotation == "on", shared_intrinsics is not False)
            if any(flags) or any(value is not None for value in values):
                raise ConfigError('lines="only" takes images and a camera model, and nothing else')
            outcomes = list(map(_lines_only, sources, models))
            return _alone(outcomes) if alone else outcomes
        # What is wrong with the call is said before the network has seen the images.
        coupling = couple(count, _groups(shared_intrinsics, count), rig, torch.device("cpu"))
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
        clues = Clues.create(count, exif, sensors, crop, free_principal_point)
        task = _Task(sources, models[0], given, coupling.camera, rig, clues)
        together = LARGEST_BATCH if coupling.separate else count
        answers: dict[int, Outcome] = {}
        for model in dict.fromkeys(models):
            every = [index for index in range(count) if models[index] is model]
            for start in range(0, len(every), together):
                rows = every[start : start + together]
                part = replace(task[rows], model=model)
                found = self._solve(part, keep_fields, lines == "auto", rotation)
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
        coupling = couple(count, groups, None, torch.device("cpu"))
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
        clues = Clues.create(count, exif, sensors, crop, None)
        method = Method(
            self._fitted_model(model),
            self.card.confidence_scale,
            self.card.sigma_scale,
            () if self.card.trained else (UNTRAINED,),
            keep_fields,
        )
        rotation = _rotation(any_rotation, gravity, roll_deg)
        see = partial(self._eye.see, with_lines=lines == "auto", any_rotation=rotation)
        cameras = coupling.camera.tolist()
        if resume_in is None or keep_fields:
            return fit_set(see(images), cameras, given, clues, method)
        shelf = Shelf(resume_in, repr((self.card, model.name, lines, rotation, crop)))
        return fit_set(shelf.sights(images, see), cameras, given, clues, method, shelf)

    def _solve(
        self, task: _Task, keep_fields: KeepFields, with_lines: bool, any_rotation: Mode
    ) -> list[Outcome]:
        """The outcome of each image of a task."""
        outcomes: dict[int, Outcome] = {}
        seen: dict[int, Seen] = {}
        for index, sight in enumerate(self._eye.see(task.sources, with_lines, any_rotation)):
            if not isinstance(sight, Seen):
                outcomes[index] = sight
            elif misfit := task.given.misfit(index, task.model, (file := sight.file).size):
                outcomes[index] = Failure(file.path, *file.size, f"{file.name}: {misfit}")
            else:
                seen[index] = sight
        # Fields of one size are fitted as one batch.
        order = sorted(seen, key=lambda index: seen[index].fields.size)
        if order:
            answers = self._fit(task[order], [seen[index] for index in order], keep_fields)
            outcomes.update(zip(order, answers, strict=True))
        return [outcomes[index] for index in range(len(task.sources))]

    def _fit(
        self, task: _Task, sights: Sequence[Seen], keep_fields: KeepFields
    ) -> Iterator[Outcome]:
        """The outcomes of images that the network has seen, sorted by the size of their fields."""
        files, cameras = [sight.file for sight in sights], task.camera.tolist()
        given = task.clues.placed(task.given, files)
        _check_sizes(files, cameras, given, task.rig is not None)
        readings = task.clues.readings(given, files)
        together = task.rig is not None or len(set(cameras)) < len(cameras)

        def solve(known: Given, rows: Sequence[int]) -> list[Answer]:
            return self._answers(task[rows], [sights[i] for i in rows], known[rows], keep_fields)

        weighed = weigh(given, readings, files, cameras, solve, together)
        untrained = () if self.card.trained else (UNTRAINED,)
        for (outcome, checks), reading, sight in zip(weighed, readings, sights, strict=True):
            if isinstance(outcome, Calibration):
                wrong = (str(prior) for prior in checks if prior.contradicts)
                told = (*untrained, *sight.notes, *reading.notes, *wrong, *doubts(outcome))
                outcome = replace(outcome, warnings=told, priors=checks)
            yield outcome

    def _answers(
        self, task: _Task, sights: Sequence[Seen], given: Given, keep_fields: KeepFields
    ) -> list[Answer]:
        """The outcomes without their warnings, by what is given."""
        given = started(given, [sight.down for sight in sights])
        mapping = Mapping.create([s.view for s in sights], [s.fields.size for s in sights])
        sizes = [sight.file.size for sight in sights]
        result = self._fit_fields([s.fields for s in sights], sizes, task, mapping, given)
        outcomes: list[Outcome] = []
        for row, sight in enumerate(sights):
            file = sight.file
            if result.status[row].failed:
                error = f"{file.name}: {result.status[row]}"
                outcomes.append(Failure(file.path, *file.size, error))
                continue
            camera = sight.view.to_original(result.camera[row], file.size)
            camera = given.restored(camera, row)
            kept = sight.fields.to("cpu") if keep_fields else None
            if kept is not None and keep_fields == "full":
                kept = enlarge(kept, sight.view, file.size)
            answer = Calibration.from_fit(result, row, camera, file.path, fields=kept)
            outcomes.append(answer)
        return list(map(Answer, outcomes, _sharpened(outcomes, sights, task)))

    def _fitted_model(self, model: CameraModel) -> CameraModel:
        """The model to fit to the network's fields."""
        legacy = self.card.legacy_up_field and isinstance(model, SimpleRadial)
        return LegacySimpleRadial() if legacy else model

    def _fit_fields(
        self,
        fields: Sequence[Fields],
        sizes: Sequence[tuple[int, int]],
        task: _Task,
        mapping: Mapping,
        given: Given,
    ) -> FitResult:
        model = self._fitted_model(task.model)
        options = FitOptions(confidence_scale=self.card.confidence_scale)
        given = given.before_scaling(**self.card.sigma_scale)
        if _some_turned(sizes, task.camera.tolist()):
            assert isinstance(given.principal_point, Tensor)
            plane = Plane.create(mapping, sizes, given.principal_point)
            result = fit_turned(fields, plane, given, model, task.camera, options)
            return self._calibrated_sigmas(result)
        known = mapping.to_fields(given)
        # In double precision the fit takes fewer steps and no longer.
        batches = [
            Fields.concatenate(list(batch)).to(torch.float64)
            for _, batch in groupby(fields, lambda part: part.size)
        ]
        result = fit(
            batches,
            model,
            known.focal,
            known.gravity,
            known.distortion,
            known.principal_point,
            task.camera,
            task.rig,
            aspect=mapping.aspect_of(given),
            options=options,
        )
        return self._calibrated_sigmas(result)

    def _calibrated_sigmas(self, result: FitResult) -> FitResult:
        """As the weights' card corrects them, of a camera that users know."""
        if isinstance(result.camera.model, LegacySimpleRadial):
            result = replace(result, camera=without_legacy(result.camera))
        return result.with_sigmas_scaled(**self.card.sigma_scale)


def _sharpened(outcomes: Sequence[Outcome], sights: Sequence[Seen], task: _Task) -> list[Outcome]:
    """The outcomes with what straight lines say, where segments were asked for."""
    answers = list(outcomes)
    found = {
        row: (outcome, segments)
        for row, (outcome, sight) in enumerate(zip(outcomes, sights, strict=True))
        if isinstance(outcome, Calibration)
        and (segments := sight.segments) is not None
        # Lines know of no free aspect.
        and LOG_ASPECT not in outcome.parameters
    }
    if found:
        part = task[list(found)]
        calibrations, every = zip(*found.values(), strict=True)
        refined = refine_turned(calibrations, every, part.camera, part.rig)
        for row, answer in zip(found, refined, strict=True):
            answers[row] = answer
    return answers


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


def _check_sizes(files: Sequence[File], cameras: Sequence[int], given: Given, rig: bool) -> None:
    """One camera takes pictures of one size; turned by a quarter, if nothing else turns along."""
    may_turn = isinstance(given.principal_point, Tensor) and given.aspect is None and not rig
    first: dict[int, File] = {}
    for file, camera in zip(files, cameras, strict=True):
        other = first.setdefault(camera, file)
        if file.size != other.size and not (may_turn and file.size == other.size[::-1]):
            sizes = ["x".join(map(str, seen.size)) for seen in (file, other)]
            raise CouplingError(
                f"{file.name} is {sizes[0]} pixels, but {other.name}, of the same camera, "
                f"{sizes[1]}; resize them alike, or give them cameras of their own"
            )


def _some_turned(sizes: Sequence[tuple[int, int]], cameras: Sequence[int]) -> bool:
    """Whether a camera took both portrait and landscape pictures."""
    return len(set(zip(cameras, sizes, strict=True))) > len(set(cameras))
