"""How far segments are from pointing along directions in space, and how that changes.

A line of the world along the unit direction d, seen as a segment, lies in the plane through the
rays N1, N2 of the segment's ends: n . d = 0 with n = N1 x N2. In the picture this says that at the
segment's middle the direction d is seen along the segment, just as the up-vector is the direction
in which -gravity is seen. The residual is the sine of the angle between the two.

What is seen of d at a ray N = (m, z) is linear in it (``geometry.fields``, with z' = dz/ds):

    v = diag(aspect, 1) (h m - q d_xy),  h = d_z - 2 z' m . d_xy,  q = z - 2 s z'.

So its parts across and along a segment are products of d with two vectors of the segment, which
all directions share: n, and one more.

Directions are the vertical g and level ones: a heading h, and g x h at a right angle to it. When
gravity moves along a tangent e, a heading goes with it: dh = -(e . h) g.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from geocalib.arrays import quiet, unstack
from geocalib.cameras.base import CameraModel
from geocalib.geometry.fields import Free
from geocalib.lines.bundle import Bundle
from geocalib.lines.unknowns import Array, Flags, Images, cross
from geocalib.records import dataclass

NOTHING = 1e-60
"""A square of pixels that keeps divisions finite where no direction is seen."""


@dataclass(frozen=True)
class Depths:
    """The depth profile of cameras and its derivatives at some squared radii s, (..., N) each, as
    ``geocalib.cameras.base.DepthJet`` has it; None where they vanish."""

    depth: Array
    d_s: Array | None
    d_ss: Array | None
    d_k: tuple[Array, ...]
    d_ks: tuple[Array, ...]
    valid: Flags | None

    @classmethod
    @quiet
    def create(cls, model: CameraModel, s: Array, distortion: Array) -> Depths:
        """At s (..., N) with distortion (..., D)."""
        if not model.parameters:
            return cls(np.ones_like(s), None, None, (), (), None)
        jet = model.jet(s, unstack(distortion[..., None, :]))

        def full(value: Any) -> Any:
            if value is None or value.shape == s.shape:
                return value
            return np.broadcast_to(value, s.shape)

        return cls(
            full(jet.depth),
            full(jet.d_s),
            full(jet.d_ss),
            tuple(map(full, jet.d_k)),
            tuple(map(full, jet.d_ks)),
            full(jet.valid),
        )


@dataclass(frozen=True)
class Optics:
    """What the cameras of images make of the middles of N segments each, whatever the
    directions."""

    m: Array
    """(..., 2, N) of the rays."""
    s: Array
    """(..., N) squares of their lengths."""
    depths: Depths
    focal: Array
    """(..., 2)."""
    sides: Array
    """(..., 2, 2, N) unit vectors across and along each segment, times fx and fy."""
    reach: Array
    """(..., 2, N) m . sides."""
    outer: Array
    """(..., 2, 2, N) reach times m."""
    vectors: Array
    """(..., 2, 3, N): f times what is seen of a direction, across and along, is its product with
    these."""

    @classmethod
    def create(cls, images: Images, bundle: Bundle) -> Optics:
        focal = images.focal[..., None]
        m = (bundle.middle - images.c[..., None]) / focal
        s = m[..., 0, :] ** 2 + m[..., 1, :] ** 2
        depths = Depths.create(images.model, s, images.distortion)
        sides = bundle.sides * focal[..., None, :, :]
        reach = sides[..., 0, :] * m[..., None, 0, :] + sides[..., 1, :] * m[..., None, 1, :]
        outer = _outer(reach, m)
        vectors = np.empty((*sides.shape[:-2], 3, sides.shape[-1]))
        vectors[..., 2, :] = reach
        if depths.d_s is None:
            vectors[..., :2, :] = -depths.depth[..., None, None, :] * sides
        else:
            twice = 2 * depths.d_s
            vectors[..., :2, :] = (s * twice - depths.depth)[..., None, None, :] * sides
            vectors[..., :2, :] -= twice[..., None, None, :] * outer
        return cls(m, s, depths, images.focal, sides, reach, outer, vectors)

    def look(self, directions: Array) -> Sight:
        """At unit directions (..., K, 3)."""
        seen = directions[..., None, :, :] @ self.vectors
        across, along = seen[..., 0, :, :], seen[..., 1, :, :]
        length = np.sqrt(np.maximum(across * across + along * along, NOTHING))
        # That of an undirected line.
        residual = np.copysign(1.0, along) * across / length
        return Sight(residual, length, seen, directions, self)

    def changes(self, free: Free) -> Array:
        """(..., Q, 2, 3, N) derivatives of the vectors in log f, distortion, principal point."""
        depths, s, count = self.depths, self.s, free.intrinsics
        found = np.zeros((*self.vectors.shape[:-3], count, *self.vectors.shape[-3:]))
        each = iter(np.moveaxis(found, -4, 0))
        bend, curve = None, None
        if depths.d_s is not None:
            # -dq/ds and -2 s z''; None where they vanish.
            curve = None if depths.d_ss is None else -2 * s * depths.d_ss
            bend = depths.d_s if curve is None else depths.d_s - curve
        if free.focal:
            change = next(each)
            change[..., 2, :] = -self.reach
            self._bend(change, None if bend is None else 2 * s * bend, curve, -2 * self.outer)
        for i in free.distortion:
            dq = depths.d_k[i] - 2 * s * depths.d_ks[i]
            self._bend(next(each), dq, depths.d_ks[i])
        if free.principal_point:
            for axis in (0, 1):
                change = next(each)
                step = -1 / self.focal[..., axis, None]
                change[..., 2, :] = reach = self.sides[..., axis, :] * step[..., None]
                outer = _outer(reach, self.m)
                outer[..., axis, :] += self.reach * step[..., None]
                ds = 2 * self.m[..., axis, :] * step
                slope = None if depths.d_ss is None else depths.d_ss * ds
                self._bend(change, None if bend is None else -bend * ds, slope, outer)
        return found

    def _bend(
        self, change: Array, dq: Array | None, d_slope: Array | None, outer: Array | None = None
    ) -> None:
        """Add to the change of the vectors what those of q, z' and reach m make of it, (..., N),
        (..., N) and (..., 2, 2, N)."""
        flat = change[..., :2, :]
        if dq is not None:
            flat -= dq[..., None, None, :] * self.sides
        if d_slope is not None:
            flat -= (2 * d_slope)[..., None, None, :] * self.outer
        if outer is not None and self.depths.d_s is not None:
            flat -= (2 * self.depths.d_s)[..., None, None, :] * outer


def _outer(reach: Array, m: Array) -> Array:
    return reach[..., :, None, :] * m[..., None, :, :]


@dataclass(frozen=True)
class Sight:
    """N segments of each picture as seen against K directions."""

    residual: Array
    """(..., K, N) sines of angles in the picture."""
    length: Array
    """(..., K, N) f |v|."""
    seen: Array
    """(..., 2, K, N) f v across and along each segment."""
    directions: Array
    """(..., K, 3)."""
    optics: Optics

    @property
    def valid(self) -> Flags:
        """(..., 1, N) whether the camera sees the middle."""
        there, s = self.optics.depths.valid, self.optics.s
        return (np.ones(s.shape, np.bool_) if there is None else there)[..., None, :]

    @property
    def nearness(self) -> Array:
        """(..., K, N) 1 / pixels from the middle of a segment to where its direction vanishes."""
        slope, directions = self.optics.depths.d_s, self.directions
        h = directions[..., 2:]
        if slope is not None:
            h = h - 2 * slope[..., None, :] * (directions[..., :2] @ self.optics.m)
        return np.asarray(np.abs(h) / self.length)

    def jacobian(self, moves: Array, free: Free) -> Array:
        """(..., P, K, N) derivatives of the residuals: in how the directions move, (..., K, 3, M),
        and then in the free ones of log f, distortion and principal point."""
        # d(sine) = |cosine| d(angle), by what is seen across and along.
        across, along = self.seen[..., 0, :, :], self.seen[..., 1, :, :]
        scale = np.abs(along) / (self.length * self.length * self.length)
        one, other = along * scale, across * scale
        vectors = self.optics.vectors
        turn = one[..., None, :] * vectors[..., 0, None, :, :]
        turn -= other[..., None, :] * vectors[..., 1, None, :, :]
        moved = (moves.swapaxes(-1, -2) @ turn).swapaxes(-2, -3)
        if not free.intrinsics:
            return moved
        seen = self.directions[..., None, None, :, :] @ self.optics.changes(free)
        bent = one[..., None, :, :] * seen[..., 0, :, :]
        bent -= other[..., None, :, :] * seen[..., 1, :, :]
        return np.concatenate([moved, bent], -3)


def look(images: Images, bundle: Bundle, directions: Array) -> Sight:
    """Segments of pictures against unit directions (..., K, 3) in their frames."""
    return Optics.create(images, bundle).look(directions)


def directions_of(gravity: Array, headings: Array) -> Array:
    """(..., 1 + 2 Y, 3): gravity (..., 3), then each of the headings (..., Y, 3) and, after it,
    the one at a right angle to it."""
    every = np.empty((*gravity.shape[:-1], 1 + 2 * headings.shape[-2], 3))
    every[..., 0, :] = gravity
    every[..., 1::2, :] = headings
    every[..., 2::2, :] = cross(gravity[..., None, :], headings)
    return every


def moves_of(directions: Array, basis: Array) -> Array:
    """(..., K, 3, M) how the directions move with gravity along each column of a basis
    (..., 3, a), and with each heading that turns from h towards g x h."""
    gravity, level = directions[..., :1, :], directions[..., 1:, :]
    a, headings = basis.shape[-1], level.shape[-2] // 2
    moves = np.zeros((*directions.shape, a + headings))
    moves[..., 0, :, :a] = basis
    moves[..., 1:, :, :a] = -gravity[..., None] * (level @ basis)[..., None, :]
    for y in range(headings):
        at = 2 * y + 1
        moves[..., at, :, a + y] = directions[..., at + 1, :]
        moves[..., at + 1, :, a + y] = -directions[..., at, :]
    return moves
