"""The third stage: fields, lines and priors to outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Literal

import numpy as np

from geocalib.arrays import Array, double, to_numpy
from geocalib.cameras.base import CameraModel
from geocalib.errors import CouplingError
from geocalib.geometry.fields import Fields
from geocalib.imaging.enlarge import enlarge
from geocalib.lines.refine import refine_outcomes
from geocalib.pipeline.predict import Seen
from geocalib.priors.enabled import EnabledPriors, File, started
from geocalib.priors.inform import informed
from geocalib.records import dataclass
from geocalib.result.calibration import Calibration, Failure, Outcome
from geocalib.result.trust import BLANK
from geocalib.solver import FitOptions, FitResult, Rig, fit
from geocalib.solver.joint import Plane, fit_turned
from geocalib.solver.known import Given, Mapping
from geocalib.solver.sigma_calibration import FieldErrors

KeepFields = bool | Literal["full"]


@dataclass(frozen=True)
class Task:
    """B images to fit together: what is known of them, and of the network that saw them."""

    model: CameraModel
    given: Given
    camera: Array
    """(B,) integers, equal for images of one camera."""
    rig: Rig | None
    enabled: EnabledPriors
    errors: FieldErrors
    warnings: tuple[str, ...] = ()
    """What is to be said of every answer."""
    keep_fields: KeepFields = False

    @property
    def coupled(self) -> bool:
        """Whether some images share a camera or a rig."""
        return self.rig is not None or len(set(self.camera.tolist())) < len(self.camera)

    def __getitem__(self, index: Sequence[int]) -> Task:
        """A part of it."""
        rows = list(index)
        if rows == list(range(len(self.camera))):
            return self
        return replace(
            self,
            given=self.given[rows],
            camera=self.camera[rows],
            rig=None if self.rig is None else self.rig[rows],
            enabled=self.enabled[rows],
        )


def solve(task: Task, sights: Sequence[Seen | Failure]) -> list[Outcome]:
    """The outcome of each image of a task."""
    outcomes: dict[int, Outcome] = {}
    seen: dict[int, Seen] = {}
    for index, sight in enumerate(sights):
        if not isinstance(sight, Seen):
            outcomes[index] = sight
        elif misfit := task.given.impossible_focal(index, task.model, (file := sight.file).size):
            outcomes[index] = Failure(file.path, *file.size, f"{file.name}: {misfit}")
        else:
            seen[index] = sight
    # Fields of one size are fitted as one batch.
    order = sorted(seen, key=lambda index: seen[index].fields.size)
    if order:
        answers = _solve_seen(task[order], [seen[index] for index in order])
        outcomes.update(zip(order, answers, strict=True))
    return [outcomes[index] for index in range(len(sights))]


def _solve_seen(task: Task, sights: Sequence[Seen]) -> list[Outcome]:
    """The outcomes of images that the network has seen, sorted by the size of their fields."""
    files, cameras = [sight.file for sight in sights], task.camera.tolist()
    given = task.enabled.placed(task.given, files)
    _check_sizes(files, cameras, given, task.rig is not None)
    return informed(
        lambda known, rows, lines: _answers(
            task[rows], [sights[row] for row in rows], known[rows], lines
        ),
        given,
        task.enabled,
        files,
        cameras,
        [(*task.warnings, *sight.notes) for sight in sights],
        together=task.coupled,
    )


def _answers(task: Task, sights: Sequence[Seen], given: Given, lines: bool) -> list[Outcome]:
    """The outcomes without their warnings, by what is given; with lines, or the network's own."""
    alone = _alone(task, given)
    given = started(given, [sight.down for sight in sights])
    by_card = _fit(task, sights, given)
    seen = [BLANK not in sight.notes for sight in sights]
    by_each = task.errors.with_learnt_sigmas(by_card, seen) if alone else by_card
    outcomes = _outcomes(task, sights, given, by_each)
    if not lines:
        return outcomes
    cameras, told = task.camera.tolist(), given.focal_information
    opinions = [sight.opinion for sight in sights]
    usual = task.enabled.expected(outcomes, cameras, told, opinions)
    unasked = all(sight.segments is None for sight in sights)
    as_usual = usual is not outcomes or by_each is by_card or unasked
    # Lines were taught to weigh themselves against the card's sigmas.
    before = usual if as_usual else _as_sure_as(by_card, outcomes)
    # Here they are needed, and waited for.
    sharp = refine_outcomes(before, [sight.lines for sight in sights], cameras, task.rig, told)
    if as_usual:
        return sharp
    return [unless_sharp(*each) for each in zip(outcomes, sharp, strict=True)]


def _outcomes(task: Task, sights: Sequence[Seen], given: Given, result: FitResult) -> list[Outcome]:
    """What a fit says of the originals."""
    outcomes: list[Outcome] = []
    for row, sight in enumerate(sights):
        file = sight.file
        if result.status[row].failed:
            error = f"{file.name}: {result.status[row]}"
            outcomes.append(Failure(file.path, *file.size, error))
            continue
        camera = given.restored(sight.view.to_original(result.camera[row], file.size), row)
        kept = _kept(sight, task.keep_fields)
        outcomes.append(Calibration.from_fit(result, row, camera, file.path, fields=kept))
    return outcomes


def _as_sure_as(result: FitResult, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """With the covariances of a fit with the same parameters, none of them in pixels. Their sigmas
    stay: nobody reads them where lines may yet make other ones."""
    return [
        replace(outcome, covariance=result.covariance[row])
        if isinstance(outcome, Calibration)
        else outcome
        for row, outcome in enumerate(outcomes)
    ]


def unless_sharp(network: Outcome, sharp: Outcome) -> Outcome:
    """The answer with lines; where these changed nothing, with the network's own sigmas."""
    if not isinstance(sharp, Calibration) or not isinstance(network, Calibration):
        return sharp
    if sharp.lines is not None and sharp.lines.verdict.used:
        return sharp
    return replace(sharp, covariance=network.covariance, sigma=network.sigma)


def _kept(sight: Seen, keep_fields: KeepFields) -> Fields | None:
    """What an answer holds of what the network saw."""
    if not keep_fields:
        return None
    fields = sight.fields.map(to_numpy)
    return enlarge(fields, sight.view, sight.file.size) if keep_fields == "full" else fields


def _fit(task: Task, sights: Sequence[Seen], given: Given) -> FitResult:
    """Cameras, in pixels of the fields, and gravity, with calibrated sigmas."""
    if task.coupled or len({sight.fields.size for sight in sights}) == 1:
        return _fit_together(task, sights, given)
    # Beside larger fields the last bits of an answer would be others.
    runs = groupby(range(len(sights)), lambda row: sights[row].fields.size)
    sizes = [list(rows) for _, rows in runs]
    return FitResult.concatenate(
        [_fit_together(task[rows], [sights[row] for row in rows], given[rows]) for rows in sizes]
    )


def _fit_together(task: Task, sights: Sequence[Seen], given: Given) -> FitResult:
    """The same as one batch."""
    fields = [sight.fields for sight in sights]
    sizes = [sight.file.size for sight in sights]
    mapping = Mapping.create([sight.view for sight in sights], [part.size for part in fields])
    model = task.errors.model_to_fit(task.model)
    options = FitOptions(confidence_scale=task.errors.confidence_scale)
    given = task.errors.before_correction(given)
    if _some_turned(sizes, task.camera.tolist()):
        assert isinstance(given.principal_point, np.ndarray)
        plane = Plane.create(mapping, sizes, given.principal_point)
        here = [part.map(to_numpy) for part in fields]
        turned = fit_turned(here, plane, given, model, task.camera, options)
        return task.errors.corrected(turned)
    known = mapping.to_fields(given)
    # In double precision the fit takes fewer steps and no longer.
    batches = [
        Fields.concatenate(list(batch)).map(double)
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
    return task.errors.corrected(result.in_numpy())


def _alone(task: Task, given: Given) -> bool:
    """Whether every image has unknowns of its own, of which nobody tells anything."""
    return not task.coupled and given.focal is None and given.gravity is None


def _check_sizes(files: Sequence[File], cameras: Sequence[int], given: Given, rig: bool) -> None:
    """One camera takes pictures of one size; turned by a quarter, if nothing else turns along."""
    may_turn = isinstance(given.principal_point, np.ndarray) and given.aspect is None and not rig
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
