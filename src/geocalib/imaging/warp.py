"""Pictures as another camera would have taken them: undistorted, level, or rectified.

    undistort   same view, straight lines straight: a pinhole camera looks the same way
    upright     roll taken off by turning the picture in its plane; the lens stays what it is
    rectify     undistorted, roll and pitch taken off: what is vertical stands vertical and parallel

Each comes with the camera and the gravity of the new picture. Border "keep" shows all there was,
with black where there was nothing; "crop" shows the largest rectangle, centred on what was the
middle of the picture, that has no black in it. The scale at the optical axis is kept, unless the
picture would have more than 4 times the pixels it had; what lies more than 75 degrees off the
axis of a pinhole camera is left out, as it would be stretched beyond use.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, Protocol

import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image

from geocalib.arrays import Array, as_array, quiet, to_numpy, unstack
from geocalib.cameras.camera import Camera
from geocalib.errors import CameraError, ImageError
from geocalib.geometry.fields import pixel_grid
from geocalib.geometry.gravity import to_roll_pitch, world_from_camera
from geocalib.imaging.read import ImageSource, read_photo
from geocalib.records import dataclass

LARGEST_GROWTH = 4.0
"""Most pixels of the new picture for one of the old."""
WIDEST_ANGLE = math.radians(75)
"""Off the axis of a new pinhole camera."""
STEEPEST_PITCH_DEG = 60.0
"""A steeper view has too little left that could be rectified."""
PIXELS_AT_ONCE = 1 << 18
LONGEST_SIDE = 32766
"""Beyond, OpenCV cannot address the pixels."""
ROUNDING = 0.01
"""Share of a pixel that rounding of a picture's size ignores."""
BORDER_POINTS = 65
"""On each side of a rectangle; odd, so that the middle is one."""


@dataclass(frozen=True)
class Warped:
    """A new picture with its camera."""

    image: Image.Image
    """RGB; black where nothing was seen."""
    camera: Camera
    """One camera, of the new picture."""
    gravity: Array | None
    """(3,) in the new camera's frame. None from ``undistort``, which leaves it as it was."""
    valid: npt.NDArray[np.bool_]
    """(H, W): where the old picture was seen."""


def undistort(image: ImageSource, camera: Camera, border: str = "keep") -> Warped:
    """The picture that a pinhole camera of the same view takes. See the module's description.

    image: of the camera's size; camera: one; border: "keep" or "crop".
    """
    plane = _Pinhole(_exact(camera), np.eye(3))
    return _warp(image, camera, plane, None, border)


@quiet
def undistorted(camera: Camera) -> Camera:
    """The camera of the picture that ``undistort`` makes."""
    plane = _Pinhole(_exact(camera), np.eye(3))
    return _window(plane, "keep", "the picture").camera(plane)


def upright(image: ImageSource, camera: Camera, gravity: Array, border: str = "keep") -> Warped:
    """The picture turned in its plane until its roll is 0; gravity: (3,) or (1, 3), downwards."""
    down = _down(gravity)
    roll, _ = to_roll_pitch(down)
    return _warp(image, camera, _Turned(_exact(camera), float(roll)), down, border)


def rectify(image: ImageSource, camera: Camera, gravity: Array, border: str = "keep") -> Warped:
    """The picture of a level pinhole camera that looks the same way; gravity as for ``upright``."""
    down = _down(gravity)
    return _warp(image, camera, _level(camera, down), down, border)


@quiet
def rectified(camera: Camera, gravity: Array) -> Camera:
    """The camera of the picture that ``rectify`` makes."""
    plane = _level(camera, _down(gravity))
    return _window(plane, "keep", "the picture").camera(plane)


def _level(camera: Camera, down: Array) -> _Pinhole:
    pitch_deg = math.degrees(to_roll_pitch(down)[1])
    if abs(pitch_deg) > STEEPEST_PITCH_DEG:
        raise ImageError(
            f"a pitch of {pitch_deg:.0f} degrees is too steep to rectify (at most "
            f"{STEEPEST_PITCH_DEG:.0f}); take off the roll alone with upright"
        )
    return _Pinhole(_exact(camera), world_from_camera(down))


class _Plane(Protocol):
    """A new image plane: points (N, 2) relative to its principal point, in pixels as large as
    the old ones on the optical axis."""

    @property
    def camera(self) -> Camera:
        """The camera that took the photo."""

    @property
    def rotation(self) -> Array:
        """(3, 3) from the old camera's frame to the new one's."""

    def from_old(self, pixels: Array) -> Array:
        """Points of old pixels (N, 2); NaN where the plane does not show them."""

    def to_old(self, points: Array) -> Array:
        """Old pixels (N, 2) of points; NaN where there are none."""

    def rim(self) -> Array:
        """Points all around, where the plane ends; none if it has no end."""

    def new_camera(self, scale: float, c: Array, size: Array) -> Camera:
        """The camera whose image plane this is, scaled; c and size: (2,) pixels."""


@dataclass(frozen=True)
class _Pinhole:
    """The plane of a pinhole camera turned by a rotation."""

    camera: Camera
    rotation: Array

    @property
    def focal(self) -> Array:
        """(2,) pixels: what the old camera magnifies on its axis."""
        centre = np.zeros(1)
        depth, _ = self.camera.model.depth(centre, unstack(self.camera.distortion))
        return self.camera.focal[0] * depth

    def from_old(self, pixels: Array) -> Array:
        rays, valid = self.camera.unproject(pixels[None])
        turned = rays[0] @ self.rotation.T
        xy, z = turned[:, :2], turned[:, 2:]
        shown = valid[0, :, None] & (z > math.cos(WIDEST_ANGLE))
        return np.where(shown, xy / z * self.focal, np.nan)

    def to_old(self, points: Array) -> Array:
        m = points / self.focal
        rays = np.concatenate([m, np.ones_like(m[:, :1])], -1) @ self.rotation
        pixels, valid = self.camera.project(rays[None])
        shown = valid[0] & (np.linalg.norm(m, axis=-1) <= math.tan(WIDEST_ANGLE))
        return np.where(shown[:, None], pixels[0], np.nan)

    def rim(self) -> Array:
        return math.tan(WIDEST_ANGLE) * (1 - ROUNDING**2) * _circle() * self.focal

    def new_camera(self, scale: float, c: Array, size: Array) -> Camera:
        f = scale * self.focal[1]
        return Camera.create("pinhole", f=f, size=size, c=c, aspect=self.camera.aspect)


@dataclass(frozen=True)
class _Turned:
    """The old plane turned about its principal point, about which every lens is symmetric."""

    camera: Camera
    roll: float

    @property
    def rotation(self) -> Array:
        cosine, sine = math.cos(self.roll), math.sin(self.roll)
        rows = [[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]]
        return np.array(rows)

    def from_old(self, pixels: Array) -> Array:
        return self.camera.normalise(pixels[None])[0] @ self.rotation[:2, :2].T * self._focal

    def to_old(self, points: Array) -> Array:
        return points / self._focal @ self.rotation[:2, :2] * self._focal + self.camera.c[0]

    def rim(self) -> Array:
        return np.empty((0, 2))

    def new_camera(self, scale: float, c: Array, size: Array) -> Camera:
        return replace(self.camera, f=scale * self.camera.f, c=c[None], size=size[None])

    @property
    def _focal(self) -> Array:
        return self.camera.focal[0]


@quiet
def _warp(
    image: ImageSource, camera: Camera, plane: _Plane, gravity: Array | None, border: str
) -> Warped:
    if border not in ("keep", "crop"):
        raise ImageError(f"border must be 'keep' or 'crop', got {border!r}")
    photo = read_photo(image, None)
    width, height = plane.camera.size[0].tolist()
    if photo.size != (width, height):
        raise ImageError(
            f"{photo.name} is {photo.size[0]}x{photo.size[1]} pixels, but its camera is of "
            f"{width:g}x{height:g}; resize one of them"
        )
    if max(photo.size) > LONGEST_SIDE:
        raise ImageError(f"{photo.name} has a side of more than {LONGEST_SIDE} pixels; shrink it")
    window = _window(plane, border, photo.name)
    corner, scale, size = window
    pixels, valid = _resample(
        photo.pixels, plane.camera, lambda new: plane.to_old((new + corner) / scale), size
    )
    return Warped(
        Image.fromarray(pixels),
        window.camera(plane).map(lambda value: as_array(value, camera.f)),
        None if gravity is None else as_array(plane.rotation @ gravity, camera.f),
        valid,
    )


class _Window(NamedTuple):
    """The pixels of a plane that a picture shows."""

    corner: Array
    """(2,) of the picture, in its pixels from the principal point."""
    scale: float
    """Pixels per unit of the plane."""
    size: Array
    """(2,) pixels."""

    def camera(self, plane: _Plane) -> Camera:
        return plane.new_camera(self.scale, -self.corner, self.size)


def _window(plane: _Plane, border: str, name: str) -> _Window:
    """Whole pixels, centred on the part of the plane to show."""
    if np.isnan(plane.from_old(0.5 * plane.camera.size)).any():
        raise ImageError(f"{name} has a middle that a pinhole camera cannot show; use upright")
    low, high = _footprint(plane) if border == "keep" else _largest_rectangle(plane)
    extent = high - low
    if not ((extent > ROUNDING) & np.isfinite(extent)).all():
        raise ImageError(f"{name} has a camera that shows nothing of it; calibrate it again")
    growth = float(extent.prod() / plane.camera.size.prod())
    scale = min(1.0, math.sqrt(LARGEST_GROWTH / growth), LONGEST_SIDE / float(extent.max()))
    extent = scale * extent
    size = np.ceil(extent - ROUNDING) if border == "keep" else np.floor(extent + ROUNDING)
    size = size.clip(1, LONGEST_SIDE)
    return _Window(scale * (low + high) / 2 - size / 2, scale, size)


def _footprint(plane: _Plane) -> tuple[Array, Array]:
    """The corners (2,), (2,) of the smallest upright rectangle around all that the plane shows."""
    camera = plane.camera
    border = (0.5 + 0.5 * _square(16 * BORDER_POINTS)) * camera.size[0]
    # A lens whose domain ends within the picture shows a disc.
    disc = (1 - ROUNDING**2) * camera.limits.radius * _circle() * camera.focal[0] + camera.c[0]
    outline = plane.from_old(np.concatenate([border, disc[_inside(disc, camera)]]))
    rim = plane.rim()
    outline = np.concatenate([outline, rim[_inside(plane.to_old(rim), camera)]])
    outline = outline[np.isfinite(outline).all(-1)]
    if not len(outline):
        nothing = np.full(2, np.nan)
        return nothing, nothing
    return outline.min(0), outline.max(0)


def _largest_rectangle(plane: _Plane) -> tuple[Array, Array]:
    """The corners (2,), (2,) of the largest upright rectangle around the middle of the old
    picture that shows nothing but it.

    For each shape of rectangle bisection finds the size; a search that narrows finds the shape.
    """
    low, high = _footprint(plane)
    centre = plane.from_old(0.5 * plane.camera.size)
    border = _square(BORDER_POINTS)
    reach = float(np.linalg.norm(high - low))

    def grow(half: Array, direction: Array) -> Array:
        """Half widths and heights (K, 2) of rectangles, grown along directions (K, 2)."""
        fits = np.zeros((len(direction), 1))
        too_large = np.full_like(fits, reach)
        while float((too_large - fits).max()) > 0.5 * ROUNDING:
            tried = 0.5 * (fits + too_large)
            points = centre + (half + tried * direction)[:, None] * border
            old = plane.to_old(points.reshape(-1, 2))
            good = _inside(old, plane.camera).reshape(len(direction), -1).all(-1, keepdims=True)
            fits, too_large = np.where(good, tried, fits), np.where(good, too_large, tried)
        return half + fits * direction

    best = np.zeros((1, 2))
    first, last = 0.0, 0.5 * math.pi
    while last - first > 0.01:
        shapes = np.linspace(first, last, 17)[1:-1]
        halves = grow(np.zeros_like(best), np.stack([np.cos(shapes), np.sin(shapes)], -1))
        at = int(halves.prod(-1).argmax())
        best, step = halves[at : at + 1], float(shapes[1] - shapes[0])
        first, last = float(shapes[at]) - step, float(shapes[at]) + step
    # The shape is not quite right yet: one side is free to move.
    for axis in np.eye(2):
        best = grow(best, axis[None])
    return (centre - best)[0], (centre + best)[0]


def _resample(
    pixels: npt.NDArray[np.uint8],
    camera: Camera,
    to_old: Callable[[Array], Array],
    size: Array,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """A picture (H, W, 3) whose pixels lie at old ones, and where they do (H, W)."""
    width, height = (int(v) for v in size.tolist())
    new = np.empty((height, width, 3), np.uint8)
    valid = np.empty((height, width), np.bool_)
    rows = max(1, PIXELS_AT_ONCE // width)
    for top in range(0, height, rows):
        count = min(rows, height - top)
        grid = pixel_grid(width, count, size).reshape(-1, 2) + np.array([0, top])
        old = to_old(grid)
        seen = _inside(old, camera).reshape(count, width)
        # OpenCV counts from the centre of the first pixel.
        at = (np.nan_to_num(old) - 0.5).astype(np.float32).reshape(count, width, 2)
        strip = cv2.remap(
            pixels,
            at[..., 0],
            at[..., 1],
            cv2.INTER_LANCZOS4,
            borderMode=cv2.BORDER_REPLICATE,
        )
        new[top : top + count] = strip * seen[..., None]
        valid[top : top + count] = seen
    return new, valid


def _inside(pixels: Array, camera: Camera) -> Array:
    """(N,): whether pixels (N, 2) lie in the camera's picture."""
    return ((pixels > -ROUNDING) & (pixels < camera.size[0] + ROUNDING)).all(-1)


def _square(count: int) -> Array:
    """(4 count, 2) points on the border of the square from -1 to 1."""
    along = np.linspace(-1, 1, count)
    ones = np.ones_like(along)
    sides = [(along, ones), (along, -ones), (ones, along), (-ones, along)]
    return np.concatenate([np.stack(side, -1) for side in sides])


def _circle() -> Array:
    """(1440, 2) points on the unit circle."""
    turn = np.arange(1440) * (2 * math.pi / 1440)
    return np.stack([np.cos(turn), np.sin(turn)], -1)


def _exact(camera: Camera) -> Camera:
    """A single camera in float64, as a batch of 1."""
    camera = camera.batch()
    if len(camera) != 1:
        raise CameraError(f"one image takes one camera, got {len(camera)}; index them")
    return camera.map(lambda value: np.asarray(to_numpy(value), np.float64))


def _down(gravity: Array) -> Array:
    """(3,) unit gravity in float64."""
    down = np.asarray(to_numpy(gravity), np.float64)
    if down.shape not in ((3,), (1, 3)):
        raise CameraError(f"one image takes one gravity (3,), got {down.shape}")
    return down.reshape(3) / np.linalg.norm(down)
