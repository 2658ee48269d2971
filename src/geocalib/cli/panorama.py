"""``geocalib panorama``: which way is down in an equirectangular panorama, and views of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from geocalib.cli.groups import OUTPUT
from geocalib.cli.options import Device, Overwrite, Weights
from geocalib.pipeline.engines.load import EngineSpec

if TYPE_CHECKING:
    from geocalib.level.panorama import PanoramaLevel

RECORDS = "views.jsonl"
"""The file of the views' records, beside them."""


def command(
    panorama: Annotated[
        str, typer.Argument(metavar="PHOTO", help="A picture of 2:1.", show_default=False)
    ],
    views: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help=f"Write upright views all around, and {RECORDS} with their cameras.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    count: Annotated[int, typer.Option(help="How many views.", rich_help_panel=OUTPUT)] = 8,
    fov: Annotated[
        float, typer.Option(metavar="DEG", help="Width of a view.", rich_help_panel=OUTPUT)
    ] = 75.0,
    weights: Weights = "auto",
    device: Device = "auto",
    overwrite: Overwrite = False,
) -> None:
    """Find roll and pitch of a whole panorama, and cut upright views from it.

    Roll and pitch are those of a camera that looks where the panorama's middle column does.
    """
    from geocalib import console
    from geocalib.cli.network import load
    from geocalib.files import Guard
    from geocalib.imaging.content import LIKELY, examine
    from geocalib.imaging.panorama import read_panorama
    from geocalib.level.panorama import level_of

    photo = read_panorama(panorama)
    network = EngineSpec(weights, device)
    files = _files(panorama, views, count) if views is not None else []
    Guard((panorama, network.file), overwrite).check(files)
    if (likely := examine(photo.pixels, photo.size).panorama) < LIKELY:
        console.warn(f"{panorama} hardly looks like an equirectangular panorama ({likely:.0%})")
    level = level_of(load(network), panorama)
    typer.echo(_words(panorama, level))
    if views is None:
        console.note(f"upright views: geocalib panorama {panorama} --views DIR")
        return
    _write(panorama, level, files, fov)
    console.note(f"{console.count(count, 'view')} and {RECORDS} written to {views}")


def _words(panorama: str, level: PanoramaLevel) -> str:
    agree = level.views - level.outliers
    return (
        f"{panorama}: roll {level.roll_deg:.2f}, pitch {level.pitch_deg:.2f} degrees, both "
        f"± {level.sigma_deg:.2f}; {agree} of {level.views} views agree"
    )


def _files(panorama: str, folder: str, count: int) -> list[Path]:
    """That of the records, and that of each view, by its heading."""
    stem = Path(panorama).stem
    names = [f"{stem}-{360 * number / count:03.0f}.jpg" for number in range(count)]
    return [Path(folder) / name for name in (RECORDS, *names)]


def _write(panorama: str, level: PanoramaLevel, files: list[Path], fov: float) -> None:
    """Views, and then their records."""
    from dataclasses import replace

    from PIL import Image

    from geocalib.cli.pictures import save
    from geocalib.formats import json_lines

    records, *places = files
    found = []
    for place, view in zip(places, level.upright_views(panorama, len(places), fov), strict=True):
        save(Image.fromarray(view.pixels), place)
        found.append(replace(view.calibration, image=place.name))
    json_lines.write(found, records)
