"""What a call asks about its photos, checked before any of them is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from geocalib.cameras.base import CameraModel
from geocalib.errors import ConfigError, CouplingError
from geocalib.imaging import ImageSource
from geocalib.nets.card import WeightCard
from geocalib.pipeline.arguments import check_models
from geocalib.pipeline.chunks import Chunk
from geocalib.pipeline.rotation import AnyRotation, Mode, mode_of
from geocalib.pipeline.sigmas import find_sigmas
from geocalib.pipeline.solve import KeepFields, Task
from geocalib.priors.crop import CropLike
from geocalib.priors.enabled import EnabledPriors, UsualPrior
from geocalib.records import dataclass
from geocalib.result.trust import UNTRAINED
from geocalib.solver import Rig
from geocalib.solver.coupling import Coupling, couple
from geocalib.solver.known import Given, Known
from geocalib.solver.sigma_calibration import FieldErrors


def errors_of(card: WeightCard) -> FieldErrors:
    """How far the fields of a network are off."""
    return FieldErrors(
        card.confidence_scale, card.sigma_scale, card.legacy_up_field, find_sigmas(card.sha256)
    )


def warnings_of(card: WeightCard) -> tuple[str, ...]:
    """What to say of every answer."""
    return () if card.trained else (UNTRAINED,)


@dataclass(frozen=True)
class Question:
    """What is asked about B photos."""

    models: Sequence[CameraModel]
    """Of each."""
    task: Task
    """With the first of the models."""
    coupling: Coupling
    with_lines: bool
    any_rotation: Mode

    @classmethod
    def create(
        cls,
        models: Sequence[CameraModel],
        card: WeightCard,
        *,
        shared_intrinsics: bool | Sequence[int] = False,
        rig: Rig | None = None,
        exif: bool = True,
        keep_fields: KeepFields = False,
        lines: str = "auto",
        sensors: bool = False,
        any_rotation: AnyRotation = "auto",
        free_principal_point: float | None = None,
        crop: CropLike = None,
        prior: UsualPrior = "none",
        **known: Known,
    ) -> Question:
        """From the arguments of ``Calibrator.calibrate``. card: of the network's weights. known:
        those of ``Given.create``."""
        count = len(models)
        coupling = couple(count, groups_of(shared_intrinsics, count), rig)
        check_models(models, coupling, known.get("distortion") is not None)
        wide = next((model for model in models if model.wide), models[0])
        given = Given.create(wide, coupling, **known)
        placed = crop is not None or free_principal_point is not None
        if known.get("principal_point") is not None and placed:
            raise ConfigError(
                "principal_point already says where it is; drop crop and free_principal_point"
            )
        if prior != "none" and rig is not None:
            raise ConfigError("a rig takes no photographs as people do; drop prior")
        enabled = EnabledPriors.create(count, exif, sensors, crop, free_principal_point, prior)
        trust = errors_of(card), warnings_of(card)
        task = Task(models[0], given, coupling.camera, rig, enabled, *trust, keep_fields)
        rotation = rotation_of(any_rotation, known.get("gravity"), known.get("roll_deg"))
        return cls(models, task, coupling, lines == "auto", rotation)

    def chunks(
        self, sources: Sequence[ImageSource], size: int
    ) -> list[tuple[list[int], Chunk[ImageSource]]]:
        """The photos, each model's by themselves and at most so many together, unless they share
        unknowns; with their rows in the list."""
        size = size if self.coupling.separate else len(sources)
        found = []
        for model in dict.fromkeys(self.models):
            every = [row for row, other in enumerate(self.models) if other is model]
            for start in range(0, len(every), size):
                rows = every[start : start + size]
                task = replace(self.task[rows], model=model)
                found.append((rows, self._chunk([sources[row] for row in rows], task)))
        return found

    def repeated(self, sources: Sequence[ImageSource]) -> Chunk[ImageSource]:
        """What is asked about one photo, asked about each of these."""
        count = len(sources)
        cameras = couple(count, None, None).camera
        return self._chunk(sources, replace(self.task[[0] * count], camera=cameras))

    def _chunk(self, sources: Sequence[ImageSource], task: Task) -> Chunk[ImageSource]:
        return Chunk(sources, task, self.with_lines, self.any_rotation)


def rotation_of(any_rotation: AnyRotation, *known: Known) -> Mode:
    """How to find out which side is up: who knows gravity, or roll, knows it."""
    mode = mode_of(any_rotation)
    return mode if mode == "on" or all(value is None for value in known) else "off"


def groups_of(shared: bool | Sequence[int], count: int) -> Sequence[int] | None:
    """Which of the images share a camera, as ``fit`` wants it."""
    if isinstance(shared, bool):
        return [0] * count if shared else None
    if len(shared) != count:
        raise CouplingError(
            f"shared_intrinsics holds {len(shared)} integers for {count} images; give one each"
        )
    return shared
