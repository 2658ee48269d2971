"""The first stage: a source, decoded once, to all that later stages need of it.

Nothing here knows of networks but what one wants to see.
"""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from geocalib.cameras.camera import Window
from geocalib.errors import ImageError
from geocalib.geometry.segments import Segments
from geocalib.imaging import ImageSource, InputSpec, is_blank, read_photo
from geocalib.imaging import prepare as prepare_photo
from geocalib.imaging.content import NOTHING_SPECIAL, Circle, examine
from geocalib.imaging.read import Photo
from geocalib.lines.detect import SHORT_SIDE, detect
from geocalib.pipeline.parallel.threads import threads
from geocalib.priors.enabled import File
from geocalib.records import dataclass
from geocalib.result.calibration import Failure


@dataclass(frozen=True)
class Prepared:
    """One image on its way to the network. Of its pixels only those are left."""

    file: File
    image: npt.NDArray[np.float32]
    """(3, h, w) RGB in [0, 1]."""
    view: Window
    """What of the original it shows."""
    aspect: float
    """fx / fy of the input where the original's pixels are square."""
    notes: tuple[str, ...]
    """What its user should know, in plain words."""
    blank: bool
    """Whether it is almost uniform."""
    circle: Circle | None = None
    """The circle with black around it that the picture fills, as fisheyes make them."""
    segments: Segments | None = None
    """Straight ones at full resolution, where they were wanted."""

    @property
    def size(self) -> tuple[int, int]:
        """(w, h) of the input, in pixels."""
        return self.image.shape[2], self.image.shape[1]


def prepare(source: ImageSource, spec: InputSpec, with_lines: bool) -> Prepared | Failure:
    """An image as a network wants to see it, or why not."""
    photo = read(source, spec, with_lines)
    if isinstance(photo, Failure):
        return photo
    image = prepared(source, photo, spec)
    return replace(image, segments=detect(photo, threads())) if with_lines else image


def read(source: ImageSource, spec: InputSpec, with_lines: bool) -> Photo | Failure:
    """An image at the largest size that is needed, for the network and for the lines, or why
    not."""
    try:
        return read_photo(source, max(spec.short_side, SHORT_SIDE if with_lines else 0))
    except ImageError as error:
        return Failure(path_of(source), None, None, str(error))


def prepared(source: ImageSource, photo: Photo, spec: InputSpec) -> Prepared:
    """An image that has been read, without its lines."""
    given = prepare_photo(photo, spec)
    blank = is_blank(photo.pixels)
    content = NOTHING_SPECIAL if blank else examine(photo.pixels, photo.size)
    unlike = () if content.warning is None else (content.warning,)
    return Prepared(
        File(path_of(source), photo.name, photo.size, photo.metadata),
        given.image,
        given.view,
        given.aspect,
        (*photo.notes, *given.notes, *unlike),
        blank,
        content.circle,
    )


def path_of(source: ImageSource) -> str | None:
    """Where an image came from, if it has a path."""
    return os.fspath(source) if isinstance(source, str | os.PathLike) else None
