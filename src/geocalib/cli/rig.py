"""``geocalib rig``: photos of cameras that are mounted together, with one gravity at a time."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from geocalib.cli.exits import SOME_FAILED
from geocalib.cli.groups import INPUT, LENS, OUTPUT, SPEED
from geocalib.cli.options import Device, Exif, Overwrite, Sensors, Switch, Weights, chosen_format
from geocalib.errors import ConfigError
from geocalib.pipeline.engines.load import EngineSpec
from geocalib.pipeline.options import CameraModelName, Format, LinesChoice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from geocalib.result.calibration import Outcome
    from geocalib.rig import RigDescription, Shots


def command(
    rig: Annotated[
        str,
        typer.Argument(
            metavar="RIG",
            help="File of a rig, ours, kalibr's or COLMAP's; or cube, stereo.",
            show_default=False,
        ),
    ],
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH", help="Folders with photos, or photos.", show_default=False),
    ],
    images: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CAMERA=PATTERN",
            help="Which photos are of a camera, as left=l_*.png; * is the time step.",
            show_default=False,
            rich_help_panel=INPUT,
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="One JSON object per line.", rich_help_panel=OUTPUT)
    ] = False,
    csv: Annotated[
        bool, typer.Option("--csv", help="A table for spreadsheets.", rich_help_panel=OUTPUT)
    ] = False,
    format: Annotated[
        Format | None,
        typer.Option(help="Files for other programs.", show_default=False, rich_help_panel=OUTPUT),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="PATH", help="Write there.", rich_help_panel=OUTPUT),
    ] = None,
    camera_model: Annotated[
        CameraModelName, typer.Option(help="What kind of lenses.", rich_help_panel=LENS)
    ] = CameraModelName.AUTO,
    exif: Exif = Switch.ON,
    sensors: Sensors = Switch.ON,
    lines: Annotated[
        LinesChoice,
        typer.Option(help="Sharpen with straight lines, or not.", rich_help_panel=SPEED),
    ] = LinesChoice.AUTO,
    weights: Weights = "auto",
    device: Device = "auto",
    overwrite: Overwrite = False,
) -> None:
    """Find the cameras of a rig.

    The photos of one time step share gravity, those of one camera its lens. The folder that a photo
    is in names its camera, the name of its file the time step.
    """
    if lines is LinesChoice.ONLY:
        raise ConfigError("--lines only knows nothing of rigs; use calibrate")
    chosen = chosen_format(json, csv, format, output)
    from geocalib import console
    from geocalib.cli import report
    from geocalib.cli.inputs import find_images
    from geocalib.cli.network import load
    from geocalib.files import Guard, existing
    from geocalib.formats import files_of
    from geocalib.result.calibration import Failure
    from geocalib.rig import match_images, read_rig

    description = _with_images(read_rig(rig), images or [])
    found = find_images(paths, recursive=True)
    report.tell(found)
    for reason in found.missing.values():
        console.fail(reason)
    shots = match_images(description, [i for i in found.images if i not in found.missing])
    _say(shots)
    network = EngineSpec(weights, device)
    if chosen is not None and output is not None:
        read = (existing(rig), *found.images, network.file)
        Guard(read, overwrite).check(files_of(chosen, shots.images, output))
    outcomes = load(network).calibrate(
        list(shots.images),
        str(camera_model),
        rig=shots.rig,
        shared_intrinsics=shots.intrinsics,
        exif=exif is Switch.ON,
        sensors=sensors is Switch.ON,
        lines="auto" if lines is LinesChoice.AUTO else "off",
    )
    failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    console.failures(failures)
    _show(outcomes, chosen, output)
    if failures or found.problems or found.missing or shots.strangers:
        raise typer.Exit(SOME_FAILED)


def _with_images(description: RigDescription, patterns: Sequence[str]) -> RigDescription:
    """With the patterns of the command line in the place of others."""
    cameras = {camera.name: camera for camera in description.cameras}
    for words in patterns:
        name, _, pattern = words.partition("=")
        if name not in cameras or not pattern:
            known = ", ".join(cameras)
            raise ConfigError(f"--images {words}: give CAMERA=PATTERN; the cameras are {known}")
        cameras[name] = replace(cameras[name], images=pattern)
    return replace(description, cameras=tuple(cameras.values()))


def _say(shots: Shots) -> None:
    """What was found, and what looks wrong; ends where there is nothing to do."""
    from geocalib import console

    patterns = ", ".join(camera.images for camera in shots.description.cameras)
    for stranger in shots.strangers:
        console.fail(f"{stranger} is of no camera of {shots.description.source}: not {patterns}")
    if not shots.images:
        raise ConfigError(f"no photo is of {shots.description.source}: none is {patterns}")
    photos = console.count(len(shots.images), "photo")
    cameras = console.count(len(set(shots.camera)), "camera")
    console.note(f"{photos} of {cameras} at {console.count(shots.steps, 'time')}")
    if len(set(shots.camera)) > 1 and shots.steps == len(shots.images):
        console.warn("no two photos were taken at once; those that were have the same file name")


def _show(outcomes: Sequence[Outcome], format: Format | None, output: str | None) -> None:
    """The answers as a table, as lines, or in files."""
    from geocalib import console
    from geocalib.cli import report
    from geocalib.formats import FORMATS

    if format is None:
        report.print_table([report.row(outcome) for outcome in outcomes])
    elif output is not None:
        written = FORMATS[format](outcomes, output)
        where = str(written[0]) if len(written) == 1 else f"{len(written)} files in {output}"
        console.note(f"see {where}")
    elif format is Format.JSON:
        for outcome in outcomes:
            typer.echo(outcome.to_json())
    else:
        with TemporaryDirectory(prefix="geocalib-") as folder:
            (file,) = FORMATS[format](outcomes, Path(folder) / "table.csv")
            # As bytes: file names need not be valid text.
            with file.open("rb") as table:
                shutil.copyfileobj(table, sys.stdout.buffer)
