"""``geocalib export``: networks for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from geocalib.cli.groups import OUTPUT, Grouped
from geocalib.cli.options import Overwrite, Weights
from geocalib.pipeline.engines.load import EngineSpec

app = typer.Typer(
    help="Write the network for other programs.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def _app() -> None:
    """A group, though it has one member as yet."""


@app.command(cls=Grouped)
def onnx(
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write there.",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ],
    weights: Weights = "lean",
    refer: Annotated[
        bool,
        typer.Option(
            "--refer",
            help="Leave the numbers in the weights' file, beside it.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Write a lean network as an ONNX file, with its card inside.

    It takes images of any number and size. calibrate --weights FILE uses it, without torch.
    """
    from geocalib import console
    from geocalib.files import Guard
    from geocalib.nets.onnx_export import export_onnx

    Guard([EngineSpec(weights, "auto").file], overwrite).check([Path(output)])
    export_onnx(weights, output, refer)
    console.note(f"wrote {output}")
