"""What a user can ask of a command: names to choose from, and what is known of the camera."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

import typer

from geocalib.cli.clues import Asked
from geocalib.errors import ConfigError
from geocalib.geometry.conventions import VFOV_RANGE_DEG

Weights = Annotated[
    str, typer.Option(metavar="NAME|PATH", help="The network's weights; see geocalib info.")
]
Device = Annotated[str, typer.Option(metavar="NAME", help="auto, cpu, cuda, cuda:1, mps.")]

Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace files that exist, but never what is read.")
]

ALL_IMAGES = "all"
"""Says that one camera took all images."""


class CameraModel(StrEnum):
    """The names of ``geocalib.cameras``, here again as importing those takes seconds."""

    PINHOLE = "pinhole"
    SIMPLE_RADIAL = "simple_radial"
    RADIAL = "radial"
    RADIAL3 = "radial3"
    RADIAL4 = "radial4"
    DIVISION = "division"
    DIVISION2 = "division2"
    KANNALA_BRANDT = "kannala_brandt"
    UCM = "ucm"
    EUCM = "eucm"
    DOUBLE_SPHERE = "double_sphere"

    @property
    def wide(self) -> bool:
        """Whether the field of view depends on more than the focal length."""
        return self in (self.KANNALA_BRANDT, self.UCM, self.EUCM, self.DOUBLE_SPHERE)


class Lines(StrEnum):
    """What straight lines are used for."""

    AUTO = "auto"
    OFF = "off"
    ONLY = "only"


class Format(StrEnum):
    """The names of ``geocalib.formats``."""

    JSON = "json"
    CSV = "csv"
    COLMAP = "colmap"
    OPENCV = "opencv"
    ROS = "ros"
    NERFSTUDIO = "nerfstudio"


SUFFIXES = {".json": Format.JSON, ".jsonl": Format.JSON, ".csv": Format.CSV}
"""Formats that the name of a file tells."""


@dataclass(frozen=True)
class Network:
    """Which network looks at the images, and where it runs."""

    weights: str
    device: str

    @property
    def file(self) -> str | None:
        """That of the weights, where they are not known by name."""
        return self.weights if os.path.isfile(self.weights) else None


@dataclass(frozen=True)
class Request:
    """The camera to find, and what is known of it."""

    camera_model: CameraModel
    focal: float | None = None
    """Pixels of the original image."""
    vfov_deg: float | None = None
    exif: bool = True
    """Whether to take the focal length in the EXIF data as a hint, where none is known."""
    roll_deg: float | None = None
    pitch_deg: float | None = None
    shared: bool = False
    """Whether images of one camera share its intrinsics."""
    lines: Lines = Lines.AUTO
    cameras: str | None = None
    """Which images are of one camera: ``ALL_IMAGES`` or a CSV file; None: as EXIF says."""
    asked: Asked = field(default_factory=Asked)
    """What may speak beside the pixels."""

    @property
    def file(self) -> str | None:
        """The table of who shares a camera, if there is one."""
        return None if self.cameras == ALL_IMAGES else self.cameras

    def __post_init__(self) -> None:
        if self.cameras is not None and not self.shared:
            raise ConfigError("--cameras says which photos share a camera; add --shared")
        given = {"--focal": self.focal, "--fov": self.vfov_deg}
        sources = [name for name, value in given.items() if value is not None]
        if len(sources) > 1:
            raise ConfigError(
                f"{' and '.join(sources)} each say how long the lens is; give one of them"
            )
        if self.focal is not None and not 0 < self.focal < float("inf"):
            raise ConfigError(f"--focal must be a positive number of pixels, got {self.focal:g}")
        _check_range("--fov", self.vfov_deg, *VFOV_RANGE_DEG)
        if self.vfov_deg is not None and self.camera_model.wide:
            raise ConfigError(
                f"--fov alone does not give the focal length of {self.camera_model}, whose field "
                "of view also depends on its distortion; give --focal"
            )
        told = sources or self.roll_deg is not None or self.shared or self.asked != Asked()
        if self.lines is Lines.ONLY and told:
            raise ConfigError("--lines only asks lines alone; drop what else is known")
        angles = {"--roll": self.roll_deg, "--pitch": self.pitch_deg}
        absent = [name for name, value in angles.items() if value is None]
        if len(absent) == 1:
            (known,) = angles.keys() - absent
            raise ConfigError(f"{known} needs {absent[0]} as well: together they say where down is")
        _check_range("--roll", self.roll_deg, -180, 180)
        _check_range("--pitch", self.pitch_deg, -90, 90)


def _check_range(name: str, value: float | None, low: float, high: float) -> None:
    if value is not None and not low <= value <= high:
        raise ConfigError(f"{name} must lie between {low:g} and {high:g} degrees, got {value:g}")


def chosen_format(
    json: bool, csv: bool, format: Format | None, output: str | None
) -> Format | None:
    """The format that the options and the name of the output ask for; None: a table to look at."""
    flags = {"--json": json, "--csv": csv, f"--format {format}": format is not None}
    asked = [name for name, value in flags.items() if value]
    if len(asked) > 1:
        raise ConfigError(f"{' and '.join(asked)} contradict each other; give one of them")
    chosen = Format.JSON if json else Format.CSV if csv else format
    if chosen is None and output is not None:
        suffix = os.path.splitext(output)[1].lower()
        if suffix not in SUFFIXES:
            raise ConfigError(f"{output}: in which format? Add --json, --csv or --format NAME")
        chosen = SUFFIXES[suffix]
    if output is None and chosen not in (None, Format.JSON, Format.CSV):
        raise ConfigError(f"--format {chosen} writes files; say where with -o PATH")
    return chosen
