"""Pictures of any number of cameras, as the network has seen them, to outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from geocalib.priors.enabled import EnabledPriors, with_readings, with_starts
from geocalib.priors.judge import (
    Checks,
    agreement,
    annotated,
    believed_readings,
    doubtful_rows,
    gravity_odds,
    held_against,
    held_against_files,
    left_out,
    rows_with_readings,
    tells,
    unknown,
    worth_lines,
)
from geocalib.priors.lens_reading import common_model
from geocalib.priors.readings import Readings, of_both_angles
from geocalib.result.calibration import Failure, Outcome
from geocalib.result.trust import Doubt
from geocalib.sets.camera_group import CameraGroup, FitMethod, PredictedImage
from geocalib.sets.image_record import ImageRecord
from geocalib.sets.outliers import silent
from geocalib.sets.resume_cache import ResumeCache
from geocalib.solver.known import Given


def fit_set(
    images: Iterable[PredictedImage | ImageRecord | Failure],
    cameras: Sequence[int],
    given: Given,
    enabled: EnabledPriors,
    method: FitMethod,
    cache: ResumeCache | None = None,
) -> Iterator[Outcome]:
    """The outcome of each picture, in order. A picture that does not show the camera of its group
    is a ``Failure`` with the status ``OUTLIER``.

    cameras: an integer per picture, equal where the camera is. All images are taken before the
    first outcome is there; they are kept in a temporary folder, and as records in a cache, which
    the next run may take them from.
    """
    counts = Counter(cameras)
    with TemporaryDirectory(prefix="geocalib-") as folder:
        groups: dict[int, CameraGroup] = {}
        outcomes: dict[int, Outcome] = {}
        for index, image in enumerate(images):
            if isinstance(image, Failure):
                outcomes[index] = image
                continue
            camera, file = cameras[index], image.file
            if misfit := given.impossible_focal(index, method.model, file.size):
                outcomes[index] = Failure(file.path, *file.size, f"{file.name}: {misfit}")
                continue
            if camera not in groups:
                store = Path(folder) / f"{camera}.observations"
                groups[camera] = CameraGroup(store, counts[camera], method)
            if isinstance(image, ImageRecord):
                groups[camera].bind(index, image)
                continue
            centre = enabled[[index]].placed(given[[index]], [file]).principal_point
            assert isinstance(centre, np.ndarray)  # Nothing frees it.
            record = groups[camera].add(index, image, centre)
            if isinstance(record, Failure):
                outcomes[index] = record
            elif cache is not None:
                cache.keep(record)
        mute = _silent(groups.values())
        for index, camera in enumerate(cameras):
            if index not in outcomes:
                outcomes.update(_fitted(groups[camera], given, enabled, mute))
            yield outcomes.pop(index)


def _silent(groups: Iterable[CameraGroup]) -> set[int]:
    """Indices of the pictures that the network is hardly confident of, compared with all others:
    screenshots have no EXIF data and a size of their own, so they are alone."""
    members = [member for group in groups for member in group.members]
    if not members:
        return set()
    mute = silent(np.array([member.confidence for member in members]))
    return {member.index for member, one in zip(members, mute.tolist(), strict=True) if one}


def _fitted(
    group: CameraGroup, given: Given, enabled: EnabledPriors, mute: set[int]
) -> Iterator[tuple[int, Outcome]]:
    """Index and outcome of each picture of a group, with its warnings.

    mute: the indices of pictures that are silent among those of all groups.
    """
    rows = [member.index for member in group.members]
    files = [member.file for member in group.members]
    enabled, given = enabled[rows], given[rows]
    given = enabled.placed(given, files)
    start = [member.down for member in group.members]
    cameras, unnamed, model = [0] * len(files), group.method.unnamed, group.method.model
    named = None
    if unnamed:
        named = common_model([each.lens for each in enabled.readings(given, files, None)])
    readings = of_both_angles(enabled.readings(given, files, named if unnamed else model))
    if unnamed and named is None:
        readings = [replace(each, lens=None) for each in readings]
    known = with_readings(given, readings, files, cameras)
    choices = group.choose(with_starts(known, start), named) if unnamed else []
    lens = choices[0] if choices else None

    def fitted(known: Given, lines: bool = True) -> dict[int, Outcome]:
        return dict(enumerate(group.outcomes(with_starts(known, start), mute, lines, lens)))

    def fitted_as_read() -> tuple[list[Readings], dict[int, Outcome]]:
        """What files say of lenses of that model, and the outcomes with it."""
        found = enabled.readings(given, files, model if lens is None else lens.model)
        readings = of_both_angles(found)
        return readings, fitted(with_readings(given, readings, files, cameras))

    readings, outcomes = fitted_as_read()
    if lens is not None and lens.second(outcomes.values()).model != lens.model:
        before = choices, lens, readings, outcomes
        choices = [choice.second(outcomes.values()) for choice in choices]
        lens = choices[0]
        readings, outcomes = fitted_as_read()
        if any(lens.judged_by(each).model != lens.model for each in outcomes.values()):
            choices, lens, readings, outcomes = before
    checks: dict[int, Checks] = {}
    if rows_with_readings(readings, together=True):
        checks = agreement(readings, fitted(given, lines=False))
        if doubtful_rows(readings, checks, outcomes, together=True):
            alone = fitted(given)
            checks = agreement(readings, alone)
            left = believed_readings(readings, checks, gravity_odds(readings, alone), cameras)
            if left != readings:
                outcomes = fitted(with_readings(given, left, files, cameras))
                checks = {row: left_out(each, left[row]) for row, each in checks.items()}
    held: dict[int, Checks] = {}
    if tells(given):
        held = held_against(given, fitted(unknown(given), lines=False))
        if any(worth_lines(held[row], outcomes[row]) for row in held):
            held = held_against(given, fitted(unknown(given)))
        said = enabled.readings(unknown(given), files, model if lens is None else lens.model)
        beside = held_against_files(given, said, [outcomes[row] for row in sorted(outcomes)])
        held = {row: (*held[row], *beside.get(row, ())) for row in held}
    outcomes |= {row: choice.applied(outcomes[row]) for row, choice in enumerate(choices)}
    guess = [_guess(group)] if group.guessed else []
    for index, (row, member) in enumerate(zip(rows, group.members, strict=True)):
        notes: tuple[str | Doubt, ...] = (*group.method.warnings, *member.notes, *guess)
        yield (
            row,
            annotated(
                outcomes[index],
                (*held.get(index, ()), *checks.get(index, ())),
                readings[index],
                notes,
                member.file.metadata.orientation,
            ),
        )


def _guess(group: CameraGroup) -> Doubt:
    """That pictures may be of several cameras. It speaks against no answer: those that disagree
    are left out."""
    others = len(group.members) - 1
    words = f"the file names no camera; it shares one with {others} of its size, by that alone"
    return Doubt(words, about=())
