"""``geocalib serve``: calibration over HTTP, and a page in the browser."""

from __future__ import annotations

from typing import Annotated

import typer

from geocalib.cli.options import Device, Weights
from geocalib.pipeline.request import Engine, Network


def command(
    host: Annotated[str, typer.Option(help="0.0.0.0 lets other machines in.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    weights: Weights = "lean",
    device: Device = "auto",
    engine: Annotated[Engine, typer.Option(help="What runs the network.")] = Engine.AUTO,
) -> None:
    """Calibrate photos over HTTP, and in the browser."""
    import uvicorn

    from geocalib.cli.network import load
    from geocalib.server.app import create_app

    uvicorn.run(create_app(load(Network(weights, device, engine))), host=host, port=port)
