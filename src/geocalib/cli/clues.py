"""Options about what may speak beside the pixels of a photo."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from geocalib.errors import ConfigError

POINT_SHARE = 0.1
"""One sigma of a free principal point, of the longer side: of photos that may have been cropped."""

Sensors = Annotated[
    bool,
    typer.Option(
        "--sensors", help="Take EXIF, a drone's gimbal, and files beside the photos as hints."
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
