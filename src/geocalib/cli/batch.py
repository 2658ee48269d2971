"""``geocalib batch``: photos by the million to tables of Parquet."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Annotated

import typer

from geocalib.cli.exits import SOME_FAILED
from geocalib.cli.groups import SPEED
from geocalib.cli.options import (
    Device,
    Exif,
    LinesOption,
    Model,
    Sensors,
    Switch,
    UsualPrior,
    Weights,
    Workers,
)
from geocalib.pipeline.engines.load import EngineSpec
from geocalib.pipeline.options import CameraModelName, LinesChoice, Options, Usual


class Where(StrEnum):
    """The engine that works on a batch."""

    LOCAL = "local"
    RAY = "ray"


def command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="A folder, a pattern, .tar or .parquet; also s3://... and the like.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str,
        typer.Argument(
            metavar="OUTPUT", help="Folder of tables. Run it again to resume.", show_default=False
        ),
    ],
    engine: Annotated[
        Where, typer.Option(help="This machine, or a cluster.", rich_help_panel=SPEED)
    ] = Where.LOCAL,
    camera_model: Model = CameraModelName.AUTO,
    lines: LinesOption = LinesChoice.AUTO,
    exif: Exif = Switch.ON,
    sensors: Sensors = Switch.ON,
    prior: UsualPrior = Usual.AUTO,
    weights: Weights = "auto",
    device: Device = "auto",
    workers: Workers = None,
) -> None:
    """Find the cameras of any number of photos.

    One row of Parquet for each photo, failures too.
    """
    from geocalib import console
    from geocalib.batch.run import BatchRun
    from geocalib.cli.network import load

    options = Options(
        camera_model.value,
        lines=lines.value,
        exif=exif is Switch.ON,
        sensors=sensors is Switch.ON,
        prior=prior.value,
    )
    network = EngineSpec(weights, device)
    batch = BatchRun(source, output, options, network, engine.value, workers)
    failed = 0
    try:
        with batch.alone():
            plan = batch.plan()
            parts = plan.left(batch.place)
            left = sum(map(len, parts))
            count = sum(map(len, plan.parts))
            if left < count:
                console.note(f"{count - left} of {count} photos are done: going on with {left}")
            with console.progress(len(parts), "tables") as advance:
                for _, without in batch.run(plan, partial(load, network)):
                    failed += without
                    advance()
    except KeyboardInterrupt:
        raise KeyboardInterrupt("run the same command again to go on") from None
    failures = f", {failed} failed" if failed else ""
    console.note(f"{console.count(left, 'photo')} calibrated{failures}; see {output}")
    if failed:
        raise typer.Exit(SOME_FAILED)
