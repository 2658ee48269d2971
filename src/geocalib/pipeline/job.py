"""``Job``: options bound to B images and to one network, and ``Batch``: a job with its images.

What only concerns the images themselves (their sizes, their files) is not known here yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Generic, TypeVar, cast

import numpy as np

from geocalib.arrays import Array, is_tensor, to_numpy
from geocalib.cameras.base import CameraModel
from geocalib.cameras.registry import get_model
from geocalib.errors import ConfigError, CouplingError, ImageError
from geocalib.files.image_files import content_of
from geocalib.geometry.drawn import DrawnLine
from geocalib.geometry.ruler import Ruler
from geocalib.imaging import ImageSource
from geocalib.nets.weights.card import WeightCard
from geocalib.pipeline.engines.sigmas import find_sigmas
from geocalib.pipeline.options import AUTO, KeepFields, LinesMode, Options, RotationMode
from geocalib.priors.enabled import EnabledPriors, File
from geocalib.priors.readings import Readings, of_both_angles
from geocalib.records import dataclass
from geocalib.result.calibration import Calibration, Failure, Outcome
from geocalib.result.trust import UNTRAINED
from geocalib.solver import Rig
from geocalib.solver.coupling import Coupling, couple
from geocalib.solver.known import Given, Prior, Rows, select_rows
from geocalib.solver.sigma_calibration import FieldErrors

if TYPE_CHECKING:
    from geocalib.pipeline.options import CameraModels

IMPLIED = {1: "simple_radial", 2: "radial"}
"""The camera model by how many numbers of distortion are known."""

Image = TypeVar("Image")
"""An image: a source, or the result of a stage."""


@dataclass(frozen=True)
class Job:
    """What is to be found out about B images: ``Options``, checked for so many images, with what
    is known of the network that sees them."""

    models: tuple[CameraModel, ...]
    """The camera model of each image."""
    unnamed: tuple[bool, ...]
    """Whether each image's kind of lens is to be found; its model is a pinhole meanwhile."""
    given: Given
    """Values and priors of the caller."""
    camera: Array
    """(B,) integers, equal for images of one camera."""
    rig: Rig | None
    enabled: EnabledPriors
    errors: FieldErrors
    """How far the network's fields are off."""
    warnings: tuple[str, ...]
    """What is to be said of every answer."""
    lines: LinesMode
    rotation: RotationMode
    keep_fields: KeepFields
    drawn: Sequence[DrawnLine]
    """Lines that a person drew, on one image."""
    ruler: Ruler | None
    """A known length, on one image."""
    usual_distortion: Rows = None
    """(B, D) of the lenses that pictures chose themselves, before they are fitted."""

    @classmethod
    def create(cls, options: Options, card: WeightCard, count: int) -> Job:
        """About so many images, for the network with this card."""
        if count != 1:
            options.check_many()
        models = models_of(options, count)
        groups = options.groups(range(count))
        coupling = couple(count, groups, options.rig)
        _check_models(models, coupling, options.distortion is not None)
        enabled = EnabledPriors.create(
            count,
            options.exif,
            options.sensors,
            options.crop,
            options.free_principal_point,
            # Photographs of one camera or rig tell of their lens together.
            options.prior == "photos"
            or (options.prior == "auto" and coupling.separate and options.rig is None),
        )
        return cls(
            tuple(models),
            unnamed_of(options, count),
            given_of(options, models, coupling),
            coupling.camera,
            options.rig,
            enabled,
            errors_of(card),
            warnings_of(card),
            options.lines_mode,
            options.rotation,
            options.keep_fields,
            options.drawn,
            options.ruler,
        )

    @property
    def model(self) -> CameraModel:
        """The camera model of a job whose images all have the same."""
        return self.models[0]

    @property
    def coupled(self) -> bool:
        """Whether some images share a camera or a rig."""
        return self.rig is not None or len(set(self.camera.tolist())) < len(self.camera)

    def readings(
        self, given: Given, files: Sequence[File], model: CameraModel | None
    ) -> list[Readings]:
        """What files say of each image that nothing is given for: single angles of gravity only
        where no unknowns are shared. model: in whose parameters distortion is; None for that of
        each lens."""
        readings = self.enabled.readings(given, files, model)
        return of_both_angles(readings) if self.coupled else readings

    def __getitem__(self, index: Sequence[int]) -> Job:
        """The same about some of the images."""
        rows = list(index)
        if rows == list(range(len(self.camera))):
            return self
        return replace(
            self,
            models=tuple(self.models[row] for row in rows),
            unnamed=tuple(self.unnamed[row] for row in rows),
            given=self.given[rows],
            camera=self.camera[rows],
            rig=None if self.rig is None else self.rig[rows],
            enabled=self.enabled[rows],
            usual_distortion=select_rows(self.usual_distortion, rows),
        )

    @property
    def alone(self) -> Job:
        """The same about what the pictures themselves tell, whatever is usual."""
        return replace(self, enabled=replace(self.enabled, photos=False))

    def with_lens(self, model: CameraModel, distortion: Rows) -> Job:
        """About images that chose this model, with what is usual of its distortion (B, D)."""
        count = len(self.models)
        return replace(
            self, models=(model,) * count, unnamed=(False,) * count, usual_distortion=distortion
        )

    def repeated(self, count: int) -> Job:
        """A job about one image, as one about so many that share nothing."""
        return replace(self[[0] * count], camera=couple(count, None, None).camera)

    def batches(
        self, sources: Sequence[ImageSource], size: int
    ) -> list[tuple[list[int], Batch[ImageSource]]]:
        """The images in batches of one camera model, at most so many together unless they share
        unknowns; with their rows in the list."""
        size = len(sources) if self.coupled else size
        found = []
        kinds = list(zip(self.models, self.unnamed, strict=True))
        for kind in dict.fromkeys(kinds):
            every = [row for row, other in enumerate(kinds) if other == kind]
            for start in range(0, len(every), size):
                rows = every[start : start + size]
                found.append((rows, Batch([sources[row] for row in rows], self[rows])))
        return found


@dataclass(frozen=True)
class Batch(Generic[Image]):
    """A few images, and what is requested about them."""

    images: Sequence[Image]
    job: Job

    def __len__(self) -> int:
        return len(self.images)

    def split(self, size: int) -> list[Batch[Image]]:
        """Parts of that size, in order; the last may be smaller."""
        parts = [range(at, min(at + size, len(self))) for at in range(0, len(self), size)]
        return [Batch([self.images[row] for row in rows], self.job[rows]) for rows in parts]


def errors_of(card: WeightCard) -> FieldErrors:
    """How far the fields of a network are off."""
    return FieldErrors(
        card.confidence_scale, card.sigma_scale, card.legacy_up_field, find_sigmas(card.sha256)
    )


def warnings_of(card: WeightCard) -> tuple[str, ...]:
    """What is to be said of every answer of a network."""
    return () if card.trained else (UNTRAINED,)


def given_of(options: Options, models: Sequence[CameraModel], coupling: Coupling) -> Given:
    """What the caller knows of the images."""
    wide = next((model for model in models if model.wide), models[0])
    return Given.create(
        wide,
        coupling,
        focal=options.focal,
        gravity=options.gravity,
        distortion=options.distortion,
        principal_point=options.principal_point,
        aspect=options.aspect,
        vfov_deg=options.vfov_deg,
        roll_deg=options.roll_deg,
        pitch_deg=options.pitch_deg,
    )


def models_of(options: Options, count: int) -> list[CameraModel]:
    """The camera model of each image: if it is not named, a pinhole's, or the one that a known
    distortion implies."""
    names = _names_of(options.camera_model, count)
    unnamed = _implied(options)
    return [unnamed if name == AUTO else get_model(name) for name in names]


def unnamed_of(options: Options, count: int) -> tuple[bool, ...]:
    """Whether each image's kind of lens is to be found: if no camera model is named, and known
    values imply none."""
    named = options.distortion is not None or options.vfov_deg is not None
    return tuple(name == AUTO and not named for name in _names_of(options.camera_model, count))


def _names_of(camera_model: CameraModels, count: int) -> Sequence[str | CameraModel]:
    """One name for each image."""
    if not isinstance(camera_model, Sequence) or isinstance(camera_model, str):
        return [camera_model] * count
    if len(camera_model) != count:
        raise ConfigError(
            f"camera_model holds {len(camera_model)} names for {count} images; give one each"
        )
    return camera_model


def _implied(options: Options) -> CameraModel:
    """The model that a known distortion implies, if no model is named."""
    known = options.distortion
    if known is None:
        return get_model("pinhole")
    value = np.atleast_1d(to_numpy(known.value if isinstance(known, Prior) else known))
    count = int(value.shape[-1])
    if count not in IMPLIED:
        raise ConfigError(
            f"distortion holds {count} numbers, which may be those of several lenses; name the "
            "camera_model as well"
        )
    return get_model(IMPLIED[count])


def _check_models(models: Sequence[CameraModel], coupling: Coupling, distortion: bool) -> None:
    """Images that share something are of one model; so are all whose distortion is known."""
    if len(set(models)) == 1:
        return
    if distortion:
        raise ConfigError("distortion is known of one camera model; calibrate the others apart")
    first: dict[int, CameraModel] = {}
    components = coupling.camera_component[coupling.camera].tolist()
    for index, (model, component) in enumerate(zip(models, components, strict=True)):
        other = first.setdefault(component, model)
        if model != other:
            raise CouplingError(
                f"image {index} is {model.name}, but another that shares its camera or its rig "
                f"is {other.name}; give them one camera model"
            )


def listed(images: ImageSource | Iterable[ImageSource]) -> tuple[Sequence[ImageSource], bool]:
    """The images in a list, and whether it was a single one."""
    if isinstance(images, np.ndarray) or is_tensor(images):
        return (list(images), False) if images.ndim == 4 else ([images], True)
    # A path, the bytes of a file and an open file, too, are iterable.
    single = isinstance(images, str | bytes | bytearray | memoryview) or hasattr(images, "read")
    if isinstance(images, Iterable) and not single:
        # Files that are open do not travel to other processes: what is in them does.
        return [content_of(cast(ImageSource, image)) for image in images], False
    return [content_of(cast(ImageSource, images))], True


def answer_of(outcomes: Sequence[Outcome]) -> Calibration:
    """The answer for a single image, or an error."""
    (outcome,) = outcomes
    if isinstance(outcome, Failure):
        raise ImageError(outcome.error)
    return outcome
