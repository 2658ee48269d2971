"""``geocalib train``: the same as ``python -m geocalib_lab.training``, and a plot of its curves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from geocalib.cli.options import Overwrite
from geocalib.errors import ConfigError

CURVES = "curves.png"

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def command(
    config: Annotated[
        Path | None, typer.Option(metavar="TOML", help="File of settings.", show_default=False)
    ] = None,
    panos: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of train/, val/.")
    ] = None,
    photos: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of photographs of known focal length."),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for the results.")] = None,
    travel: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of light files; default: OUT/travel.")
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of decoded panoramas; default: OUT.")
    ] = None,
    levels: Annotated[
        Path | None,
        typer.Option(metavar="CSV", help="Table of tilted panoramas, as of dataset check."),
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(metavar="N", help="Stop in time to be done by then.")
    ] = None,
    steps: Annotated[int | None, typer.Option(metavar="N", help="Stop at this step.")] = None,
    encoder: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Pretrained weights of the encoder.")
    ] = None,
    init: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Exported weights to start from: DIR/raw.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="FILE", help="whole.pt to go on from exactly.")
    ] = None,
    device: Annotated[
        str | None, typer.Option(metavar="NAME", help="cpu or cuda; default: cuda if there.")
    ] = None,
    set: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Change a setting; may be given several times."),
    ] = None,
    overwrite: Overwrite = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Only draw the curves of the logs there.")
    ] = None,
) -> None:
    """Train a network on panoramas.

    Within --minutes or up to --steps. The curves are drawn in the end.
    """
    if plot is not None:
        from geocalib.files import Guard

        Guard(overwrite=overwrite).check([plot / CURVES])
        _draw(plot)
        return
    given = {
        "config": config,
        "panos": panos,
        "photos": photos,
        "out": out,
        "travel": travel,
        "cache": cache,
        "levels": levels,
        "minutes": minutes,
        "steps": steps,
        "encoder": encoder,
        "init": init,
        "resume": resume,
        "device": device,
    }
    if panos is None or out is None:
        raise ConfigError("say where the panoramas are with --panos, where to write with --out")
    words = [w for name, value in given.items() if value is not None for w in (f"--{name}", value)]
    for setting in set or ():
        words += ["--set", setting]
    words += ["--overwrite"] if overwrite else []
    from geocalib_lab.training.__main__ import main

    if code := main([str(word) for word in words]):
        raise typer.Exit(code)
    _draw(travel or out / "travel")


def _draw(folder: Path) -> None:
    from geocalib import console
    from geocalib_lab.training.journal import plot

    plot(folder, folder / CURVES)
    console.note(f"curves drawn in {folder / CURVES}")
