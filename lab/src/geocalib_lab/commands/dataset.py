"""``geocalib dataset``: make sets to measure on, check panoramas, get published sets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from geocalib.cli.options import Device, Overwrite, Weights
from geocalib.errors import ConfigError, PanoramaError
from geocalib.pipeline.engines.load import EngineSpec

if TYPE_CHECKING:
    from geocalib.pipeline.runs.journal import Request
    from geocalib_lab.panoramas.levelness import Level, Origin

app = typer.Typer(
    help="Make, check and get sets of pictures with ground truth.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)

Panoramas = Annotated[
    Path, typer.Argument(metavar="PANOS", help="Folder of panoramas, or of their splits.")
]
Split = Annotated[
    str | None, typer.Option(metavar="NAME", help="Folder in PANOS, as train, val, test.")
]


@app.command()
def make(
    panos: Panoramas,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write.")],
    split: Split = None,
    per_panorama: Annotated[int, typer.Option(metavar="N", help="Pictures of each.")] = 16,
    size: Annotated[str, typer.Option(metavar="WxH", help="Pixels.")] = "640x640",
    distorted: Annotated[
        bool, typer.Option("--distorted", help="Through lenses that bend.")
    ] = False,
    people: Annotated[
        bool, typer.Option("--people", help="Nearly level, as people take pictures.")
    ] = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Another one gives others.")] = 0,
    same_camera: Annotated[
        int | None,
        typer.Option(metavar="N", help="So many pictures each have one camera; see eval."),
    ] = None,
    rig: Annotated[
        str | None,
        typer.Option(metavar="RIG", help="Shots of a rig: its file, or cube; see geocalib rig."),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Cut pictures with known cameras out of panoramas.

    Written in the layout of the published sets: images/ and images.csv, for geocalib eval.
    """
    match = re.fullmatch(r"(\d+)x(\d+)", size)
    if match is None:
        raise ConfigError(f"--size {size}: give width and height in pixels, as 640x480")
    from geocalib import console
    from geocalib.files import Guard, existing, locked
    from geocalib.rig import read_rig
    from geocalib_lab.evaluation.crop_views import CropConfig
    from geocalib_lab.evaluation.crops import TABLE, UNFINISHED, render_crops
    from geocalib_lab.panoramas.pictures import find_panoramas

    width, height = (int(side) for side in match.groups())
    mounted = None if rig is None else read_rig(rig)
    config = CropConfig(
        per_panorama, (width, height), distorted, people, seed, same_camera, mounted
    )
    folder = panos if split is None else panos / split
    manifest = panos / "manifest.csv"
    paths = find_panoramas(folder)
    guard = Guard((*paths, manifest, existing(rig)), overwrite)
    problems: list[PanoramaError] = []
    with locked(out / TABLE), console.progress(len(paths), "panoramas") as done:
        guard.check([out / TABLE])
        # The pictures of a run that was interrupted are made again.
        unfinished = (out / UNFINISHED).exists()
        guard.check(sorted(out.glob("images/*.jpg")), (lambda _: True) if unfinished else None)
        table = render_crops(
            folder,
            out,
            config,
            manifest=manifest if manifest.exists() else None,
            done=done,
            failed=problems.append,
        )
    if len(problems) < len(paths):
        console.note(f"pictures and their truth are in {table}")
    _end(problems)


@app.command()
def check(
    panos: Panoramas,
    split: Split = None,
    views: Annotated[int, typer.Option(metavar="N", help="Views of each panorama.")] = 24,
    out: Annotated[
        Path, typer.Option(metavar="CSV", help="Table to write. Run it again to resume.")
    ] = Path("levels.csv"),
    weights: Weights = "auto",
    device: Device = "auto",
    overwrite: Overwrite = False,
) -> None:
    """Tell whether panoramas are level.

    Looks around in each of them, and finds the tilt that its views have in common.
    """
    from geocalib import console
    from geocalib.cli.network import load
    from geocalib.files import Guard, locked
    from geocalib.files.snapshot import file_stat, snapshot
    from geocalib_lab.evaluation.levels import check_level
    from geocalib_lab.panoramas.levelness import is_table, write_levels
    from geocalib_lab.panoramas.pictures import find_panoramas

    paths = find_panoramas(panos if split is None else panos / split)
    network = EngineSpec(weights, device)
    Guard((*paths, network.file), overwrite).check([out], is_table)
    problems = []
    with locked(out):
        request, levels, origins = _known_levels(out, network, views, overwrite)
        named = {str(path.relative_to(panos)): path for path in paths}
        todo = {name: path for name, path in named.items() if _is_new(path, origins.get(name))}
        if len(todo) < len(paths):
            known = console.count(len(paths) - len(todo), "panorama")
            console.note(f"{known} already in {out}: going on with {len(todo)}")
        calibrator = load(network) if todo else None
        with console.progress(len(todo), "panoramas") as done:
            for name, path in todo.items():
                assert calibrator is not None
                before = file_stat((str(path),))
                try:
                    levels[name] = check_level(calibrator, path, views)
                except PanoramaError as error:
                    problems.append(error)
                else:
                    photo = snapshot((str(path),), before)
                    origins[name] = {"request": request, "photo": photo}
                    write_levels(levels, out, origins)
                done()
    _print_levels({name: level for name, level in levels.items() if level.verdict != "level"})
    good = sum(level.verdict == "level" for level in levels.values())
    console.note(f"{good} of {console.count(len(levels), 'panorama')} level; see {out}")
    _end(problems)


def _end(problems: Sequence[PanoramaError]) -> None:
    """A line for each panorama that could not be used."""
    from geocalib import console

    for problem in problems:
        console.fail(str(problem))
    if problems:
        raise typer.Exit(1)


def _known_levels(
    out: Path, network: EngineSpec, views: int, anew: bool
) -> tuple[Request, dict[str, Level], dict[str, Origin]]:
    """The request, and the levels and origins in a table; an error if it has another request.

    anew: without what it says.
    """
    from geocalib.nets.weights.catalogue import identify
    from geocalib.pipeline.runs.journal import check_same, request_of
    from geocalib_lab.panoramas.levelness import read_levels, read_origins

    request = request_of(identify(network.weights), views=views)
    if anew or not out.exists() or out.stat().st_size == 0:
        return request, {}, {}
    origins = read_origins(out)
    for origin in origins.values():
        check_same(origin["request"], request, out)
    return request, read_levels(out), origins


def _is_new(path: Path, origin: Origin | None) -> bool:
    """Whether a panorama was not looked at yet as it is now."""
    from geocalib.files.snapshot import unchanged

    return origin is None or not unchanged(origin["photo"], (str(path),))


def _print_levels(levels: dict[str, Level]) -> None:
    """A table of panoramas, the most tilted first."""
    from rich.text import Text

    from geocalib import console
    from geocalib.cli import report

    if not levels:
        return
    rows = [
        (
            Text(console.printable(name)),
            Text(f"{level.tilt_deg:.2f} ± {level.sigma_deg:.2f}"),
            Text(f"{level.spread_deg:.1f}"),
            Text(level.verdict),
        )
        for name, level in sorted(levels.items(), key=lambda item: -item[1].tilt_deg)
    ]
    headers = ("panorama", "tilt °", "spread of views °", "verdict")
    report.draw_table(headers, rows, ("panorama", "verdict"))


@app.command()
def get(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="openpano, stanford2d3d, tartanair, megadepth2k, megadepth2k-radial, lamar2k.",
        ),
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for the set's folder.")],
    accept_terms: Annotated[
        bool, typer.Option("--accept-terms", help="I have accepted the terms of stanford2d3d.")
    ] = False,
) -> None:
    """Download a published set. Run it again to go on after an interruption."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from geocalib import console
    from geocalib_lab.evaluation.benchmarks import get_benchmark

    columns = (TextColumn(name), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console.standard_error(), transient=True) as bar:
        task = bar.add_task(name, total=None)
        place = get_benchmark(
            name,
            out,
            accept_terms,
            lambda there, total: bar.update(task, completed=there, total=total),
        )
    console.note(f"{name} is in {place}; measure with geocalib eval --dataset {place}")
