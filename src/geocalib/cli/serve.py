"""``geocalib serve``: calibration over HTTP, and a page in the browser."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from geocalib.cli.groups import ADDRESS, LIMITS, SPEED
from geocalib.cli.options import Device, Weights
from geocalib.errors import ConfigError, MissingPackageError, how_to_get
from geocalib.pipeline.engines.load import EngineSpec
from geocalib.pipeline.options import EngineChoice
from geocalib.server.limits import ServerLimits

KEY = "GEOCALIB_API_KEY"


def command(
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="0.0.0.0 lets other machines in.", rich_help_panel=ADDRESS
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="0 takes any free one.", rich_help_panel=ADDRESS)
    ] = 8000,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the page in a browser.", rich_help_panel=ADDRESS)
    ] = False,
    api_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            envvar=KEY,
            help="Answer only those who send it.",
            rich_help_panel=ADDRESS,
        ),
    ] = None,
    megabytes: Annotated[
        float,
        typer.Option(min=0.001, help="Most in the body of a request.", rich_help_panel=LIMITS),
    ] = ServerLimits.megabytes,
    megapixels: Annotated[
        float, typer.Option(min=0.001, help="Most in an image.", rich_help_panel=LIMITS)
    ] = ServerLimits.megapixels,
    images: Annotated[
        int, typer.Option(min=1, help="Most in a request.", rich_help_panel=LIMITS)
    ] = ServerLimits.images,
    seconds: Annotated[
        float,
        typer.Option(
            min=0.1, help="Most for an upload, and for its answer.", rich_help_panel=LIMITS
        ),
    ] = ServerLimits.seconds,
    queue: Annotated[
        int,
        typer.Option(
            min=1, help="Most images that wait; further ones get 429.", rich_help_panel=LIMITS
        ),
    ] = ServerLimits.queue,
    upload_megabytes: Annotated[
        float,
        typer.Option(min=0.001, help="Most of all requests together.", rich_help_panel=LIMITS),
    ] = ServerLimits.upload_megabytes,
    kept: Annotated[
        int,
        typer.Option(
            min=0,
            help="Photos whose fields are kept for refits, some 0.2 MB each.",
            rich_help_panel=LIMITS,
        ),
    ] = ServerLimits.kept,
    kept_minutes: Annotated[
        float,
        typer.Option(min=0, help="For how long after their last use.", rich_help_panel=LIMITS),
    ] = ServerLimits.kept_minutes,
    workers: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Processes that look at photos; 0: none but the server. "
            "Default: one for each core, or 0 with an accelerator.",
            show_default=False,
            rich_help_panel=SPEED,
        ),
    ] = None,
    weights: Weights = "auto",
    device: Device = "auto",
    engine: Annotated[
        EngineChoice, typer.Option(help="What runs the network.", rich_help_panel=SPEED)
    ] = EngineChoice.AUTO,
) -> None:
    """Calibrate photos over HTTP, and in the browser.

    Nothing is written to disk, and of photos nothing is kept but their fields, in memory.
    """
    if api_key is not None and not api_key.strip():
        raise ConfigError(f"the key is empty; drop --api-key and {KEY}, or give one")
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import python_multipart  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingPackageError(f"to serve, {how_to_get('serve')}") from None
    from geocalib.pipeline.parallel.threads import environment, threads

    cores = threads()
    if workers != 0:
        # Those who look at photos have the cores; what is left to do here is small.
        os.environ.update(environment(1))
    from geocalib.cli.network import load
    from geocalib.server.app import create_app
    from geocalib.server.run import run

    limits = ServerLimits(
        megabytes, megapixels, images, seconds, queue, upload_megabytes, kept, kept_minutes
    )
    # In the environment of a process others may read it.
    os.environ.pop(KEY, None)
    calibrator = load(EngineSpec(weights, device, engine.value))
    if workers is None:
        workers = cores if calibrator.on_processor else 0
    app = create_app(calibrator, limits, api_key, workers)
    run(app, host, port, limits, open_page)
