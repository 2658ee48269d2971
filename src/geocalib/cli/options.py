"""What a user can ask of a command: names to choose from, what is known of the camera, and what
else may be known beside the pixels of a photo.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from geocalib.cli.groups import INPUT, KNOWN, LENS, OUTPUT, SPEED
from geocalib.errors import ConfigError
from geocalib.geometry.drawn import DrawnLine, parse_line
from geocalib.geometry.ruler import Ruler, parse_ruler
from geocalib.pipeline.options import (
    CameraModelName,
    Format,
    FrameName,
    LinesChoice,
    Rotation,
    Usual,
)

Photos = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="Photos, folders, patterns; - reads a photo, or a list of them.",
        show_default=False,
    ),
]
Recursive = Annotated[
    bool,
    typer.Option("--recursive", "-r", help="Look into folders of folders.", rich_help_panel=INPUT),
]
Model = Annotated[
    CameraModelName, typer.Option("--camera-model", help="What kind of lens.", rich_help_panel=LENS)
]
Focal = Annotated[
    float | None,
    typer.Option(
        metavar="PX", help="Known focal length, in pixels of the photo.", rich_help_panel=KNOWN
    ),
]
Fov = Annotated[
    float | None,
    typer.Option(
        "--fov",
        "--vfov",
        "--vfov-deg",
        metavar="DEG",
        help="Known vertical field of view.",
        rich_help_panel=KNOWN,
    ),
]
Roll = Annotated[
    float | None,
    typer.Option(
        metavar="DEG", help="Known roll of the camera, with --pitch.", rich_help_panel=KNOWN
    ),
]
Pitch = Annotated[
    float | None,
    typer.Option(
        metavar="DEG", help="Known pitch of the camera, with --roll.", rich_help_panel=KNOWN
    ),
]
LinesOption = Annotated[
    LinesChoice,
    typer.Option(
        "--lines",
        help="Sharpen with straight lines, or not, or ask them alone.",
        rich_help_panel=SPEED,
    ),
]
DrawnLines = Annotated[
    list[str] | None,
    typer.Option(
        "--line",
        metavar="X0,Y0,X1,Y1,KIND",
        help="A line drawn on the one photo, in pixels as it is seen: up, level, horizon or "
        "parallel,N to the N-th; several times.",
        show_default=False,
        rich_help_panel=KNOWN,
    ),
]
RulerOption = Annotated[
    str | None,
    typer.Option(
        "--ruler",
        metavar="X0,Y0,X1,Y1,METRES",
        help="A known length on the ground of the one photo, in pixels as it is seen; of what "
        "stands upright there, with ,up behind it.",
        show_default=False,
        rich_help_panel=KNOWN,
    ),
]
Photo = Annotated[str, typer.Argument(metavar="PHOTO", show_default=False)]
Output = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        help="File or folder to write.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
Borders = Annotated[
    bool, typer.Option("--crop", help="Cut off the black borders.", rich_help_panel=OUTPUT)
]
Saved = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Use these answers of calibrate --json -o FILE.", rich_help_panel=INPUT
    ),
]
Weights = Annotated[
    str,
    typer.Option(
        metavar="NAME|PATH", help="The network's weights; see geocalib info.", rich_help_panel=SPEED
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Processes; default: one for each core.",
        show_default=False,
        rich_help_panel=SPEED,
    ),
]
Device = Annotated[
    str, typer.Option(metavar="NAME", help="auto, cpu, cuda, cuda:1, mps.", rich_help_panel=SPEED)
]

FrameOption = Annotated[
    FrameName | None,
    typer.Option(
        "--frame",
        help="Of records and exports: the picture as it is seen, or its pixels as they are stored; "
        "default: as the program that reads them does.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace files that exist, but never what is read.",
        rich_help_panel=OUTPUT,
    ),
]

SUFFIXES = {".json": Format.JSON, ".jsonl": Format.JSON, ".csv": Format.CSV}
"""Formats that the name of a file tells."""


def drawn_lines(texts: list[str] | None) -> list[DrawnLine]:
    """The lines that options say."""
    return [parse_line(text) for text in texts or ()]


def known_length(text: str | None) -> Ruler | None:
    """The ruler that an option says."""
    return None if text is None else parse_ruler(text)


def chosen_format(
    json: bool, csv: bool, format: Format | None, output: str | None
) -> Format | None:
    """The format that the options and the name of the output ask for; None: a table to look at."""
    flags = {"--json": json, "--csv": csv, f"--format {format}": format is not None}
    given = [name for name, value in flags.items() if value]
    if len(given) > 1:
        raise ConfigError(f"{' and '.join(given)} contradict each other; give one of them")
    chosen = Format.JSON if json else Format.CSV if csv else format
    if chosen is None and output is not None:
        suffix = os.path.splitext(output)[1].lower()
        if suffix not in SUFFIXES:
            raise ConfigError(f"{output}: in which format? Add --json, --csv or --format NAME")
        chosen = SUFFIXES[suffix]
    if output is None and chosen not in (None, Format.JSON, Format.CSV):
        raise ConfigError(f"--format {chosen} writes files; say where with -o PATH")
    return chosen


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
        help="Photos may be cropped at an unknown place.",
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
    once did: at the end, or before another option or a photo."""
    following = [*words, ""][1:]
    return [
        f"{word}={Switch.ON}" if word in (EXIF, SENSORS) and not _is_value(after) else word
        for word, after in zip(words, following, strict=True)
    ]


def _is_value(word: str) -> bool:
    """Whether a word is meant as on or off, if a wrong one: no other option, and no path."""
    path = re.search(r"[./\\*?~]", word) is not None or os.path.lexists(word)
    return word in tuple(Switch) or not (word == "" or word.startswith("-") or path)


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
