"""The camera of a rig that took an image, and the time step, from the image's path.

A pattern such as ``left/*`` or ``cam_left_*.png`` is matched with the end of the path, from the
start of a file's or folder's name; what stands in the place of the * is the time step. The suffix
of the file may be left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from geocalib.errors import CouplingError
from geocalib.rig.description import RigDescription
from geocalib.solver import Rig


@dataclass(frozen=True)
class Shots:
    """N images of a rig, ready for ``Calibrator.calibrate``: give it ``rig`` and ``intrinsics``."""

    description: RigDescription
    images: tuple[str, ...]
    camera: tuple[int, ...]
    """(N,) the number of each image's camera."""
    step: tuple[str, ...]
    """(N,) the word for when each was taken."""
    strangers: tuple[str, ...]
    """Further images, which none of the cameras took."""

    @property
    def time(self) -> list[int]:
        """(N,) equal where images were taken at once by cameras that are mounted together."""
        numbers: dict[tuple[str, str], int] = {}
        cameras = (self.description.cameras[camera] for camera in self.camera)
        keys = [(camera.rig, step) for camera, step in zip(cameras, self.step, strict=True)]
        return [numbers.setdefault(key, len(numbers)) for key in keys]

    @property
    def steps(self) -> int:
        """How many times there are."""
        return len(set(self.time))

    @property
    def rig(self) -> Rig:
        """The rig as the fit takes it."""
        return Rig(self.description.camera_from_rig, self.camera, self.time)

    @property
    def intrinsics(self) -> list[int]:
        """(N,) equal where images have the same lens."""
        words = [self.description.cameras[camera].intrinsics for camera in self.camera]
        numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
        return [numbers[word] for word in words]


def match_images(description: RigDescription, images: Sequence[str]) -> Shots:
    """The images that the cameras took, in the order given."""
    patterns = [_pattern(camera.images) for camera in description.cameras]
    cameras, steps, known, strangers = [], [], [], []
    taken: dict[tuple[int, str], str] = {}
    for image in images:
        path = os.path.abspath(image).replace(os.sep, "/")
        found = _camera(patterns, path)
        if found is None:
            strangers.append(image)
            continue
        if other := taken.get(found):
            name = description.cameras[found[0]].name
            raise CouplingError(
                f"{other} and {image}: both are {name} at {found[1]}; a camera takes one at a time"
            )
        taken[found] = image
        known.append(image)
        cameras.append(found[0])
        steps.append(found[1])
    return Shots(description, tuple(known), tuple(cameras), tuple(steps), tuple(strangers))


def _pattern(images: str) -> re.Pattern[str]:
    before, after = (re.escape(part) for part in images.lstrip("/").split("*"))
    # Folders belong to the step only where the pattern says in which they are.
    step = ".+?" if before else "[^/]+?"
    return re.compile(rf"(?:.*/)?(?P<own>{before})(?P<step>{step}){after}(?:\.[^./]+)?", re.DOTALL)


def _camera(patterns: Sequence[re.Pattern[str]], path: str) -> tuple[int, str] | None:
    """The number of the camera whose pattern fits best, and the step; None if none does.

    Best is what begins last, as folders may lie in each other, and of these the longest: cam1*
    also fits cam10/1.png.
    """
    matches = [(i, match) for i, one in enumerate(patterns) if (match := one.fullmatch(path))]
    if not matches:
        return None
    number, best = max(matches, key=lambda m: (m[1].start("own"), m[1].end("own"), -m[0]))
    return number, best["step"]
