"""``geocalib convert``: cameras of one program's file in the words of another."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from geocalib.cli.exits import SOME_FAILED
from geocalib.cli.groups import OUTPUT
from geocalib.cli.options import SUFFIXES, FrameOption, Overwrite
from geocalib.errors import ConfigError, FormatError
from geocalib.pipeline.options import Format

if TYPE_CHECKING:
    from collections.abc import Sequence

    from geocalib.result.calibration import Calibration

BY_SUFFIX = {".db": Format.COLMAP_DATABASE, ".chan": Format.NUKE, ".xml": Format.LENSFUN}
"""Formats of one file by what its name may end in, besides its own name."""


def command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="A file of cameras, a folder of such files, or that of a COLMAP model.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str, typer.Argument(metavar="B", help="File or folder to write.", show_default=False)
    ],
    format: Annotated[
        Format | None,
        typer.Option(
            help="Of B; default: as its name says.", show_default=False, rich_help_panel=OUTPUT
        ),
    ] = None,
    frame: FrameOption = None,
    overwrite: Overwrite = False,
) -> None:
    """Write the cameras of one program's file for another program.

    Read are geocalib's own records, COLMAP's cameras and databases, OpenCV, ROS, nerfstudio, fSpy
    and Hugin; written is every format of calibrate.
    """
    format = format or _format_of(output)
    from geocalib import console
    from geocalib.files import Guard
    from geocalib.formats import FORMATS, files_of, readers
    from geocalib.formats.outputs import image_names
    from geocalib.result.calibration import Calibration, Failure

    cameras, known = readers.read(source), FORMATS[format]
    found = [outcome for outcome in cameras.outcomes if isinstance(outcome, Calibration)]
    if not found:
        raise FormatError(f"{source} holds no camera")
    if known.shows_gravity:
        _check_gravity(found, source, format)
    wanted = known.frame if frame is None else frame.literal
    _tell_turns(found, wanted)
    # The record keeps failures; all others hold cameras.
    kept = cameras.outcomes if format in (Format.JSON, Format.CSV) else found
    photos = [outcome.image for outcome in found if outcome.image is not None]
    targets = files_of(format, image_names(kept), output)
    guard = Guard((*cameras.files, *filter(os.path.isfile, photos)), overwrite)
    guard.check(targets, known.own if format is Format.COLMAP_DATABASE else None)
    written = known(kept, output, wanted)
    where = str(written[0]) if len(written) == 1 else f"{len(written)} files in {output}"
    console.note(f"{console.count(len(found), 'camera')} of {cameras.format}; see {where}")
    failures = [outcome for outcome in cameras.outcomes if isinstance(outcome, Failure)]
    if failures:
        console.failures(failures)
        raise typer.Exit(SOME_FAILED)


def _format_of(output: str) -> Format:
    """By the name of a file to write."""
    from geocalib.formats import FORMATS

    name = Path(output).name.lower()
    ends = [
        Format(key) for key, known in FORMATS.items() if known.file and name.endswith(known.file)
    ]
    if len(ends) == 1:
        return ends[0]
    suffix = os.path.splitext(name)[1]
    found = None if ends else {**SUFFIXES, **BY_SUFFIX}.get(suffix)
    if found is None:
        which = " or ".join(f"--format {end}" for end in ends) or "--format NAME"
        raise ConfigError(f"{output}: in which format? Add {which}")
    return found


def _check_gravity(found: Sequence[Calibration], source: str, format: Format) -> None:
    from geocalib.formats.outputs import NO_GRAVITY

    if any(calibration.status == NO_GRAVITY for calibration in found):
        raise FormatError(
            f"{source} does not say which way is down, which --format {format} shows; calibrate "
            "the photos with it instead"
        )


def _tell_turns(found: Sequence[Calibration], frame: str) -> None:
    """Say so where pixels may be turned otherwise, and no photo tells."""
    from geocalib import console

    unseen = [c for c in found if c.frame != frame and not (c.image and os.path.isfile(c.image))]
    if unseen:
        console.warn(
            f"{console.count(len(unseen), 'photo')} not found: taken as not turned by EXIF "
            "orientation"
        )
