"""What is given photographs: ``Options``, the one object that the keywords of Python, the
command line, HTTP requests, batches, videos and worker processes all build and hand on unchanged.

Light on purpose: importing it takes no time, so that what is wrong with a question is said before
anything is loaded.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from geocalib.errors import ConfigError, CouplingError, PriorError
from geocalib.geometry.conventions import VFOV_RANGE_DEG
from geocalib.geometry.drawn import DrawnLine, checked_lines
from geocalib.geometry.ruler import Ruler, checked_ruler

if TYPE_CHECKING:
    from pathlib import Path

    from geocalib.cameras.base import CameraModel
    from geocalib.priors.crop import CropLike
    from geocalib.solver import Rig
    from geocalib.solver.known import Known

    CameraModels = str | CameraModel | Sequence[str | CameraModel]
    """A camera model or its name, or one per image."""
    Sharing = bool | str | Path | Sequence[int]
    """The type of ``Options.shared_intrinsics``."""

LinesMode = Literal["auto", "off", "only"]
RotationMode = Literal["auto", "on", "off"]
AnyRotation = bool | RotationMode
"""True is "on", False "off"."""
UsualPrior = Literal["auto", "photos", "none"]
KeepFields = bool | Literal["full"]

BY_EXIF = "exif"
"""Says that images share a camera where their files name the same one."""

POINT_SHARE = 0.1
"""One sigma of a free principal point, of the longer side: of photos that may have been cropped."""


AUTO = "auto"
"""In place of a camera model: the picture tells which kind of lens took it (``pipeline.lens``)."""


class CameraModelName(StrEnum):
    """ "auto", and the names of ``geocalib.cameras``: written out, so that the command line shows
    them without importing NumPy."""

    AUTO = "auto"
    PINHOLE = "pinhole"
    SIMPLE_RADIAL = "simple_radial"
    RADIAL = "radial"
    RADIAL3 = "radial3"
    RADIAL4 = "radial4"
    PTLENS = "ptlens"
    DIVISION = "division"
    DIVISION2 = "division2"
    KANNALA_BRANDT = "kannala_brandt"
    UCM = "ucm"
    EUCM = "eucm"
    DOUBLE_SPHERE = "double_sphere"

    @property
    def named(self) -> bool:
        """Whether it is a model's, and not left to the picture."""
        return self is not self.AUTO

    @property
    def wide(self) -> bool:
        """Whether the field of view depends on more than the focal length."""
        return self in (self.KANNALA_BRANDT, self.UCM, self.EUCM, self.DOUBLE_SPHERE)


class LinesChoice(StrEnum):
    """What straight lines are used for."""

    AUTO = "auto"
    OFF = "off"
    ONLY = "only"


class EngineChoice(StrEnum):
    """The runtime that runs the network."""

    AUTO = "auto"
    ONNX = "onnx"
    TORCH = "torch"


class Format(StrEnum):
    """The names of formats in ``geocalib.formats``."""

    JSON = "json"
    CSV = "csv"
    COLMAP = "colmap"
    COLMAP_DATABASE = "colmap-database"
    OPENCV = "opencv"
    ROS = "ros"
    NERFSTUDIO = "nerfstudio"
    BLENDER = "blender"
    FSPY = "fspy"
    GLTF = "gltf"
    USD = "usd"
    NUKE = "nuke"
    MAYA = "maya"
    HUGIN = "hugin"
    LENSFUN = "lensfun"
    EXIF = "exif"
    XMP = "xmp"
    REALITYSCAN = "realityscan"


class FrameName(StrEnum):
    """The names of frames in ``geocalib.result.frame``."""

    UPRIGHT = "upright"
    STORED = "stored"

    @property
    def literal(self) -> Literal["upright", "stored"]:
        """The value as functions of Python take it."""
        return "stored" if self is FrameName.STORED else "upright"


class Rotation(StrEnum):
    """The sides of a photo that may be up."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


class Usual(StrEnum):
    """Which focal lengths are expected: those that people use, of single photographs or wherever
    they are wanted, or any."""

    AUTO = "auto"
    PHOTOS = "photos"
    NONE = "none"


class Keywords(TypedDict, total=False):
    """The keywords of ``Calibrator.calibrate`` beside the camera model: the fields of ``Options``,
    for type checkers, and ``fov``, the command line's name of vfov_deg."""

    focal: Known
    gravity: Known
    distortion: Known
    principal_point: Known
    aspect: Known
    vfov_deg: Known
    fov: Known
    roll_deg: Known
    pitch_deg: Known
    shared_intrinsics: Sharing
    rig: Rig | None
    exif: bool
    sensors: bool
    prior: UsualPrior
    crop: CropLike
    free_principal_point: float | None
    lines: LinesMode | Sequence[DrawnLine]
    drawn: Sequence[DrawnLine]
    ruler: Ruler | None
    any_rotation: AnyRotation
    keep_fields: KeepFields


@dataclass(frozen=True, eq=False)
class Options:
    """All settings of a calibration: the camera to find, and what is known of it.

    Values are in pixels of the original photographs and in degrees; one for all images, or one per
    image. A number is held fixed; a ``Prior(value, sigma)`` pulls; None leaves it to the picture.
    Everything that can be checked without the photographs is checked here, and raises a
    ``GeoCalibError``.
    """

    camera_model: CameraModels = AUTO
    """"auto": the pictures tell which kind of lens took them, one for each camera. Or a name of
    ``geocalib.cameras`` or a model; of several images, also one each."""

    # What is known of the camera.
    focal: Known = None
    """fy, pixels."""
    gravity: Known = None
    """(3,) pointing down, in the camera frame; a sigma in radians."""
    distortion: Known = None
    """(D,) in the order of the camera model."""
    principal_point: Known = None
    """(2,) pixels; None: the middle of the (full) picture."""
    aspect: Known = None
    """fx / fy; None: 1."""
    vfov_deg: Known = None
    """The vertical field of view, in place of focal."""
    roll_deg: Known = None
    """With pitch_deg in place of gravity; a ``Prior`` may stand alone."""
    pitch_deg: Known = None

    # What the images share.
    shared_intrinsics: Sharing = False
    """True: one camera took all images; "exif": as their files say; the path of a table with the
    columns image and camera; or an integer per image, equal where the camera is."""
    rig: Rig | None = None
    """Known rotations between the cameras of the images."""

    # What may be known beside the pixels.
    exif: bool = True
    """Whether the focal length in a file is a soft prior if none is given."""
    sensors: bool = True
    """Whether gravity by a phone's accelerometer, a camera's level gauge, a drone's gimbal or a
    file beside the image is a soft prior if none is given."""
    prior: UsualPrior = "auto"
    """"auto" expects the focal lengths that people use, of single whole pictures without a known
    one; "photos" does, too, and is an error where that makes no sense; "none" expects any, for
    crops, renderings and frames of videos."""
    crop: CropLike = None
    """Where in a larger picture, whose middle is the principal point, an image was cut out."""
    free_principal_point: float | None = None
    """One sigma of the principal point around the middle, in units of the longer side of the
    (larger) picture; None: it is fixed there."""

    # How the picture is read.
    lines: LinesMode | Sequence[DrawnLine] = "auto"
    """"auto" refines the network's answer with straight lines where there are enough, "off" does
    not look for any, and "only" asks lines alone. Drawn lines in its place are taken beside "auto",
    as ``drawn`` takes them."""
    drawn: Sequence[DrawnLine] = ()
    """Lines that a person drew on one photograph: observations that the answer follows."""
    ruler: Ruler | None = None
    """A known length on one photograph: it tells how high the camera stood, and so the scale."""
    any_rotation: AnyRotation = "auto"
    """"auto" notices where another side than the upper one is clearly up, "on" takes the likeliest
    side, and "off" the upper one."""
    keep_fields: KeepFields = False
    """Whether answers hold what the network saw; "full": at the size of the originals."""

    @classmethod
    def create(
        cls,
        options: Options | None,
        camera_model: CameraModels | None,
        keywords: Keywords,
    ) -> Options:
        """The options of a call that takes them as one object or as keywords, but not as both."""
        if options is None:
            given: dict[str, Any] = {**keywords}
            if "fov" in given:
                if given.get("vfov_deg") is not None:
                    raise ConfigError("fov and vfov_deg are two names of one value; give one")
                given["vfov_deg"] = given.pop("fov")
            return cls(AUTO if camera_model is None else camera_model, **given)
        if camera_model is not None or keywords:
            named = ["camera_model"] * (camera_model is not None) + list(keywords)
            raise ConfigError(f"options already says all; drop {', '.join(named)}, or set it there")
        return options

    def __post_init__(self) -> None:
        if not isinstance(self.lines, str):
            if self.drawn:
                raise ConfigError("lines and drawn each hold drawn lines; give them once")
            object.__setattr__(self, "drawn", self.lines)
            object.__setattr__(self, "lines", "auto")
        object.__setattr__(self, "drawn", checked_lines(self.drawn) if self.drawn else ())
        if self.ruler is not None:
            checked_ruler(self.ruler)
        if self.drawn and self.aspect is not None and _number(self.aspect) is None:
            raise ConfigError("drawn lines tell nothing of a free aspect; drop it, or hold it")
        _check_choice("lines", self.lines, get_args(LinesMode))
        _check_choice("prior", self.prior, get_args(UsualPrior))
        rotation_mode(self.any_rotation)
        if self.focal is not None and self.vfov_deg is not None:
            raise PriorError(
                "focal and fov (vfov_deg) each say how long the lens is; give one of them"
            )
        if self.gravity is not None and not (self.roll_deg is None and self.pitch_deg is None):
            raise PriorError("gravity already says where down is; drop roll_deg and pitch_deg")
        if (focal := _number(self.focal)) is not None and not 0 < focal < math.inf:
            raise PriorError(f"focal must be a positive number of pixels, got {focal:g}")
        if _number(self.roll_deg) is not None and self.pitch_deg is None:
            raise PriorError("roll needs pitch as well: together they say where down is")
        if _number(self.pitch_deg) is not None and self.roll_deg is None:
            raise PriorError("pitch needs roll as well: together they say where down is")
        _check_range("fov", self.vfov_deg, *VFOV_RANGE_DEG)
        _check_range("roll", self.roll_deg, -180, 180)
        _check_range("pitch", self.pitch_deg, -90, 90)
        name = self.camera_model
        wide = [str(model) for model in CameraModelName if model.wide]
        if self.vfov_deg is not None and isinstance(name, str) and name in wide:
            raise PriorError(
                f"fov (vfov_deg) does not give the focal length of {name}, whose field of view "
                "also depends on its distortion; give focal"
            )
        share = self.free_principal_point
        if share is not None and not 0 < share < math.inf:
            raise ConfigError(
                "free_principal_point is one sigma in units of the longer side, such as 0.05; "
                f"got {share:g}"
            )
        if self.principal_point is not None and not (self.crop is None and share is None):
            raise ConfigError(
                "principal_point already says where it is; drop crop and free_principal_point"
            )
        if self.prior == "photos" and self.rig is not None:
            raise ConfigError("a rig takes no photographs as people do; drop prior")
        if self.lines == "only" and (named := self._beside_lines()):
            raise ConfigError(f'lines "only" asks lines alone; drop {", ".join(named)}')

    def _beside_lines(self) -> list[str]:
        """What was given that straight lines alone make nothing of."""
        heeded = {"camera_model", "lines", "exif", "sensors", "keep_fields", "any_rotation"}
        if self.prior == "none":
            heeded.add("prior")
        named = [name for name in self.given() if name not in heeded]
        return named + (["any_rotation"] if self.any_rotation in (True, "on") else [])

    def given(self) -> list[str]:
        """The names of the fields that differ from their defaults. A zero is a value."""
        return [
            field.name
            for field in fields(self)
            if not _is_default(getattr(self, field.name), field.default)
        ]

    @property
    def knows(self) -> bool:
        """Whether the caller gives anything that the picture shows, too."""
        known = (self.focal, self.vfov_deg, self.gravity, self.roll_deg, self.pitch_deg)
        return any(value is not None for value in (*known, self.distortion))

    @property
    def of_one(self) -> bool:
        """Whether they are for one photograph alone."""
        return bool(self.drawn) or self.ruler is not None

    def check_many(self) -> None:
        """Raise an error if these options are for one photograph alone."""
        if self.drawn:
            raise ConfigError("lines are drawn on one photograph; calibrate each by itself")
        if self.ruler is not None:
            raise ConfigError("a ruler lies on one photograph; calibrate each by itself")

    @property
    def lines_mode(self) -> LinesMode:
        """What straight lines that are found are used for."""
        assert isinstance(self.lines, str)
        return self.lines

    def check_set(self) -> None:
        """Raise an error if these options are not for a set of photographs, fitted together."""
        self.check_many()
        if self.free_principal_point is not None:
            raise ConfigError("the principal point of a set is fixed; drop free_principal_point")
        if self.prior == "photos":
            raise ConfigError("photos that share a camera tell its lens together; drop prior")
        if self.lines == "only":
            raise ConfigError("lines only asks lines alone; drop shared")
        for name in ("rig", "principal_point", "aspect"):
            if getattr(self, name) is not None:
                raise ConfigError(f"a set takes no {name}; calibrate takes it")

    @property
    def rotation(self) -> RotationMode:
        """How to find out which side is up: where gravity or roll is known, that is known, too."""
        mode = rotation_mode(self.any_rotation)
        return mode if mode == "on" or (self.gravity is None and self.roll_deg is None) else "off"

    @property
    def table(self) -> str | None:
        """The file that says which images share a camera, if there is one."""
        sharing = self.shared_intrinsics
        named = isinstance(sharing, str | os.PathLike) and sharing != BY_EXIF
        return str(sharing) if named else None

    def groups(self, images: Sequence[Any]) -> Sequence[int] | None:
        """An integer per image, equal where the camera is; None where each has its own."""
        sharing = self.shared_intrinsics
        if isinstance(sharing, bool):
            return [0] * len(images) if sharing else None
        if not isinstance(sharing, str | os.PathLike):
            if len(sharing) != len(images):
                raise CouplingError(
                    f"shared_intrinsics holds {len(sharing)} integers for {len(images)} images; "
                    "give one each"
                )
            return sharing
        raise ConfigError("only a set of files can be grouped by EXIF or by a table")

    def to_request(self) -> dict[str, Any]:
        """What was requested, in plain values by the names of the command line, as records and
        journals hold it. Beside the photographs, this is all that answers depend on."""
        sharing = self.shared_intrinsics
        shared = not isinstance(sharing, bool) or sharing
        grouping = None if sharing == BY_EXIF or not shared else (self.table or "all")
        return {
            "camera_model": str(self.camera_model),
            "focal": self.focal,
            "fov": self.vfov_deg,
            "exif": self.exif,
            "roll": self.roll_deg,
            "pitch": self.pitch_deg,
            "shared": shared,
            "lines": str(self.lines),
            "cameras": grouping,
            "sensors": self.sensors,
            "any_rotation": str(self.any_rotation),
            "free_principal_point": self.free_principal_point is not None,
            "crop": self.crop,
            "prior": str(self.prior),
            # Of one photograph alone, so that requests about many stay as they were.
            **({"drawn": [asdict(line) for line in self.drawn]} if self.drawn else {}),
            **({} if self.ruler is None else {"ruler": asdict(self.ruler)}),
        }


def rotation_mode(any_rotation: AnyRotation) -> RotationMode:
    """The mode that is meant."""
    if isinstance(any_rotation, bool):
        return "on" if any_rotation else "off"
    _check_choice("any_rotation", any_rotation, get_args(RotationMode))
    return any_rotation


def _is_default(value: Any, default: Any) -> bool:
    """Whether an option was left as it is. Not by equality alone: 0 == False, and an array is not
    comparable with None."""
    return (type(value) is type(default) and bool(value == default)) or value is default


def _number(known: Any) -> float | None:
    """One number that is held fixed; None for anything else."""
    return float(known) if isinstance(known, int | float) else None


def _check_choice(name: str, value: object, known: Sequence[str]) -> None:
    if value not in known:
        raise ConfigError(f"{name} is {value!r}; known: {', '.join(known)}")


def _check_range(name: str, value: Any, low: float, high: float) -> None:
    number = _number(value)
    if number is not None and not low <= number <= high:
        raise PriorError(f"{name} must lie between {low:g} and {high:g} degrees, got {number:g}")
