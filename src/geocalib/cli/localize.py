"""``geocalib localize``: where photos were taken, in a model that COLMAP has built."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Annotated

import typer

from geocalib.cli.exits import SOME_FAILED
from geocalib.cli.groups import INPUT, KNOWN, OUTPUT
from geocalib.cli.options import Overwrite
from geocalib.cli.poses import PoseFormat, Sources


def command(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Folder of a COLMAP model.", show_default=False)
    ],
    queries: Annotated[
        str,
        typer.Argument(
            metavar="QUERIES",
            help="Lines NAME MODEL WIDTH HEIGHT PARAMS[], or NAME where --calibration has it.",
            show_default=False,
        ),
    ],
    matches: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Lines NAME X Y POINT3D_ID (.txt), or the matches of hloc (.h5).",
            show_default=False,
            rich_help_panel=INPUT,
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="File or folder to write.",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ],
    features: Annotated[
        str | None,
        typer.Option(
            metavar="H5", help="The features of hloc, for its matches.", rich_help_panel=INPUT
        ),
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            metavar="TXT",
            help="Lines QUERY DATABASE_IMAGE, for the matches of hloc.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    calibration: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Gravity and cameras: calibrate --json -o FILE.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    world_gravity: Annotated[
        tuple[float, float, float] | None,
        typer.Option(
            metavar="X Y Z",
            help="Down in the model. Default: what its own photos in --calibration say.",
            show_default=False,
            rich_help_panel=KNOWN,
        ),
    ] = None,
    format: Annotated[
        PoseFormat,
        typer.Option(
            help="Lines NAME QW QX QY QZ TX TY TZ, or a model's folder.", rich_help_panel=OUTPUT
        ),
    ] = PoseFormat.HLOC,
    threshold: Annotated[float, typer.Option(metavar="PX", help="Largest error of inliers.")] = 12,
    seed: Annotated[int, typer.Option(help="The same seed gives the same poses.")] = 0,
    overwrite: Overwrite = False,
) -> None:
    """Find where photos were taken.

    From matches to the 3D points of a COLMAP model. Gravity, where it is known, favours poses that
    stand upright as the photos do.
    """
    from geocalib.cli import localization
    from geocalib.files import Guard
    from geocalib.localize import LocalizeOptions

    sources = Sources(model, queries, matches, features, pairs, calibration)
    options = LocalizeOptions(threshold=threshold, seed=seed)
    Guard(astuple(sources), overwrite).check(localization.files_of(format, Path(output)))
    if not localization.run(sources, world_gravity, options, format, output):
        raise typer.Exit(SOME_FAILED)
