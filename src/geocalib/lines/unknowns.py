"""The unknowns of a search in arrays: gravities, cameras and headings; the segments; and systems of
equations for a step.

All arrays begin with R guesses, which are improved side by side. Of the B images, some may share a
camera, or a gravity up to a known rotation. The segments of the images are padded to one number.

The systems have the shape of an arrow: gravities couple only to the cameras, headings only to their
image, so that each is eliminated in its own small block, and time and memory grow linearly with the
number of images. The arrow of ``solver.coupling`` belongs to one guess at all components of a
batch, this one to many guesses at one component. A step takes both equally long for a single photo
(0.59 and 0.57 ms on one busy core, in alternation), so neither is kept for its speed: joining them
would give every array of the solver a dimension that only lines use.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from functools import cache, cached_property, partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from geocalib.arrays import double, unstack
from geocalib.cameras.base import CameraModel
from geocalib.cameras.camera import Camera
from geocalib.geometry.fields import Free
from geocalib.geometry.gravity import move, tangent_basis
from geocalib.geometry.segments import Segments
from geocalib.records import dataclass, field_names, map_tensors, replace
from geocalib.solver.coupling import Coupling
from geocalib.solver.state import Frame


@dataclass(frozen=True)
class BatchedArrow:
    """Symmetric: A (R, T, a, a) on the gravities, C (R, Q, Q) on all cameras, B (R, T, a, Q)
    between."""

    A: Array
    B: Array
    C: Array

    def __add__(self, other: BatchedArrow) -> BatchedArrow:
        return BatchedArrow(self.A + other.A, self.B + other.B, self.C + other.C)

    def damped(self, damping: Array) -> BatchedArrow:
        """Return the system with (1 + damping) on the diagonal, damping (R,)."""
        return BatchedArrow(damped(self.A, damping[:, None]), self.B, damped(self.C, damping))

    def dense(self) -> Array:
        """Return it as one matrix (R, a + Q, a + Q) where there is one gravity."""
        A, B = self.A[:, 0], self.B[:, 0]
        return np.concatenate([np.concatenate([A, B], -1), np.concatenate([B.mT, self.C], -1)], -2)

    def eliminate(self) -> BatchedElimination:
        """Eliminate the gravities from the normal equations."""
        inverse = np.asarray(np.linalg.inv(self.A), np.float64)
        AB = inverse @ self.B
        S = self.C - (self.B.mT @ AB).sum(1)
        return BatchedElimination(inverse, AB, S)


@dataclass(frozen=True)
class BatchedElimination:
    """What is left of an arrow: A^-1, A^-1 B and the Schur complement S (R, Q, Q)."""

    A_inverse: Array
    AB: Array
    S: Array

    def solve(self, time: Array, camera: Array) -> tuple[Array, Array]:
        """Return the solutions (R, T, a) and (R, Q)."""
        left = camera - np.matvec(self.AB.mT, time).sum(1)
        camera = np.linalg.solve(self.S, left[..., None])[..., 0]
        return np.matvec(self.A_inverse, time) - np.matvec(self.AB, camera[:, None]), camera


def assemble(
    matrix: Array, vector: Array, layout: Layout
) -> tuple[BatchedArrow, tuple[Array, Array]]:
    """Sums of matrices (R, B, P, P) and vectors (R, B, P) of every image: an arrow, and (R, T, a)
    and (R, Q)."""
    a, own, cameras = layout.tangents, layout.intrinsics, len(layout.size)
    rows, count = len(matrix), int(layout.time.max()) + 1
    top, side, tip = matrix[..., :a, :a], matrix[..., :a, a:], matrix[..., a:, a:]
    if matrix.shape[1] == 1:
        return BatchedArrow(top, side, tip[:, 0]), (vector[..., :a], vector[:, 0, a:])
    A, time = np.zeros((rows, count, a, a)), np.zeros((rows, count, a))
    B = np.zeros((rows, count, cameras, a, own))
    C, camera = np.zeros((rows, cameras, own, cameras, own)), np.zeros((rows, cameras, own))
    for image, (t, c) in enumerate(zip(layout.time, layout.camera, strict=True)):
        A[:, t] += top[:, image]
        B[:, t, c] += side[:, image]
        C[:, c, :, c] += tip[:, image]
        time[:, t] += vector[:, image, :a]
        camera[:, c] += vector[:, image, a:]
    size = cameras * own
    arrow = BatchedArrow(
        A, B.transpose(0, 1, 3, 2, 4).reshape(rows, count, a, size), C.reshape(rows, size, size)
    )
    return arrow, (time, camera.reshape(rows, size))


@dataclass(frozen=True)
class HeadingSteps:
    """The best turns of headings: first (R, B, Y) less slope (R, B, Y, P) times the other
    unknowns."""

    first: Array
    slope: Array

    def after(self, step: Array) -> Array:
        """Return the turns (R, B, Y) once the others have moved by (R, B, P)."""
        return self.first - np.matvec(self.slope, step)


def eliminate_headings(
    hessian: Array, gradient: Array, shared: int, damping: Array | None = None
) -> tuple[Array, Array, HeadingSteps]:
    """Normal equations (R, B, P, P) of the first ``shared`` unknowns of each image, the headings
    eliminated, which damping (R,) holds."""
    if hessian.shape[-1] == shared:
        return hessian, gradient, HeadingSteps(gradient[..., :0], hessian[..., :0, :])
    factor = np.zeros(len(hessian)) if damping is None else damping
    # A heading that no segment follows stays where it is.
    own = damped(hessian[..., shared:, shared:], factor[:, None])
    right = np.concatenate([hessian[..., shared:, :shared], -gradient[..., shared:, None]], -1)
    both = right / own if own.shape[-1] == 1 else np.linalg.solve(own, right)
    slope, first = both[..., :-1], both[..., -1]
    across = hessian[..., :shared, shared:]
    return (
        hessian[..., :shared, :shared] - across @ slope,
        gradient[..., :shared] + np.matvec(across, first),
        HeadingSteps(first, slope),
    )


def damped(matrix: Array, factor: Array) -> Array:
    """Matrices (..., n, n) with (1 + factor), (...), times the diagonal, or 1 where that is 0."""
    size = matrix.shape[-1]
    flat = matrix.reshape(*matrix.shape[:-2], size * size).copy()
    diagonal = flat[..., :: size + 1]
    diagonal += np.where(diagonal > 0, factor[..., None] * diagonal, 1.0)
    return flat.reshape(matrix.shape)


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
        """Tangent directions (R, T, 3, 2) of gravity."""
        return np.asarray(tangent_basis(self.gravity))

    def __getitem__(self, index: slice | list[int] | npt.NDArray[Any]) -> Guess:
        """Return some of the guesses."""
        return Guess(
            self.gravity[index],
            self.log_f[index],
            self.distortion[index],
            self.c[index],
            self.headings[index],
        )

    def upright(self) -> Guess:
        """Return the guesses without headings."""
        return replace(self, headings=self.headings[:, :, :0])

    @classmethod
    def concatenate(cls, parts: Sequence[Guess]) -> Guess:
        """Stack guesses of several images."""
        return cls(
            np.concatenate([part.gravity for part in parts]),
            np.concatenate([part.log_f for part in parts]),
            np.concatenate([part.distortion for part in parts]),
            np.concatenate([part.c for part in parts]),
            np.concatenate([part.headings for part in parts]),
        )


@dataclass(frozen=True)
class Images:
    """The cameras of B images, by R guesses."""

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


@dataclass(frozen=True)
class Layout:
    """The unknowns of B images and their bounds. Values of cameras may differ
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
        """Return the layout of images that form one component."""
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

    @cached_property
    def tangents(self) -> int:
        """The number of free directions of each gravity."""
        return 2 * int(self.free.gravity)

    @cached_property
    def cameras(self) -> int:
        """The number C of cameras."""
        return self.size.shape[-2]

    @cached_property
    def intrinsics(self) -> int:
        """The number of free parameters of each camera."""
        return self.free.intrinsics

    @cached_property
    def powers(self) -> Array:
        """The powers (D,) of f by which distortion grows (``powers``)."""
        return powers(self.model)

    def gravity(self, guess: Guess) -> Array:
        """Return gravity (R, B, 3) in the frame of every image."""
        gravity = guess.gravity if len(self.time) == 1 else guess.gravity[:, self.time]
        return gravity if self.rotation is None else np.matvec(self.rotation, gravity)

    def images(self, guess: Guess) -> Images:
        """Return the cameras and gravities that guesses give every image."""
        gravity = self.gravity(guess)
        basis = guess.basis[..., : self.tangents]
        if len(self.time) > 1:
            basis = basis[:, self.time]
        if self.rotation is not None:
            basis = self.rotation @ basis
        focal = np.exp(guess.log_f)[..., None] * self._stretch
        c, distortion = guess.c, guess.distortion
        if len(self.camera) > 1:
            focal, c = focal[:, self.camera], c[:, self.camera]
            distortion = distortion[:, self.camera]
        return Images(self.model, focal, c, distortion, gravity, basis)

    @cached_property
    def _stretch(self) -> Array:
        """The factors (C, 2) of fx and fy over fy."""
        return np.stack([self.aspect, np.ones_like(self.aspect)], -1)

    def camera_of(self, guess: Guess, image: int) -> Camera:
        """Return the camera of an image by the first guess, as a batch of 1."""
        at = self.camera[image]
        own = np.exp(guess.log_f[0, at]), guess.c[0, at], guess.distortion[0, at]
        values = (*own, self.size[at], self.aspect[at])
        return Camera(self.model, *(np.array(value)[None] for value in values))

    def moved(self, guess: Guess, time: Array, camera: Array) -> Guess:
        """Return guesses after steps (R, T, a) on the sphere and (R, C, P) of the intrinsics,
        within bounds."""
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
            zoom = (log_f - guess.log_f)[..., None] * self.powers
            for i in self.free.distortion:
                moved = distortion[..., i] * (1 - zoom[..., i]) + camera[..., at]
                moved = moved * np.exp(zoom[..., i])
                low, high = self.model.bounds[i]
                distortion[..., i] = np.minimum(np.maximum(moved, low), high)
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
    """Return what log f depth(0) gains beyond first order.

    Taking it off f keeps the magnification, which the data fix well, on the straight line of a
    step.
    """
    shape, count = before.shape[:-1], before.shape[-1]

    def parameters(distortion: Array) -> tuple[Array, ...]:
        return unstack(distortion.reshape(-1, count)[:, :, None], 1)

    centre = np.zeros((before.size // count, 1))
    jet = model.jet(centre, parameters(before))
    depth, _ = model.depth(centre, parameters(after))
    slope = (np.concatenate(jet.d_k, 1) / jet.depth).reshape(before.shape)
    gained = np.log(depth / jet.depth).reshape(shape)
    return np.asarray(gained - (slope * (after - before)).sum(-1))


def level_frame(gravity: Array) -> Array:
    """(..., 3, 3) the axes right, down and ahead of a level frame, as rows in the camera frame."""
    right = tangent_basis(gravity)[..., 0]
    return np.stack([right, gravity, cross(right, gravity)], -2)


CROSS = np.zeros((3, 9))
"""What vectors are multiplied by to give the matrices, row by row, that multiply by them."""
CROSS[2, 1], CROSS[1, 2], CROSS[2, 3], CROSS[0, 5], CROSS[1, 6], CROSS[0, 7] = -1, 1, 1, -1, -1, 1


def cross(a: Array, b: Array) -> Array:
    """Return cross products (..., 3) of vectors (..., 3)."""
    # As products of matrices: three times fewer operations.
    turn = (a @ CROSS).reshape(*a.shape, 3)
    return np.matvec(turn, b)


def unit(vector: Array) -> Array:
    """Return vectors scaled to length 1."""
    return np.asarray(vector / np.sqrt(np.vecdot(vector, vector))[..., None])


@cache
def compass(count: int) -> Array:
    """(count, 3) headings over half a turn, in a level frame."""
    angle = np.pi / count * np.arange(count)
    found = np.stack([np.cos(angle), np.zeros(count), np.sin(angle)], -1)
    found.flags.writeable = False
    return found


PAD_TO = 250
"""Segments: a picture that is looked at beside others has a multiple of them. Sums are the same to
the last bit only where as many numbers are summed up."""


@dataclass(frozen=True)
class SegmentBatch:
    """The segments of B pictures padded to the same number N. Each row of guesses may have its own
    (``geocalib.lines.batched_search``): then the arrays begin with R."""

    middle: Array
    """(B, 2, N) pixels."""
    sides: Array
    """(B, 2, 2, N) unit vectors across and along each segment."""
    length: Array
    """(B, N) pixels; 0 for what was padded."""
    noise: Array
    """(B,) pixels."""

    @classmethod
    def create(cls, pictures: list[Segments]) -> SegmentBatch:
        """Pad the segments of each picture to one number."""
        count = max([1, *(len(segments) for segments in pictures)])
        ends = np.zeros((len(pictures), 2, 2, count))
        for row, segments in enumerate(pictures):
            ends[row, ..., : len(segments)] = segments.ends.transpose(1, 2, 0)
        across = ends[:, 1] - ends[:, 0]
        length = np.sqrt((across * across).sum(1))
        along = across / length.clip(min=np.finfo(length.dtype).tiny)[:, None]
        sides = np.stack([np.stack([-along[:, 1], along[:, 0]], 1), along], 1)
        return cls(ends.mean(1), sides, length, np.array([s.noise for s in pictures]))

    def __len__(self) -> int:
        return len(self.middle)

    def __getitem__(self, index: slice) -> SegmentBatch:
        """Return the segments of some pictures."""
        return map_tensors(lambda value: value[index], self)

    def padded(self) -> SegmentBatch:
        """Return the batch padded to a multiple of ``PAD_TO`` segments."""
        more = np.zeros((len(self), 2, 2, -self.length.shape[1] % PAD_TO))
        return SegmentBatch(
            np.concatenate([self.middle, more[:, 0]], -1),
            np.concatenate([self.sides, more], -1),
            np.concatenate([self.length, more[:, 0, 0]], -1),
            self.noise,
        )

    def longest(self, count: int) -> SegmentBatch:
        """Return at most so many segments of each picture."""
        middle, sides, length = self.middle, self.sides, self.length
        return SegmentBatch(middle[..., :count], sides[..., :count], length[:, :count], self.noise)


Held = TypeVar("Held", bound=Any)
"""A record whose arrays begin with R, or a part of one."""


def select_rows(better: Flags, new: Held, old: Held) -> Held:
    """Return the new record in the rows (R,) where it is better, and the old one elsewhere."""
    if better.all():
        return new
    if not better.any():
        return old
    one: Any = new
    if isinstance(one, np.ndarray):
        chosen: Any = np.where(better.reshape(-1, *(1,) * (one.ndim - 1)), one, old)
        return chosen
    return type(one)(*map(partial(select_rows, better), _parts(one), _parts(old)))


def take_rows(kept: Flags | slice, held: Held) -> Held:
    """Return some rows (R,) of an array, of each of a tuple, or of those of a record."""
    taken: Any
    if isinstance(held, np.ndarray):
        taken = held[kept]
    elif isinstance(held, tuple):
        taken = tuple(map(partial(take_rows, kept), held))
    elif is_dataclass(held):
        kind: Any = type(held)
        taken = kind(*map(partial(take_rows, kept), _parts(held)))
    else:
        taken = held
    return taken


def _parts(record: Any) -> Iterator[Any]:
    """The values of the fields of a record, in order."""
    return map(vars(record).__getitem__, field_names(type(record)))  # type: ignore[arg-type]


def concatenate_rows(*parts: Held) -> Held:
    """Stack the rows of several records."""

    def join(*values: Any) -> Any:
        match values[0]:
            case np.ndarray():
                return np.concatenate(values)
            case tuple():
                return tuple(itertools.starmap(join, zip(*values, strict=True)))
        return concatenate_rows(*values) if is_dataclass(values[0]) else values[0]

    return map_tensors(join, *parts)
