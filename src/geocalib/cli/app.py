"""The commands and their options. Nothing heavy is imported until a command runs."""

from __future__ import annotations

import gc
import sys
from copy import copy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from geocalib.cli import (
    batch,
    convert,
    export,
    level,
    localize,
    panorama,
    rig,
    serve,
    streams,
    video,
)
from geocalib.cli.exits import SOME_FAILED, UNUSABLE
from geocalib.cli.groups import LENS, OUTPUT, SPEED, Grouped
from geocalib.cli.network import begin
from geocalib.cli.options import (
    AnyRotation,
    Borders,
    Device,
    DrawnLines,
    Exif,
    Focal,
    Fov,
    FrameOption,
    FreePrincipalPoint,
    LinesOption,
    Model,
    Output,
    Overwrite,
    Photo,
    Photos,
    Pitch,
    PriorReport,
    Recursive,
    Roll,
    RulerOption,
    Saved,
    Sensors,
    Switch,
    UsualPrior,
    Weights,
    Window,
    Workers,
    chosen_format,
    drawn_lines,
    known_length,
    window,
)
from geocalib.cli.plugins import Commands
from geocalib.errors import ConfigError
from geocalib.pipeline.engines.load import EngineSpec
from geocalib.pipeline.options import (
    BY_EXIF,
    POINT_SHARE,
    CameraModelName,
    EngineChoice,
    Format,
    LinesChoice,
    Options,
    Rotation,
    Usual,
)
from geocalib.pipeline.parallel.threads import start_quickly

if TYPE_CHECKING:
    from geocalib.cli.inputs import FoundImages
    from geocalib.cli.warps import Warp


ALL_IMAGES = "all"
"""Says that one camera took all images."""


def _find(paths: list[str], recursive: bool = False) -> FoundImages:
    """The images of a command; ends it where there are none."""
    from geocalib.cli.inputs import find_images
    from geocalib.cli.report import tell

    found = find_images(paths, recursive)
    tell(found)
    if not found.images:
        raise typer.Exit(UNUSABLE)
    return found


def _lists(paths: list[str]) -> list[str]:
    """The files that paths were read from."""
    return ["/dev/stdin"] if "-" in paths else []


def _finish(complete: bool) -> None:
    if not complete:
        raise typer.Exit(SOME_FAILED)


app = typer.Typer(
    cls=Commands,
    help="Which way is down, how wide the view is, and how the lens bends it: from a photograph.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    # Help in colour takes twice as long to appear.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """The entry point of the command ``geocalib``."""
    streams.make_ready()
    start_quickly()
    # With python -W somebody wants to know.
    if not sys.warnoptions:
        streams.hush_libraries()
    try:
        _only(sys.argv[1:2])(prog_name="geocalib")
    finally:
        # Python ends with a search for garbage in all that was imported, and a process that ends
        # needs none: what is frozen is not searched.
        gc.freeze()


def _only(names: list[str]) -> typer.Typer:
    """The app with no other commands than those named, if it has them: to read the options of all
    takes a tenth of a second."""
    named = copy(app)
    named.registered_commands = [
        command
        for command in app.registered_commands
        if (command.name or getattr(command.callback, "__name__", None)) in names
    ]
    named.registered_groups = [group for group in app.registered_groups if group.name in names]
    return named if named.registered_commands or named.registered_groups else app


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"geocalib {version('geocalib')}")
        raise typer.Exit


@app.callback()
def _app(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which it is.")
    ] = False,
) -> None:
    pass


@app.command(cls=Grouped)
def calibrate(
    paths: Photos,
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
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Write there. Run it again to resume.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    camera_model: Model = CameraModelName.AUTO,
    focal: Focal = None,
    fov: Fov = None,
    exif: Exif = Switch.ON,
    roll: Roll = None,
    pitch: Pitch = None,
    shared: Annotated[
        bool,
        typer.Option(
            "--shared",
            help="Photos of one camera, by EXIF and size, share it.",
            rich_help_panel=LENS,
        ),
    ] = False,
    cameras: Annotated[
        str | None,
        typer.Option(
            metavar="all|CSV",
            help="With --shared: one for all, or columns image and camera.",
            rich_help_panel=LENS,
        ),
    ] = None,
    overlay: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Draw the answer on each photo, there.", rich_help_panel=OUTPUT
        ),
    ] = None,
    recursive: Recursive = False,
    lines: LinesOption = LinesChoice.AUTO,
    line: DrawnLines = None,
    ruler: RulerOption = None,
    sensors: Sensors = Switch.ON,
    prior_report: PriorReport = False,
    any_rotation: AnyRotation = Rotation.AUTO,
    free_principal_point: FreePrincipalPoint = False,
    crop: Window = None,
    prior: UsualPrior = Usual.AUTO,
    frame: FrameOption = None,
    weights: Weights = "auto",
    device: Device = "auto",
    engine: Annotated[
        EngineChoice, typer.Option(help="What runs the network.", rich_help_panel=SPEED)
    ] = EngineChoice.AUTO,
    workers: Workers = None,
    overwrite: Overwrite = False,
) -> None:
    """Find the camera of each photo.

    Roll, pitch, field of view, focal length and distortion, each with one sigma: as a table, or in
    a format for programs.
    """
    if cameras is not None and not shared:
        raise ConfigError("cameras says which photos share a camera; add shared")
    options = Options(
        camera_model.value,
        focal=focal,
        vfov_deg=fov,
        exif=exif is Switch.ON,
        roll_deg=roll,
        pitch_deg=pitch,
        shared_intrinsics=shared and (cameras == ALL_IMAGES or cameras or BY_EXIF),
        lines=lines.value,
        drawn=drawn_lines(line),
        ruler=known_length(ruler),
        sensors=sensors is Switch.ON,
        any_rotation=any_rotation.value,
        free_principal_point=POINT_SHARE if free_principal_point else None,
        crop=window(crop),
        prior=prior.value,
        keep_fields=overlay is not None,
    )
    if shared:
        options.check_set()
    if prior_report and not (options.exif or options.sensors or options.knows):
        raise ConfigError(
            "--prior-report needs priors to report on: drop --exif off or --sensors off"
        )
    chosen = chosen_format(json, csv, format, output)
    found = _find(paths, recursive)
    if len(found.images) > 1:
        options.check_many()
    network = EngineSpec(weights, device, engine.value)
    loads = begin(network)
    from geocalib.cli import calibrate as command
    from geocalib.cli.inputs import DRAWING
    from geocalib.cli.pictures import folder_places
    from geocalib.files import Guard
    from geocalib.priors.readings import sidecar_of

    drawings = {} if overlay is None else folder_places(found.images, overlay, DRAWING)
    sidecars = map(sidecar_of, found.images) if options.sensors else ()
    read = (*found.images, *sidecars, *_lists(paths), options.table, network.file)
    guard = Guard(read, overwrite)
    job = command.CalibrateRun(
        found.images,
        found.missing,
        options,
        network,
        loads,
        drawings,
        guard,
        prior_report,
        workers,
        None if frame is None else frame.literal,
    )
    complete = command.run(job, chosen, output)
    _finish(complete and not found.problems)


@app.command(cls=Grouped)
def show(
    photo: Photo,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PNG",
            help="Default: PHOTO.geocalib.png, here.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    camera_model: Model = CameraModelName.AUTO,
    focal: Focal = None,
    fov: Fov = None,
    exif: Exif = Switch.ON,
    roll: Roll = None,
    pitch: Pitch = None,
    lines: LinesOption = LinesChoice.AUTO,
    line: DrawnLines = None,
    ruler: RulerOption = None,
    sensors: Sensors = Switch.ON,
    any_rotation: AnyRotation = Rotation.AUTO,
    free_principal_point: FreePrincipalPoint = False,
    crop: Window = None,
    prior: UsualPrior = Usual.AUTO,
    weights: Weights = "auto",
    device: Device = "auto",
    overwrite: Overwrite = False,
) -> None:
    """Draw the answer on a photo.

    One picture of the horizon, of lines of equal latitude, of the up-vectors, of the straight lines
    that were used, and of the numbers.
    """
    options = Options(
        camera_model.value,
        focal=focal,
        vfov_deg=fov,
        exif=exif is Switch.ON,
        roll_deg=roll,
        pitch_deg=pitch,
        lines=lines.value,
        drawn=drawn_lines(line),
        ruler=known_length(ruler),
        sensors=sensors is Switch.ON,
        any_rotation=any_rotation.value,
        free_principal_point=POINT_SHARE if free_principal_point else None,
        crop=window(crop),
        prior=prior.value,
        keep_fields=True,
    )
    found = _find([photo])
    from geocalib.cli import show as command
    from geocalib.cli.inputs import DRAWING
    from geocalib.cli.pictures import places
    from geocalib.files import Guard

    if len(found.images) > 1:
        raise ConfigError("show draws one photo; calibrate --overlay DIR draws any number of them")
    (file,) = places(found.images, output or ".", DRAWING).values()
    network = EngineSpec(weights, device)
    Guard((*found.images, network.file), overwrite).check([file])
    _finish(command.run(found.images[0], found.missing, file, options, network))


def _add_warp(warp: Warp, help: str) -> None:
    """The command for one kind of new picture."""

    @app.command(warp, cls=Grouped, help=help)
    def command(
        paths: Photos,
        output: Output,
        crop: Borders = False,
        calibration: Saved = None,
        camera_model: Model = CameraModelName.AUTO,
        focal: Focal = None,
        fov: Fov = None,
        exif: Exif = Switch.ON,
        roll: Roll = None,
        pitch: Pitch = None,
        recursive: Recursive = False,
        sensors: Sensors = Switch.ON,
        weights: Weights = "auto",
        device: Device = "auto",
        overwrite: Overwrite = False,
    ) -> None:
        if warp == "undistort" and camera_model is CameraModelName.PINHOLE:
            raise ConfigError("a pinhole camera bends nothing; choose another --camera-model")
        options = Options(
            camera_model.value,
            focal=focal,
            vfov_deg=fov,
            exif=exif is Switch.ON,
            roll_deg=roll,
            pitch_deg=pitch,
            sensors=sensors is Switch.ON,
        )
        found = _find(paths, recursive)
        from geocalib.cli import warps
        from geocalib.cli.network import load
        from geocalib.cli.pictures import places
        from geocalib.files import Guard
        from geocalib.pipeline.runs.answers import calibrated, saved

        files = places(found.images, output)
        network = EngineSpec(weights, device)
        read = (*found.images, *_lists(paths), calibration, network.file)
        Guard(read, overwrite).check(files.values())
        if calibration is None:
            calibrator = partial(load, network)
            outcomes = calibrated(found.images, found.missing, options, calibrator)
        else:
            outcomes = saved(found.images, found.missing, Path(calibration))
        complete = warps.run(warp, outcomes, files, "crop" if crop else "keep", output)
        _finish(complete and not found.problems)


_add_warp("undistort", "Straighten what the lens has bent.")
_add_warp("upright", "Turn photos until they are level.")
_add_warp(
    "rectify",
    "Make verticals vertical and parallel. The photos become those of a level camera.",
)


@app.command(cls=Grouped)
def info(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PHOTO]...", help="Photos to read.", show_default=False),
    ] = None,
) -> None:
    """Say what is installed, or what the files of photos tell.

    Versions, devices, weights, camera models, formats, and where downloads are kept. Of a photo:
    its camera, its focal length and field of view with one sigma, and gravity.
    """
    if paths:
        from geocalib.cli import photo_info

        found = _find(paths)
        _finish(photo_info.run(found.images, found.missing) and not found.problems)
        return
    from geocalib.cli import info as command

    command.run()


app.add_typer(export.app, name="export")
app.command("video", cls=Grouped)(video.command)
app.command("localize", cls=Grouped)(localize.command)
app.command("level", cls=Grouped)(level.command)
app.command("convert", cls=Grouped)(convert.command)
app.command("panorama", cls=Grouped)(panorama.command)
app.command("rig", cls=Grouped)(rig.command)
app.command("batch", cls=Grouped)(batch.command)
app.command("serve", cls=Grouped)(serve.command)
