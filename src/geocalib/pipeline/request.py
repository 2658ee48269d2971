"""What is asked of a run: which camera to find in the photos, what is known of it, and by which
network. The command line, a server and a batch job all make one of these.

Light on purpose: importing it takes no time, so that what is wrong with a request is said at once.
"""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Any, Literal

from geocalib.errors import ConfigError
from geocalib.geometry.conventions import VFOV_RANGE_DEG
from geocalib.nets.catalogue import check_known
from geocalib.pipeline.engines import settle
from geocalib.records import dataclass

ALL_IMAGES = "all"
"""Says that one camera took all images."""

POINT_SHARE = 0.1
"""One sigma of a free principal point, of the longer side: of photos that may have been cropped."""


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


class Engine(StrEnum):
    """What runs the network."""

    AUTO = "auto"
    ONNX = "onnx"
    TORCH = "torch"


class Format(StrEnum):
    """The names of ``geocalib.formats``."""

    JSON = "json"
    CSV = "csv"
    COLMAP = "colmap"
    COLMAP_DATABASE = "colmap-database"
    OPENCV = "opencv"
    ROS = "ros"
    NERFSTUDIO = "nerfstudio"


class Frame(StrEnum):
    """The names of ``geocalib.result.frame``."""

    UPRIGHT = "upright"
    STORED = "stored"

    @property
    def literal(self) -> Literal["upright", "stored"]:
        """As functions take it."""
        return "stored" if self is Frame.STORED else "upright"


class Rotation(StrEnum):
    """Which sides of a photo may be up."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


class Usual(StrEnum):
    """What is taken for usual: focal lengths as people use them, or nothing."""

    PHOTOS = "photos"
    NONE = "none"


@dataclass(frozen=True)
class Network:
    """Which network looks at the images, and where it runs."""

    weights: str
    device: str
    engine: Engine = Engine.AUTO

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", settle(self.weights, self.device))
        check_known(self.weights)

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
    sensors: bool = False
    """Whether to take gravity from a drone's gimbal and from files beside the photos."""
    any_rotation: Rotation = Rotation.AUTO
    free_principal_point: bool = False
    """Whether photos may have been cropped, nobody knows where."""
    crop: tuple[float, ...] | None = None
    """The six numbers of a ``Crop``."""
    prior: Usual = Usual.NONE

    @property
    def file(self) -> str | None:
        """The table of who shares a camera, if there is one."""
        return None if self.cameras == ALL_IMAGES else self.cameras

    @property
    def priors(self) -> dict[str, Any]:
        """What may be known beside the pixels, as keywords of ``Calibrator.calibrate``: what
        differs from its defaults."""
        every = {
            "sensors": self.sensors,
            "any_rotation": None if self.any_rotation is Rotation.AUTO else self.any_rotation.value,
            "free_principal_point": POINT_SHARE if self.free_principal_point else None,
            "crop": self.crop,
            "prior": None if self.prior is Usual.NONE else self.prior.value,
            "focal": self.focal,
            "vfov_deg": self.vfov_deg,
            "roll_deg": self.roll_deg,
            "pitch_deg": self.pitch_deg,
        }
        return {name: value for name, value in every.items() if value not in (False, None)}

    def __post_init__(self) -> None:
        if self.cameras is not None and not self.shared:
            raise ConfigError("cameras says which photos share a camera; add shared")
        given = {"focal": self.focal, "fov": self.vfov_deg}
        sources = [name for name, value in given.items() if value is not None]
        if len(sources) > 1:
            raise ConfigError(
                f"{' and '.join(sources)} each say how long the lens is; give one of them"
            )
        if self.focal is not None and not 0 < self.focal < float("inf"):
            raise ConfigError(f"focal must be a positive number of pixels, got {self.focal:g}")
        _check_range("fov", self.vfov_deg, *VFOV_RANGE_DEG)
        if self.vfov_deg is not None and self.camera_model.wide:
            raise ConfigError(
                f"fov alone does not give the focal length of {self.camera_model}, whose field "
                "of view also depends on its distortion; give focal"
            )
        told = self.priors or self.shared
        if self.lines is Lines.ONLY and told:
            raise ConfigError("lines only asks lines alone; drop what else is known")
        if self.shared and self.prior is not Usual.NONE:
            raise ConfigError("photos that share a camera tell its lens together; drop prior")
        angles = {"roll": self.roll_deg, "pitch": self.pitch_deg}
        absent = [name for name, value in angles.items() if value is None]
        if len(absent) == 1:
            (known,) = angles.keys() - absent
            raise ConfigError(f"{known} needs {absent[0]} as well: together they say where down is")
        _check_range("roll", self.roll_deg, -180, 180)
        _check_range("pitch", self.pitch_deg, -90, 90)


def _check_range(name: str, value: float | None, low: float, high: float) -> None:
    if value is not None and not low <= value <= high:
        raise ConfigError(f"{name} must lie between {low:g} and {high:g} degrees, got {value:g}")
