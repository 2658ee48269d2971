"""Pictures of any number of cameras, as the network has seen them, to outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from torch import Tensor

from geocalib.calibration import Calibration, Failure, Outcome
from geocalib.clues import Clues, pulled, started
from geocalib.known import Given
from geocalib.sets.album import Album, Method, Sight
from geocalib.trust import doubts


def fit_set(
    sights: Iterable[Sight | Failure],
    cameras: Sequence[int],
    given: Given,
    clues: Clues,
    method: Method,
) -> Iterator[Outcome]:
    """The outcome of each picture, in order. A picture that does not show the camera of its group
    is a ``Failure`` with the status ``OUTLIER``.

    cameras: an integer per picture, equal where the camera is. All sights are taken before the
    first outcome is there; they are kept in a temporary folder.
    """
    counts = Counter(cameras)
    with TemporaryDirectory(prefix="geocalib-") as folder:
        albums: dict[int, Album] = {}
        outcomes: dict[int, Outcome] = {}
        for index, sight in enumerate(sights):
            if isinstance(sight, Failure):
                outcomes[index] = sight
                continue
            camera = cameras[index]
            if camera not in albums:
                file = Path(folder) / f"{camera}.observations"
                albums[camera] = Album(file, counts[camera], method)
            centre = clues[[index]].placed(given[[index]], [sight.file]).principal_point
            assert isinstance(centre, Tensor)  # Nothing frees it.
            failure = albums[camera].add(index, sight, centre)
            if failure is not None:
                outcomes[index] = failure
        for index, camera in enumerate(cameras):
            if index not in outcomes:
                outcomes.update(_fitted(albums[camera], given, clues))
            yield outcomes.pop(index)


def _fitted(album: Album, given: Given, clues: Clues) -> Iterator[tuple[int, Outcome]]:
    """Index and outcome of each picture of an album, with its warnings."""
    rows = [page.index for page in album.pages]
    files = [page.file for page in album.pages]
    clues, given = clues[rows], given[rows]
    given = clues.placed(given, files)
    readings = clues.readings(given, files)
    given = pulled(given, readings, files, [0] * len(files))
    answers = album.outcomes(started(given, [page.down for page in album.pages]))
    for row, (page, answer) in enumerate(zip(album.pages, answers, strict=True)):
        if isinstance(answer, Calibration):
            notes = (*clues.notes(page.notes, row), *readings[row].notes)
            told = (*album.method.warnings, *notes, *doubts(answer))
            answer = replace(answer, warnings=told)
        yield page.index, answer
