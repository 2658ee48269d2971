"""2D-3D matches of one image, made ready for any pose: pixel errors without the lens.

With b the ray of a pixel and D (2, 3) the derivative of the projection there (D b = 0), a point
P in the camera frame misses the pixel by

    e = D P / (b . P)

up to terms of second order in e: the point is brought to the plane that touches the unit sphere
at b, where the lens is linear. So the lens is evaluated once for each match, rays at and beyond
90 degrees are like all others, and both D P and b . P are linear in the pose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geocalib.arrays import quiet, to_numpy, unstack
from geocalib.cameras import Camera
from geocalib.errors import MatchError
from geocalib.localize.rotation import cross_matrix

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Matches:
    """N matches whose pixels have a ray."""

    rays: Array
    """(N, 3) unit rays b of the pixels."""
    derivatives: Array
    """(N, 2, 3) D: pixels per step of the ray."""
    points: Array
    """(N, 3) in the world."""
    linear: Array
    """(3N, 12): times a pose (rotation row by row, translation) gives D P and b . P, first all
    first rows of D P, then all second ones, then b . P."""

    def __len__(self) -> int:
        return len(self.rays)

    @classmethod
    def create(cls, rays: Array, derivatives: Array, points: Array) -> Matches:
        """Matches from rays, their derivatives and points."""
        rows = np.concatenate([derivatives, rays[:, None]], 1).transpose(1, 0, 2)
        rotation = rows[..., :, None] * points[:, None, :]
        linear = np.concatenate([rotation.reshape(3, -1, 9), rows], -1).reshape(-1, 12)
        return cls(rays, derivatives, points, linear)

    def __getitem__(self, index: npt.NDArray[np.bool_]) -> Matches:
        """Return the matches of some rows (an index, slice or mask)."""
        return self.create(self.rays[index], self.derivatives[index], self.points[index])

    def squared_errors(self, rotations: Array, translations: Array) -> Array:
        """(K, N) squared pixel errors at poses (K, 3, 3), (K, 3); infinite behind the camera."""
        poses = np.concatenate([rotations.reshape(-1, 9), translations], 1)
        x, y, depth = (poses @ self.linear.T).reshape(len(poses), 3, -1).transpose(1, 0, 2)
        ahead = depth > 0
        squared = (x * x + y * y) / np.where(ahead, depth * depth, 1.0)
        return np.where(ahead, squared, np.inf)

    def residuals(self, rotation: Array, translation: Array) -> tuple[Array, Array]:
        """(N, 2) pixel errors e at one pose, and their (N, 2, 6) derivatives.

        The derivatives are for the motion P -> P + w x P + v, in the order w, v.
        """
        P = self.points @ rotation.T + translation
        depth = (self.rays * P).sum(-1)[:, None]
        error = (self.derivatives @ P[..., None])[..., 0] / depth
        by_point = (self.derivatives - error[..., None] * self.rays[:, None]) / depth[..., None]
        return error, np.concatenate([-by_point @ cross_matrix(P), by_point], -1)


def prepare(
    points2d: npt.ArrayLike, points3d: npt.ArrayLike, camera: Camera
) -> tuple[Matches, npt.NDArray[np.bool_]]:
    """The matches of pixels (N, 2) and world points (N, 3), and which of the N have a ray."""
    pixels = np.asarray(points2d, dtype=np.float64)
    points = np.asarray(points3d, dtype=np.float64)
    if pixels.ndim != 2 or pixels.shape[1] != 2 or points.shape != (len(pixels), 3):
        raise MatchError(
            f"points2d must be (N, 2) and points3d (N, 3), got {pixels.shape} and {points.shape}"
        )
    bad = ~(np.isfinite(pixels).all(1) & np.isfinite(points).all(1))
    if bad.any():
        raise MatchError(
            f"{bad.sum()} of {len(pixels)} matches are not finite, the first is number "
            f"{np.argmax(bad)}; leave them out"
        )
    camera = camera.batch()
    if len(camera) != 1:
        raise MatchError(f"matches are those of one camera, got {len(camera)}")
    camera = camera.map(lambda value: np.asarray(to_numpy(value), np.float64))
    rays, valid = camera.unproject(pixels[None])
    usable: npt.NDArray[np.bool_] = valid[0]
    directions, derivatives = rays[0], _slopes(camera, pixels)
    return Matches.create(directions[usable], derivatives[usable], points[usable]), usable


@quiet
def _slopes(camera: Camera, pixels: Array) -> Array:
    """(N, 2, 3) how pixels (N, 2) move with their unit rays.

    The ray is N = (m, z) over its length (``geocalib.geometry.fields``). Where N moves by d, m
    follows such that it stays a ray: m moves by d_xy - m (d_z - 2 z' m . d_xy) / q.
    """
    m = camera.normalise(pixels[None])[0]
    s = (m * m).sum(-1)
    jet = camera.model.jet(s, unstack(camera.distortion[0]))
    depth = np.broadcast_to(jet.depth, s.shape)
    slope = np.zeros_like(s) if jet.d_s is None else np.broadcast_to(jet.d_s, s.shape)
    q = depth - 2 * s * slope
    tilt = np.concatenate([-2 * slope[:, None] * m, np.ones_like(m[:, :1])], -1)
    moves = np.eye(2, 3) - m[:, :, None] * (tilt / q[:, None])[:, None, :]
    length = np.sqrt(s + depth * depth)
    return np.asarray(length[:, None, None] * camera.focal[0][:, None] * moves)
