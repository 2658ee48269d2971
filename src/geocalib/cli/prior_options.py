"""Options about what may be known beside the pixels of a photo."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from geocalib.cli.groups import KNOWN, LENS, OUTPUT
from geocalib.errors import ConfigError
from geocalib.pipeline.options import Rotation, Usual

UsualPrior = Annotated[
    Usual,
    typer.Option(
        "--prior",
        help="Expect focal lengths as people use them, or any: none for crops and renderings.",
        rich_help_panel=KNOWN,
    ),
]


class Switch(StrEnum):
    """Whether something is done: on or off."""

    ON = "on"
    OFF = "off"


EXIF, SENSORS = "--exif", "--sensors"
Exif = Annotated[
    Switch,
    typer.Option(
        EXIF, help="Take the focal length in the EXIF data as a hint.", rich_help_panel=KNOWN
    ),
]
Sensors = Annotated[
    Switch,
    typer.Option(
        SENSORS,
        help="Take gravity as a hint: by the phone, the drone, or a file beside the photo.",
        rich_help_panel=KNOWN,
    ),
]
PriorReport = Annotated[
    bool,
    typer.Option(
        "--prior-report", help="Show how well hints and photos agree.", rich_help_panel=OUTPUT
    ),
]


AnyRotation = Annotated[
    Rotation,
    typer.Option(
        help="Which side is up: notice, take the likeliest, or the upper one.",
        rich_help_panel=KNOWN,
    ),
]
FreePrincipalPoint = Annotated[
    bool,
    typer.Option(
        "--free-principal-point",
        help="Photos may be cropped, nobody knows where.",
        rich_help_panel=LENS,
    ),
]
Window = Annotated[
    str | None,
    typer.Option(
        "--crop",
        metavar="L,T,W,H,FULLW,FULLH",
        help="Cut out of larger photos: left, top, width, height, and the size of those.",
        rich_help_panel=KNOWN,
    ),
]


def spelt_out(words: Sequence[str]) -> list[str]:
    """The words of a command line with "on" for an --exif or --sensors that stands alone, as they
    once did."""
    following = [*words, ""][1:]
    return [
        f"{word}={Switch.ON}" if word in (EXIF, SENSORS) and after not in tuple(Switch) else word
        for word, after in zip(words, following, strict=True)
    ]


def window(text: str | None) -> tuple[float, ...] | None:
    """The six numbers of --crop."""
    if text is None:
        return None
    try:
        values = tuple(map(float, text.split(",")))
    except ValueError:
        values = ()
    if len(values) != 6:
        raise ConfigError(f"--crop takes six numbers, L,T,W,H,FULLW,FULLH; got {text!r:.60}")
    return values
