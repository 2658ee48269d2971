"""Pictures of any number of cameras, as the network has seen them, to outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from geocalib.priors.enabled import EnabledPriors, with_readings, with_starts
from geocalib.priors.judge import (
    Checks,
    agreement,
    annotated,
    doubtful_rows,
    held_against,
    left_out,
    tells,
    told_rows,
    unknown,
    without_focal,
    worth_lines,
    wrong_cameras,
)
from geocalib.result.calibration import Failure, Outcome
from geocalib.sets.album import Album, Method, Sight
from geocalib.sets.leaf import Leaf
from geocalib.sets.outliers import silent
from geocalib.sets.shelf import Shelf
from geocalib.solver.known import Given


def fit_set(
    sights: Iterable[Sight | Leaf | Failure],
    cameras: Sequence[int],
    given: Given,
    enabled: EnabledPriors,
    method: Method,
    shelf: Shelf | None = None,
) -> Iterator[Outcome]:
    """The outcome of each picture, in order. A picture that does not show the camera of its group
    is a ``Failure`` with the status ``OUTLIER``.

    cameras: an integer per picture, equal where the camera is. All sights are taken before the
    first outcome is there; they are kept in a temporary folder, and as leaves on a shelf, which the
    next run may take them from.
    """
    counts = Counter(cameras)
    with TemporaryDirectory(prefix="geocalib-") as folder:
        albums: dict[int, Album] = {}
        outcomes: dict[int, Outcome] = {}
        for index, sight in enumerate(sights):
            if isinstance(sight, Failure):
                outcomes[index] = sight
                continue
            camera, file = cameras[index], sight.file
            if misfit := given.impossible_focal(index, method.model, file.size):
                outcomes[index] = Failure(file.path, *file.size, f"{file.name}: {misfit}")
                continue
            if camera not in albums:
                store = Path(folder) / f"{camera}.observations"
                albums[camera] = Album(store, counts[camera], method)
            if isinstance(sight, Leaf):
                albums[camera].bind(index, sight)
                continue
            centre = enabled[[index]].placed(given[[index]], [file]).principal_point
            assert isinstance(centre, np.ndarray)  # Nothing frees it.
            leaf = albums[camera].add(index, sight, centre)
            if isinstance(leaf, Failure):
                outcomes[index] = leaf
            elif shelf is not None:
                shelf.keep(leaf)
        mute = _silent(albums.values())
        for index, camera in enumerate(cameras):
            if index not in outcomes:
                outcomes.update(_fitted(albums[camera], given, enabled, mute))
            yield outcomes.pop(index)


def _silent(albums: Iterable[Album]) -> set[int]:
    """Indices of the pictures that the network is hardly confident of, compared with all others:
    screenshots have no EXIF data and a size of their own, so they are alone."""
    pages = [page for album in albums for page in album.pages]
    if not pages:
        return set()
    mute = silent(np.array([page.confidence for page in pages]))
    return {page.index for page, one in zip(pages, mute.tolist(), strict=True) if one}


def _fitted(
    album: Album, given: Given, enabled: EnabledPriors, mute: set[int]
) -> Iterator[tuple[int, Outcome]]:
    """Index and outcome of each picture of an album, with its warnings.

    mute: the indices of pictures that are silent among those of all albums.
    """
    rows = [page.index for page in album.pages]
    files = [page.file for page in album.pages]
    enabled, given = enabled[rows], given[rows]
    given = enabled.placed(given, files)
    start = [page.down for page in album.pages]
    cameras, readings = [0] * len(files), enabled.readings(given, files)

    def fitted(known: Given, lines: bool = True) -> dict[int, Outcome]:
        return dict(enumerate(album.outcomes(with_starts(known, start), mute, lines)))

    outcomes, checks = fitted(with_readings(given, readings, files, cameras)), {}
    if told_rows(readings, together=True):
        checks = agreement(readings, fitted(given, lines=False))
        if doubtful_rows(readings, checks, outcomes, together=True):
            checks = agreement(readings, fitted(given))
            if wrong := wrong_cameras(checks, cameras):
                left = without_focal(readings, cameras, wrong)
                outcomes = fitted(with_readings(given, left, files, cameras))
                checks = {row: left_out(each) for row, each in checks.items()}
    held: dict[int, Checks] = {}
    if tells(given):
        held = held_against(given, fitted(unknown(given), lines=False))
        if any(worth_lines(held[row], outcomes[row]) for row in held):
            held = held_against(given, fitted(unknown(given)))
    for index, (row, page) in enumerate(zip(rows, album.pages, strict=True)):
        notes = (*album.method.warnings, *page.notes)
        yield (
            row,
            annotated(
                outcomes[index],
                (*held.get(index, ()), *checks.get(index, ())),
                readings[index],
                notes,
                page.file.metadata.orientation,
            ),
        )
