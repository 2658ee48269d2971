"""``geocalib undistort``, ``upright`` and ``rectify``: photos as another camera takes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from geocalib import console
from geocalib.cli.pictures import format_of, save
from geocalib.errors import GeoCalibError
from geocalib.formats.derived_tags import save_options
from geocalib.result.calibration import Failure, Outcome

Warp = Literal["undistort", "upright", "rectify"]
"""The methods of ``Calibration`` that make another picture."""


def run(
    warp: Warp, outcomes: Iterable[Outcome], files: Mapping[str, Path], border: str, output: str
) -> bool:
    """Write a picture for each image, and say whether all were.

    outcomes: of the images, in order; files: where the picture of each image goes.
    """
    failures: list[Failure] = []
    doubtful: list[str] = []
    try:
        with console.progress(len(files), warp) as advance:
            for image, outcome in zip(files, outcomes, strict=True):
                if isinstance(outcome, Failure):
                    failures.append(outcome)
                else:
                    try:
                        warped, file = getattr(outcome, warp)(image, border), files[image]
                        tags = save_options(image, warped.camera, format_of(file))
                        save(warped.image, file, **tags)
                        if outcome.warnings:
                            doubtful.append(f"{image}: {'; '.join(outcome.warnings)}")
                    except GeoCalibError as error:
                        failures.append(Failure(image, None, None, str(error)))
                advance()
    finally:
        console.failures(failures)
        for line in doubtful:
            console.warn(line)
    written = len(files) - len(failures)
    if written:
        where = str(next(iter(files.values()))) if len(files) == 1 else output
        console.note(f"{console.count(written, 'picture')} written to {where}")
    return not failures
