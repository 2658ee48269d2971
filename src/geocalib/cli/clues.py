"""Options about what may speak beside the pixels of a photo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from geocalib.errors import ConfigError

POINT_SHARE = 0.1
"""One sigma of a free principal point, of the longer side: of photos that may have been cropped."""


class Switch(StrEnum):
    """Whether something is done."""

    ON = "on"
    OFF = "off"


EXIF = "--exif"
Exif = Annotated[
    Switch, typer.Option(EXIF, help="Take the focal length in the EXIF data as a hint.")
]
Sensors = Annotated[
    bool,
    typer.Option(
        "--sensors", help="Take gravity from a drone's gimbal, and from files beside the photos."
    ),
]
PriorReport = Annotated[
    bool, typer.Option("--prior-report", help="Show how well hints and photos agree.")
]


class Rotation(StrEnum):
    """Which sides of a photo may be up."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


AnyRotation = Annotated[
    Rotation, typer.Option(help="Which side is up: notice, take the likeliest, or the upper one.")
]
FreePrincipalPoint = Annotated[
    bool, typer.Option("--free-principal-point", help="Photos may be cropped, nobody knows where.")
]
Window = Annotated[
    str | None,
    typer.Option(
        "--crop",
        metavar="L,T,W,H,FULLW,FULLH",
        help="Cut out of larger photos: left, top, width, height, and the size of those.",
    ),
]


@dataclass(frozen=True)
class Asked:
    """What of it a user asks for."""

    sensors: bool = False
    any_rotation: Rotation = Rotation.AUTO
    free_principal_point: bool = False
    crop: tuple[float, ...] | None = None

    @property
    def keywords(self) -> dict[str, Any]:
        """For ``Calibrator.calibrate``: what differs from its defaults."""
        share = POINT_SHARE if self.free_principal_point else None
        every = {
            "sensors": self.sensors,
            "any_rotation": None if self.any_rotation is Rotation.AUTO else self.any_rotation.value,
            "free_principal_point": share,
            "crop": self.crop,
        }
        return {name: value for name, value in every.items() if value not in (False, None)}


def spelt_out(words: Sequence[str]) -> list[str]:
    """The words of a command line with "on" for an --exif that stands alone, as it once did."""
    following = [*words[1:], ""]
    return [
        f"{EXIF}={Switch.ON}" if word == EXIF and after not in tuple(Switch) else word
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
