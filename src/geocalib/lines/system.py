"""The arrow-shaped systems of R guesses: gravities couple only to the cameras, headings only to
their image, so that each is eliminated in its own small block, and time and memory grow linearly
with the number of images.

The arrow of ``solver.coupling`` belongs to one guess at all components of a batch, this one to many
guesses at one component. A step takes both equally long for a single photo (0.59 and 0.57 ms on one
busy core, in alternation), so neither is kept for its speed: joining them would give every array of
the solver a dimension that only lines use.
"""

from __future__ import annotations

import numpy as np

from geocalib.lines.unknowns import Array, Layout
from geocalib.records import dataclass


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
