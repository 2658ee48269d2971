"""What a call of ``Calibrator`` takes: its keywords, and the images and the camera model of each,
in whatever way they are given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypedDict, cast

import numpy as np

from geocalib.arrays import is_tensor
from geocalib.cameras.base import CameraModel
from geocalib.cameras.registry import get_model
from geocalib.errors import ConfigError, CouplingError, ImageError
from geocalib.files.image_files import content_of
from geocalib.imaging import ImageSource
from geocalib.pipeline.rotation import AnyRotation
from geocalib.pipeline.solve import KeepFields
from geocalib.priors.crop import CropLike
from geocalib.priors.enabled import UsualPrior
from geocalib.result.calibration import Calibration, Failure, Outcome
from geocalib.solver import Rig
from geocalib.solver.coupling import Coupling
from geocalib.solver.known import Known

CameraModels = str | CameraModel | Sequence[str | CameraModel]
"""A camera model or its name, or one per image."""

LinesMode = Literal["auto", "off", "only"]


class Knowns(TypedDict, total=False):
    """The keywords of ``Calibrator.calibrate`` that concern the fit."""

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
    sensors: bool
    free_principal_point: float | None
    crop: CropLike
    prior: UsualPrior


class Options(Knowns, total=False):
    """The keywords of ``Calibrator.calibrate``."""

    lines: LinesMode
    any_rotation: AnyRotation


def listed(
    images: ImageSource | Iterable[ImageSource],
) -> tuple[Sequence[ImageSource], bool]:
    """The images in a list, and whether it was a single one."""
    if isinstance(images, np.ndarray) or is_tensor(images):
        return (list(images), False) if images.ndim == 4 else ([images], True)
    # A path, the bytes of a file and an open file, too, are iterable.
    single = isinstance(images, str | bytes | bytearray | memoryview) or hasattr(images, "read")
    if isinstance(images, Iterable) and not single:
        # Files that are open do not travel to other processes: what is in them does.
        return [content_of(cast(ImageSource, image)) for image in images], False
    return [content_of(cast(ImageSource, images))], True


def alone_of(outcomes: Sequence[Outcome]) -> Calibration:
    """The answer for a single image, or an error."""
    if isinstance(outcomes[0], Failure):
        raise ImageError(outcomes[0].error)
    return outcomes[0]


def models_of(camera_model: CameraModels, count: int) -> list[CameraModel]:
    """The camera model of each image."""
    if isinstance(camera_model, Sequence) and not isinstance(camera_model, str):
        if len(camera_model) != count:
            raise ConfigError(
                f"camera_model holds {len(camera_model)} names for {count} images; give one each"
            )
        return [get_model(name) for name in camera_model]
    return [get_model(camera_model)] * count


def check_models(models: Sequence[CameraModel], coupling: Coupling, distortion: bool) -> None:
    """Images that share something are of one model; so are all whose distortion is known."""
    if len(set(models)) == 1:
        return
    if distortion:
        raise ConfigError("distortion is known of one camera model; calibrate the others apart")
    first: dict[int, CameraModel] = {}
    components = coupling.camera_component[coupling.camera].tolist()
    for index, (model, component) in enumerate(zip(models, components, strict=True)):
        other = first.setdefault(component, model)
        if model is not other:
            raise CouplingError(
                f"image {index} is {model.name}, but another that shares its camera or its rig "
                f"is {other.name}; give them one camera model"
            )
