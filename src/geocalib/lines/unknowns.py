"""What is sought, in arrays: gravities, cameras and headings of images that share some of them.

All arrays begin with R guesses, which are improved side by side. Of the images, some may share a
camera, or a gravity up to a known rotation.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from geocalib.arrays import clip, double, unstack
from geocalib.cameras.base import CameraModel
from geocalib.cameras.camera import Camera
from geocalib.geometry.fields import Free
from geocalib.geometry.gravity import move, tangent_basis
from geocalib.geometry.tensors import map_tensors
from geocalib.records import dataclass, replace
from geocalib.solver.coupling import Coupling
from geocalib.solver.state import Frame

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Guess:
    """R guesses at T gravities, C cameras and the Y headings of each of B images."""

    gravity: Array
    """(R, T, 3)."""
    log_f: Array
    """(R, C)."""
    distortion: Array
    """(R, C, D)."""
    c: Array
    """(R, C, 2)."""
    headings: Array
    """(R, B, Y, 3) level unit directions in the camera frame of each image."""

    def __len__(self) -> int:
        return len(self.gravity)

    @cached_property
    def basis(self) -> Array:
        """(R, T, 3, 2) tangent directions of gravity."""
        return np.asarray(tangent_basis(self.gravity))

    def __getitem__(self, index: slice | list[int] | npt.NDArray[Any]) -> Guess:
        """Some of them."""
        return map_tensors(lambda value: value[index], self)

    def upright(self) -> Guess:
        """The same without headings."""
        return replace(self, headings=self.headings[:, :, :0])

    @classmethod
    def concatenate(cls, parts: Sequence[Guess]) -> Guess:
        """Several, one after the other."""
        return map_tensors(lambda *column: np.concatenate(column), *parts)


@dataclass(frozen=True)
class Images:
    """Where the cameras of B images are, by R guesses."""

    model: CameraModel
    focal: Array
    """(R, B, 2) fx and fy."""
    c: Array
    """(R, B, 2)."""
    distortion: Array
    """(R, B, D)."""
    gravity: Array
    """(R, B, 3)."""
    basis: Array
    """(R, B, 3, a) tangent directions in which it varies."""

    def bent(self, model: CameraModel) -> Images:
        """With a model of one parameter, which is 0."""
        return replace(self, model=model, distortion=np.zeros_like(self.c[..., :1]))


@dataclass(frozen=True)
class Layout:
    """Which unknowns B images have, and how far these may go. What belongs to cameras may differ
    from guess to guess: then it begins with R."""

    model: CameraModel
    free: Free
    size: Array
    """(C, 2) pixels."""
    aspect: Array
    """(C,) fx / fy."""
    low: Array
    """(C,) bounds of log f."""
    high: Array
    time: npt.NDArray[np.int64]
    """(B,) which of the gravities each image has."""
    camera: npt.NDArray[np.int64]
    """(B,) which of the cameras."""
    rotation: Array | None
    """(B, 3, 3) from the frame of that gravity to the image's; None: identity."""

    @classmethod
    def create(cls, frame: Frame, coupling: Coupling) -> Layout:
        """Of images that form one component."""
        return cls(
            frame.model,
            frame.free,
            frame.size,
            frame.aspect,
            frame.log_f_low,
            frame.log_f_high,
            coupling.time,
            coupling.camera,
            None if coupling.rotation is None else double(coupling.rotation),
        )

    @property
    def tangents(self) -> int:
        """Free directions of each gravity."""
        return 2 * int(self.free.gravity)

    @property
    def cameras(self) -> int:
        """C."""
        return self.size.shape[-2]

    @property
    def intrinsics(self) -> int:
        """Free parameters of each camera."""
        return self.free.intrinsics

    def gravity(self, guess: Guess) -> Array:
        """(R, B, 3) in the frame of every image."""
        gravity = self._of_images(guess.gravity, self.time)
        return gravity if self.rotation is None else times(self.rotation, gravity)

    def images(self, guess: Guess) -> Images:
        """What a guess means for every image."""
        gravity = self.gravity(guess)
        basis = self._of_images(guess.basis[..., : self.tangents], self.time)
        if self.rotation is not None:
            basis = self.rotation @ basis
        focal = np.exp(guess.log_f)[..., None] * self._stretch
        focal, c, distortion = (
            self._of_images(value, self.camera) for value in (focal, guess.c, guess.distortion)
        )
        return Images(self.model, focal, c, distortion, gravity, basis)

    def _of_images(self, values: Array, index: npt.NDArray[np.int64]) -> Array:
        """(R, B, ...) those of gravities or cameras (R, n, ...), of which each image has one."""
        return values if len(index) == 1 else values[:, index]

    @cached_property
    def _stretch(self) -> Array:
        """(C, 2) fx and fy by fy."""
        return np.stack([self.aspect, np.ones_like(self.aspect)], -1)

    def camera_of(self, guess: Guess, image: int) -> Camera:
        """By the first guess, as a batch of 1."""
        at = self.camera[image]
        own = np.exp(guess.log_f[0, at]), guess.c[0, at], guess.distortion[0, at]
        values = (*own, self.size[at], self.aspect[at])
        return Camera(self.model, *(np.array(value)[None] for value in values))

    def moved(self, guess: Guess, time: Array, camera: Array) -> Guess:
        """After steps (R, T, a) on the sphere and (R, C, P) of the intrinsics, within bounds."""
        gravity, log_f, distortion, c = guess.gravity, guess.log_f, guess.distortion, guess.c
        if self.free.gravity:
            gravity = move(gravity, time, guess.basis)
        at = 0
        if self.free.focal:
            log_f = np.minimum(np.maximum(log_f + camera[..., 0], self.low), self.high)
            at = 1
        if self.free.distortion:
            distortion = distortion.copy()
            # Beyond first order it goes with f, so that edges that are straight stay straight.
            zoom = (log_f - guess.log_f)[..., None] * powers(self.model)
            for i in self.free.distortion:
                moved = distortion[..., i] * (1 - zoom[..., i]) + camera[..., at]
                moved = moved * np.exp(zoom[..., i])
                distortion[..., i] = clip(moved, *self.model.bounds[i])
                at += 1
            if not self.model.unit_centre and self.free.focal:
                log_f = log_f - _magnified(self.model, guess.distortion, distortion)
        if self.free.principal_point:
            c = c + camera[..., at : at + 2]
        return Guess(gravity, log_f, distortion, c, guess.headings)


def powers(model: CameraModel) -> Array:
    """(D,) of f, by which distortion parameters grow where the bend in the picture is the same: 2
    for k1, 4 for k2; 0 for lenses that see 90 degrees and more, which are another matter."""
    return _powers(len(model.parameters), model.wide)


@cache
def _powers(count: int, wide: bool) -> Array:
    found = np.arange(1, count + 1) * (0.0 if wide else 2.0)
    found.flags.writeable = False
    return np.asarray(found, np.float64)


def _magnified(model: CameraModel, before: Array, after: Array) -> Array:
    """What log f depth(0) gains beyond first order: taking it off f keeps the magnification, which
    the data fix well, on the straight line of a step."""
    shape, count = before.shape[:-1], before.shape[-1]

    def parameters(distortion: Array) -> tuple[Array, ...]:
        return unstack(distortion.reshape(-1, count)[:, :, None], 1)

    centre = np.zeros((before.size // count, 1))
    jet = model.jet(centre, parameters(before))
    depth, _ = model.depth(centre, parameters(after))
    slope = (np.concatenate(jet.d_k, 1) / jet.depth).reshape(before.shape)
    gained = np.log(depth / jet.depth).reshape(shape)
    return np.asarray(gained - (slope * (after - before)).sum(-1))


def times(matrix: Array, vector: Array) -> Array:
    """(..., n) from (..., n, m) and (..., m)."""
    return np.asarray((matrix @ vector[..., None])[..., 0])


def level_frame(gravity: Array) -> Array:
    """(..., 3, 3) the axes right, down and ahead of a level frame, as rows in the camera frame."""
    right = tangent_basis(gravity)[..., 0]
    return np.stack([right, gravity, cross(right, gravity)], -2)


CROSS = np.zeros((3, 9))
"""What vectors are multiplied by to give the matrices, row by row, that multiply by them."""
CROSS[2, 1], CROSS[1, 2], CROSS[2, 3], CROSS[0, 5], CROSS[1, 6], CROSS[0, 7] = -1, 1, 1, -1, -1, 1


def cross(a: Array, b: Array) -> Array:
    """(..., 3) of vectors (..., 3)."""
    # As products of matrices: three times fewer operations.
    turn = (a @ CROSS).reshape(*a.shape, 3)
    return times(turn, b)


def unit(vector: Array) -> Array:
    """Of length 1."""
    return np.asarray(vector / np.sqrt(np.vecdot(vector, vector))[..., None])


@cache
def compass(count: int) -> Array:
    """(count, 3) headings over half a turn, in a level frame."""
    angle = np.pi / count * np.arange(count)
    found = np.stack([np.cos(angle), np.zeros(count), np.sin(angle)], -1)
    found.flags.writeable = False
    return found
