"""What the formats of programs for three dimensions share: a pinhole camera above a level ground.

The world is level with z up, its origin on the ground below the camera; the camera heads along y.
One photo does not tell the scale: without a known length on it (``Calibration.ruler``) the camera
stands as high as the eyes of a person. These programs
know no lens that bends, nor which way up a file is stored: where it matters, an upright picture
without distortion is written beside the file, and the camera is that of this picture.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from geocalib import console
from geocalib.arrays import Array
from geocalib.cameras import Camera
from geocalib.errors import FormatError
from geocalib.files import write_bytes
from geocalib.formats.outputs import files_of_each
from geocalib.geometry.gravity import to_roll_pitch, world_from_camera
from geocalib.imaging import warp
from geocalib.imaging.read import read_photo
from geocalib.records import dataclass, replace
from geocalib.result.calibration import Calibration, Outcome
from geocalib.result.record import Frame
from geocalib.result.ruler import MeasuredRuler

FRAME: Frame = "upright"

EYE_HEIGHT = 1.6
"""Height of the camera above the ground, metres, if no length is known."""

PICTURE = ".straight.jpg"
"""What the name of a picture without distortion ends in, after the name of its photo."""

QUALITY = 95
"""The quality of that JPEG."""

READABLE = (".jpg", ".jpeg", ".png")
"""Names of photos that every program reads."""

NEAR, FAR = 0.1, 1000.0
"""Metres: what a camera at ``EYE_HEIGHT`` shows lies between."""

FILM_WIDTH = 36.0
"""Millimetres: of the film for which focal lengths are given."""

CENTRED = 1.0
"""Pixels: a principal point that is no farther off is in the middle."""

LEVEL_TO_Z_UP = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])

Y_UP = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
"""From the world with z up to one with y up, in which the camera heads along -z."""


@dataclass(frozen=True)
class SceneCamera:
    """A pinhole camera in its world."""

    name: str
    """The name of the photo, without folders."""
    picture: str
    """The path of what the camera sees, from the folder of the file."""
    camera: Camera
    """The camera, a batch of 1."""
    gravity: Array
    """(3,) in its frame."""
    ruler: MeasuredRuler | None
    """What tells the scale, if anything does."""

    @property
    def above_ground(self) -> float:
        """The height of the camera above the ground, metres."""
        return EYE_HEIGHT if self.ruler is None else self.ruler.camera_height

    @property
    def scale_source(self) -> str:
        """The source of the height, for the comments of files."""
        return "a guess" if self.ruler is None else "by the ruler"

    @property
    def clip(self) -> tuple[float, float]:
        """The nearest and the farthest distance that it shows, metres."""
        scale = self.above_ground / EYE_HEIGHT
        return NEAR * scale, FAR * scale

    @property
    def width(self) -> int:
        return round(self.camera.size[0, 0].item())

    @property
    def height(self) -> int:
        return round(self.camera.size[0, 1].item())

    @property
    def fx(self) -> float:
        return float(self.camera.focal[0, 0])

    @property
    def fy(self) -> float:
        return float(self.camera.focal[0, 1])

    @property
    def cx(self) -> float:
        return float(self.camera.c[0, 0])

    @property
    def cy(self) -> float:
        return float(self.camera.c[0, 1])

    @property
    def hfov(self) -> float:
        """The horizontal field of view in radians."""
        return 2 * math.atan2(0.5 * self.width, self.fx)

    @property
    def vfov(self) -> float:
        """The vertical field of view in radians."""
        return 2 * math.atan2(0.5 * self.height, self.fy)

    @property
    def focal_mm(self) -> float:
        """The focal length in millimetres, on film of ``FILM_WIDTH``."""
        return self.fx * FILM_WIDTH / self.width

    @property
    def rotation_deg(self) -> tuple[float, float, float]:
        """About x, y and z in a world with y up: the camera turned by Rx Ry Rz, or Ry Rx Rz, as it
        has no heading."""
        roll, pitch = to_roll_pitch(self.gravity)
        return math.degrees(pitch), 0.0, -math.degrees(roll)

    @property
    def film_mm(self) -> tuple[float, float]:
        """The sides of film for that focal length; the pixels on it need not be square."""
        return FILM_WIDTH, self.height * self.focal_mm / self.fy

    @property
    def film_offset_mm(self) -> tuple[float, float]:
        """To the right and up: by how much the film's middle is off the axis."""
        width, height = self.film_mm
        return width * (0.5 - self.cx / self.width), height * (self.cy / self.height - 0.5)

    def check_centred(self, program: str) -> None:
        """Raise an error for a principal point off the centre, which some formats cannot hold."""
        aside = max(abs(self.cx - 0.5 * self.width), abs(self.cy - 0.5 * self.height))
        if aside > CENTRED:
            raise FormatError(
                f"{self.name}: {program} has no place for a principal point {aside:.0f} pixels off "
                "the middle; --format usd and --format blender have"
            )

    @property
    def pose(self) -> Array:
        """(4, 4) from a camera that looks along -z with y up, to the world with z up."""
        pose = np.eye(4)
        flip = np.array([1.0, -1, -1])
        pose[:3, :3] = LEVEL_TO_Z_UP @ world_from_camera(self.gravity) * flip
        pose[2, 3] = self.above_ground
        return pose

    @property
    def pose_y_up(self) -> Array:
        """(4, 4) the same, to the world with y up."""
        return Y_UP @ self.pose


def write_scenes(
    outcomes: Iterable[Outcome],
    path: str | Path,
    dumps: Callable[[SceneCamera], str | bytes],
    suffix: str,
    frame: Frame,
) -> list[Path]:
    """A file for each image that has a camera, and a picture beside it where it needs one."""
    files = files_of_each(outcomes, path, suffix, frame)
    contents: dict[Path, str | bytes] = {}
    straight: dict[Path, Calibration] = {}
    for file, calibration in files.items():
        scene = scene_of(calibration)
        photo = calibration.image
        if photo is not None and os.path.exists(photo):
            picture = photo
            if needs_picture(calibration):
                place = file.with_name(f"{scene.name}{PICTURE}")
                straight[place], picture = calibration, str(place)
            scene = _showing(scene, os.path.relpath(picture, file.parent))
        elif needs_picture(calibration):
            _warn_of_missing(calibration)
        contents[file] = dumps(scene)
    write_straight(straight)
    for file, content in contents.items():
        write_bytes(
            file, content if isinstance(content, bytes) else content.encode("utf-8", "replace")
        )
    return [*files, *straight]


def write_straight(places: Mapping[Path, Calibration]) -> list[Path]:
    """The pictures at these places that pinhole cameras take, for calibrations that need one and
    whose photos are there; those that are not there are named."""
    written = []
    for place, calibration in places.items():
        if not needs_picture(calibration):
            continue
        if calibration.image is None or not os.path.exists(calibration.image):
            _warn_of_missing(calibration)
            continue
        write_bytes(place, picture_bytes(calibration))
        written.append(place)
    return written


def _warn_of_missing(calibration: Calibration) -> None:
    photo = calibration.image or "a photo"
    console.warn(f"{photo} is not there to be straightened; geocalib undistort does it")


def each(
    dumps: Callable[[SceneCamera], str | bytes],
) -> Callable[[Calibration, Frame], str | bytes]:
    """The content of the file of one image, without its photo."""

    def content(calibration: Calibration, frame: Frame = FRAME) -> str | bytes:
        return dumps(scene_of(calibration.in_frame(frame)))

    return content


def needs_picture(calibration: Calibration) -> bool:
    """Whether a program shows the photo otherwise than a pinhole camera takes it."""
    return bends(calibration.cameras) or calibration.orientation != 1


def bends(camera: Camera) -> bool:
    """Whether a camera is none of pinhole."""
    return camera.model.wide or bool(np.any(camera.distortion != 0))


def scene_of(calibration: Calibration) -> SceneCamera:
    """The pinhole camera that takes the picture without distortion."""
    camera, name = calibration.cameras, Path(calibration.image or "image").name
    picture = name
    if bends(camera):
        camera = warp.undistorted(camera)
        picture = f"{name}{PICTURE}"
    return SceneCamera(name, picture, camera, calibration.gravity, calibration.ruler)


def _showing(scene: SceneCamera, picture: str) -> SceneCamera:
    return replace(scene, picture=Path(picture).as_posix())


def picture_bytes(calibration: Calibration) -> bytes:
    """A file of the picture as the pinhole camera takes it: the photo itself where it can be."""
    photo = calibration.image
    if photo is None or not os.path.exists(photo):
        raise FormatError(f"{photo or 'the photo'} is not there; this format needs the picture")
    if calibration.frame != FRAME:
        raise FormatError(f"{photo}: pictures are straightened upright; leave out --frame stored")
    if not needs_picture(calibration) and photo.lower().endswith(READABLE):
        return Path(photo).read_bytes()
    if bends(calibration.cameras):
        picture = calibration.undistort(photo).image
    else:
        picture = Image.fromarray(read_photo(photo, None).pixels)
    stream = BytesIO()
    picture.save(stream, "JPEG", quality=QUALITY)
    return stream.getvalue()
