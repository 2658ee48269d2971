"""A photo to the network's input, and where in the photo that input lies."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from PIL import Image

from geocalib.cameras.camera import Window
from geocalib.errors import ImageError
from geocalib.imaging.read import Photo
from geocalib.records import dataclass


@dataclass(frozen=True)
class InputSpec:
    """What a network wants to see."""

    short_side: int = 320
    """Pixels across the shorter side."""
    multiple: int = 32
    """Width and height are multiples of this."""
    largest_aspect: float = 2.5
    """Longer to shorter side; of a more extreme image the middle is taken."""
    detail: int | None = None
    """Pixels across the shorter side to which larger images are shrunk first, so that all of them
    are equally sharp. None: those of the short side."""

    def __post_init__(self) -> None:
        if self.multiple < 1 or self.short_side < self.multiple or self.largest_aspect < 1:
            raise ImageError(
                f"an input needs 1 <= multiple <= short_side and largest_aspect >= 1, got {self}"
            )
        if self.detail is not None and not 1 <= self.detail <= self.short_side:
            raise ImageError(f"an input needs 1 <= detail <= short_side, got {self}")


PUBLISHED = InputSpec(320, 32, math.inf)
"""What the published network was trained on."""


@dataclass(frozen=True)
class NetworkInput:
    """One image, ready for a network."""

    image: npt.NDArray[np.float32]
    """(3, h, w) RGB in [0, 1]."""
    view: Window
    """What of the original it shows, exactly."""
    notes: tuple[str, ...] = ()
    """What its user should know, in plain words."""

    @property
    def size(self) -> tuple[int, int]:
        """The size (width, height) of the input in pixels."""
        return self.image.shape[2], self.image.shape[1]

    @property
    def aspect(self) -> float:
        """fx / fy of the input where the original's pixels are square.

        Not quite 1, as both sides of a resized image are whole numbers.
        """
        width, height = self.size
        return (width / self.view.width) / (height / self.view.height)


def prepare(photo: Photo, spec: InputSpec | None = None) -> NetworkInput:
    """Shrink or enlarge a photo to the short side of the spec (by default ``InputSpec()``), and
    cut its middle to whole multiples.

    Each resize is a triangle as wide as the new pixels require: bilinear where it enlarges, and
    close to the Gaussian blur of the published network where it shrinks.
    """
    spec = spec or InputSpec()
    left, top, width, height = _window(photo.size, spec.largest_aspect)
    notes: tuple[str, ...] = ()
    if (width, height) != photo.size:
        notes = (
            f"longer than {spec.largest_aspect:g}:1, so only its middle, "
            f"{width:.0f}x{height:.0f} pixels, was looked at",
        )
    # The published rule: the long side is rounded down, and an odd pixel is lost at the start.
    scale = spec.short_side / min(width, height)
    resized = int(width * scale + 1e-6), int(height * scale + 1e-6)
    kept = resized[0] // spec.multiple * spec.multiple, resized[1] // spec.multiple * spec.multiple
    lost = (resized[0] - kept[0] + 1) // 2, (resized[1] - kept[1] + 1) // 2

    x0, y0, x1, y1 = photo.shown
    per_x, per_y = (x1 - x0) / photo.size[0], (y1 - y0) / photo.size[1]
    box = (
        x0 + left * per_x,
        y0 + top * per_y,
        min(x0 + (left + width) * per_x, photo.pixels.shape[1]),
        min(y0 + (top + height) * per_y, photo.pixels.shape[0]),
    )
    whole = _resize(Image.fromarray(photo.pixels), box, resized, spec)
    picture = np.array(whole)[lost[1] : lost[1] + kept[1], lost[0] : lost[0] + kept[0]]
    image = np.ascontiguousarray(picture.transpose(2, 0, 1), dtype=np.float32) / np.float32(255)

    step_x, step_y = width / resized[0], height / resized[1]
    view = Window(
        left + lost[0] * step_x, top + lost[1] * step_y, kept[0] * step_x, kept[1] * step_y
    )
    return NetworkInput(image, view, notes)


def _resize(
    picture: Image.Image,
    box: tuple[float, float, float, float],
    size: tuple[int, int],
    spec: InputSpec,
) -> Image.Image:
    """The box of a picture in a size, with no more detail than the spec allows."""
    if spec.detail is not None and spec.detail < min(box[2] - box[0], box[3] - box[1]):
        scale = spec.detail / min(size)
        small = round(scale * size[0]), round(scale * size[1])
        picture, box = picture.resize(small, Image.Resampling.BILINEAR, box=box), (0, 0, *small)
    return picture.resize(size, Image.Resampling.BILINEAR, box=box)


def _window(size: tuple[int, int], largest_aspect: float) -> tuple[float, float, float, float]:
    """Left, top, width and height of the middle of an image that is not too long."""
    longest = largest_aspect * min(size)
    width, height = min(size[0], longest), min(size[1], longest)
    return (size[0] - width) / 2, (size[1] - height) / 2, width, height
