"""``geocalib eval``: how wrong the answers are, on photographs whose camera is known."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from geocalib.cli.options import Device, Overwrite, Weights
from geocalib.errors import ConfigError
from geocalib.pipeline.engines.load import EngineSpec
from geocalib.pipeline.options import CameraModelName, LinesChoice

# The words of ``geocalib_lab.evaluation``, here again as importing that takes seconds.
KNOWN = Literal["gravity", "focal", "both", "exif"]
STARTS = Literal["trivial", "heuristic", "ransac"]
SPLITS = Literal["magnification", "scene", "vfov"]
app = typer.Typer(rich_markup_mode=None, add_completion=False)

METHODS = Literal[
    "manhattan",
    "vanishing",
    "lines",
    "deepcalib",
    "paramnet",
    "fields",
    "endtoend",
    "adam",
    "network",
    "ours",
    "prior",
    "large",
    "large-prior",
]


@app.command()
def command(
    dataset: Annotated[
        list[Path],
        typer.Option(
            metavar="DIR",
            help="Folder or table with truth, or a folder of such; may be given several times.",
        ),
    ],
    weights: Weights = "lean",
    camera_model: Annotated[
        CameraModelName | None,
        typer.Option(help="What kind of lens; by default what suits the set.", show_default=False),
    ] = None,
    methods: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help=f"Also these ways to an answer, or all: {', '.join(get_args(METHODS))}.",
        ),
    ] = "",
    baseline_weights: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of deepcalib.safetensors and so on, as trained.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", help="So many photographs, spread over the set.")
    ] = None,
    known: Annotated[
        str,
        typer.Option(metavar="LIST", help=f"Also with these known: {', '.join(get_args(KNOWN))}."),
    ] = "",
    images_per_fit: Annotated[
        str,
        typer.Option(metavar="LIST", help="Also with so many images of one camera: 1,2,4,8,16,32."),
    ] = "",
    rig: Annotated[
        bool, typer.Option("--rig", help="Also with the cameras of each rig together.")
    ] = False,
    initial: Annotated[
        str,
        typer.Option(
            metavar="LIST", help=f"Also from these starts: {', '.join(get_args(STARTS))}."
        ),
    ] = "",
    descent: Annotated[
        bool,
        typer.Option("--descent", help="Also with fewer steps of the fit, and other dampings."),
    ] = False,
    split_by: Annotated[
        str, typer.Option(metavar="LIST", help=f"Errors by {', '.join(get_args(SPLITS))}.")
    ] = "magnification",
    blur: Annotated[
        int | None,
        typer.Option(metavar="PX", help="Also with so many pixels of detail across the photos."),
    ] = None,
    lines: Annotated[
        LinesChoice,
        typer.Option(help="Use straight lines, or measure the network alone, or them alone."),
    ] = LinesChoice.OFF,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Report, tables, plots. Run it again to resume.")
    ] = Path("evaluation"),
    report: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also pages in Markdown, for a site.", show_default=False),
    ] = None,
    device: Device = "auto",
    overwrite: Overwrite = False,
) -> None:
    """Measure the answers for photographs with ground truth.

    Prints the errors as tables, and writes a report with plots and the worst photographs, JSON and
    CSV.
    """
    given: Any = _words("--known", known, get_args(KNOWN))
    starts: Any = _words("--initial", initial, get_args(STARTS))
    splits: Any = _words("--split-by", split_by, get_args(SPLITS))
    ways = (
        get_args(METHODS) if methods == "all" else _words("--methods", methods, get_args(METHODS))
    )
    counts = _numbers("--images-per-fit", images_per_fit)
    from geocalib import console
    from geocalib.cli.network import load
    from geocalib.files import Guard, locked
    from geocalib_lab.evaluation.commands import PAGE, Plan, files_of, run
    from geocalib_lab.evaluation.methods.baselines import Baselines
    from geocalib_lab.evaluation.site_pages import SiteReport

    model = None if camera_model is None else str(camera_model)
    baselines = Baselines(baseline_weights, device)
    if methods != "all":
        baselines.check(ways)
    plan = Plan(
        dataset,
        model,
        limit,
        blur,
        given,
        counts,
        starts,
        descent,
        splits,
        rig,
        lines.value,
        ways,
        baselines,
    )
    sets = plan.read()
    words = [word for word in sys.argv[1:] if word != "--overwrite"]
    site = None if report is None else SiteReport(report, shlex.join(["geocalib", *words]))
    network = EngineSpec(weights, device)
    photos = (sample.image for samples in sets.values() for sample in samples)
    read = (*plan.tables.values(), *photos, network.file, *baselines.files.values())
    guard = Guard(read, overwrite)
    try:
        with locked(out / PAGE):
            guard.check([*files_of(out, sets), *(site.files(sets) if site else ())])
            evaluation = run(load(network), plan, out, overwrite, site)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("run the same command again to go on") from None
    typer.echo(console.legible(evaluation.markdown, sys.stdout))
    console.note(f"see {out / PAGE}")
    if evaluation.failed:
        raise typer.Exit(1)


def _words(option: str, text: str, choices: Sequence[str]) -> tuple[str, ...]:
    """The words of a list with commas."""
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    for word in words:
        if word not in choices:
            raise ConfigError(f"{option} {word}: known are {', '.join(choices)}")
    return words


def _numbers(option: str, text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    try:
        return tuple(int(word) for word in words)
    except ValueError:
        raise ConfigError(f"{option} {text}: give whole numbers, as 1,2,4,8") from None
