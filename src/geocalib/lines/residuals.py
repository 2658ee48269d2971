"""How far segments are from pointing along directions in space, and which direction each follows.

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

A mixture of directions and clutter says which of them a segment follows, if any. Against the
direction that it belongs to, its residual is normal around 0, with a sigma of the noise of its ends
and of how well the world keeps to its directions. The angle of a segment that points anywhere is as
likely in all of a half turn. The ratio of both densities, weighed by how common each kind is,
decides. Next to its vanishing point a segment's sigma is large: there everything points at it, and
tells nothing.

How much a direction raises the log likelihood of all segments is its support: it tells directions
that are there for a reason from those that any segments would follow by chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from geocalib.arrays import quiet
from geocalib.cameras.base import DepthJet
from geocalib.geometry.fields import Free
from geocalib.lines.unknowns import Array, Flags, Images, SegmentBatch, cross
from geocalib.records import dataclass

CLUTTER = 0.4
"""Share of segments that belong to no direction, beforehand."""
LEAST_EXPONENT = -80.0
"""What is less likely than this, against clutter, does not count."""


@dataclass(frozen=True)
class Noise:
    """The noise model, which stays fixed while a minimum is sought; (..., K, N) each."""

    information: Array
    """1 / sigma^2 of the residuals."""
    ratio: Array
    """Share times density at residual 0, over the density of clutter; 0 where there is no such
    direction or segment."""
    there: Flags
    """(..., N) which segments may follow any direction."""


def noise_model(
    length: Array, nearness: Array, pixels: Array, usable: Flags, direction_noise: float
) -> Noise:
    """Return the noise of segments with a length (B, N), whose ends have a noise of pixels (B,).

    nearness: (..., B, K, N) 1 / distance of vanishing points; usable (..., B, K, N): which segments
    may follow which direction; direction_noise: radians in the picture by which lines miss their
    direction.
    """
    # Opposite noise of the ends turns a segment; common noise shifts it, which turns the
    # direction to a near vanishing point.
    squared = (pixels * pixels)[..., None]
    turn = 2 * squared / np.maximum(length * length, 1e-6) + direction_noise**2
    variance = nearness * nearness
    variance *= (0.5 * squared)[..., None]
    variance += turn[..., None, :]
    information = 1 / variance
    share = math.sqrt(0.5 * math.pi) * (1 - CLUTTER) / np.maximum(usable.any(-1).sum(-1), 1)
    ratio = np.sqrt(information)
    ratio *= share[..., None, None]
    ratio *= usable
    return Noise(information, ratio, np.asarray(usable.any(-2)))


@dataclass(frozen=True)
class Assignment:
    """How segments are assigned to directions, and the likelihood that they gain by it."""

    gain: Array
    """(..., N) log likelihood against that of clutter alone."""
    share: Array
    """(..., K, N) probability of each direction; the rest is clutter."""


def densities(residual: Array, noise: Noise) -> Array:
    """(..., K, N) share times density of residuals against each direction, over the density of
    clutter."""
    exponent = noise.information * residual * residual
    exponent *= -0.5
    # Processors take many times as long for numbers that are nearly 0.
    np.maximum(exponent, LEAST_EXPONENT, out=exponent)
    np.exp(exponent, out=exponent)
    exponent *= noise.ratio
    return np.asarray(exponent)


def assign(residual: Array, noise: Noise) -> Assignment:
    """Assign segments with residuals (..., K, N) to directions."""
    each = densities(residual, noise)
    every = each.sum(-2)
    every += CLUTTER
    each /= every[..., None, :]
    return Assignment(np.log(every), each)


CLUTTER_TRIED = (0.2, 0.5, 0.8, 0.95)
"""Shares of clutter: the likeliest one counts."""
FITTED = 5.0
"""Unknowns that make residuals smaller than they should be."""


def support(residual: Array, noise: Noise, repeats: float) -> Array:
    """(..., K) by how much each direction raises the log likelihood of all segments (with residuals
    (..., K, N)), given the other directions, counted in independent segments."""
    ratio = likelihood_ratio(residual, noise)
    every = ratio.sum(-2, keepdims=True)
    found = likelihood(np.concatenate([every, every - ratio], -2), noise)
    return np.asarray((found[..., :1] - found[..., 1:]) / repeats)


def likelihood_ratio(residual: Array, noise: Noise) -> Array:
    """(..., K, N) density of residuals against each direction, over that of clutter."""
    return np.asarray(
        densities(residual, noise) * (_directions(noise) / (1 - CLUTTER))[..., None, None]
    )


def likelihood(ratio: Array, noise: Noise) -> Array:
    """(..., M) log likelihood of segments against that of clutter alone, given their sums of
    ratios (..., M, N) over all directions, with the likeliest share of clutter. In their
    precision."""
    count, there = (value.astype(ratio.dtype) for value in (_directions(noise), noise.there))
    mean = np.maximum(ratio, 0) / count[..., None, None]
    best = np.zeros(ratio.shape[:-1], ratio.dtype)
    for clutter in CLUTTER_TRIED:
        each = mean * (1 - clutter)
        each += clutter
        np.maximum(best, np.matvec(np.log(each, out=each), there), out=best)
    return best


def misfit(residual: Array, noise: Noise, share: Array) -> Array:
    """(R,) mean square, in sigmas, of the residuals (R, B, K, N) of segments, each with the share
    that it has in directions: 1 where these are kept as well as expected."""
    squared = noise.information * residual * residual
    left = share.sum((-1, -2, -3)) - FITTED
    return np.asarray((share * squared).sum((-1, -2, -3)) / np.maximum(left, 1.0))


def _directions(noise: Noise) -> Array:
    """Return the number (...) of directions that there are."""
    return np.asarray((noise.ratio > 0).any(-1).sum(-1).clip(min=1), np.float64)


NOTHING = 1e-60
"""A square of pixels that keeps divisions finite where no direction is seen."""


@dataclass(frozen=True)
class Optics:
    """How cameras see the middles of N segments each, whatever the directions."""

    m: Array
    """(..., 2, N) of the rays."""
    s: Array
    """(..., N) squares of their lengths."""
    jet: DepthJet
    """The depth and its derivatives at s."""
    q: Array
    """(..., N)."""
    focal: Array
    """(..., 2)."""
    sides: Array
    """(..., 2, 2, N) vectors across and along each segment, f times as long as they are at the
    distance 1."""
    vectors: Array
    """(..., 2, 3, N): f times what is seen of a direction, across and along, is its product with
    these."""

    @classmethod
    def create(cls, images: Images, batch: SegmentBatch) -> Optics:
        """Compute the rays at the middles of segments and what follows from them."""
        focal = images.focal[..., None]
        off = batch.middle - images.c[..., None]
        m = off / focal
        s = (m * m).sum(-2)
        jet, q = _depth(images, s)
        sides = focal[..., None, :, :] * batch.sides
        vectors = np.empty((*sides.shape[:-2], 3, sides.shape[-1]))
        flat, reach = vectors[..., :2, :], vectors[..., 2, :]
        np.einsum("...ijn,...jn->...in", batch.sides, off, out=reach)
        np.multiply(-q[..., None, None, :], sides, out=flat)
        if jet.d_s is not None:
            flat -= ((2 * jet.d_s)[..., None, :] * reach)[..., None, :] * m[..., None, :, :]
        return cls(m, s, jet, q, images.focal, sides, vectors)

    def align(self, directions: Array) -> Alignment:
        """Compare segments with unit directions (..., K, 3)."""
        seen = directions[..., None, :, :] @ self.vectors
        across, along = seen[..., 0, :, :], seen[..., 1, :, :]
        squared = across * across
        squared += along * along
        squared += NOTHING
        # Its sign makes the residual that of an undirected line.
        inverse = np.copysign(1 / np.sqrt(squared, out=squared), along)
        return Alignment(across * inverse, inverse, seen, directions, self)


@quiet
def _depth(images: Images, s: Array) -> tuple[DepthJet, Array]:
    """Return the depth of cameras at s (..., N), and q."""
    if not images.model.parameters:
        one = np.ones_like(s)
        return DepthJet(one, None, None, (), (), None), one
    jet = images.model.jet(s, tuple(np.moveaxis(images.distortion[..., None, :], -1, 0)))
    assert jet.d_s is not None, f"{images.model.name} keeps straight lines straight"
    return jet, jet.depth - 2 * s * jet.d_s


@dataclass(frozen=True)
class Alignment:
    """N segments of each picture compared with K directions."""

    residual: Array
    """(..., K, N) sines of angles in the picture."""
    inverse: Array
    """(..., K, N) 1 / f |v|, negative where the direction is seen against the segment's."""
    seen: Array
    """(..., 2, K, N) f v across and along each segment."""
    directions: Array
    """(..., K, 3)."""
    optics: Optics

    @property
    def valid(self) -> Flags:
        """(..., 1, N) whether the camera sees the middle."""
        there, s = self.optics.jet.valid, self.optics.s
        return (np.ones(s.shape, np.bool_) if there is None else there)[..., None, :]

    @cached_property
    def aside(self) -> Array:
        """The products m . d_xy, (..., K, N)."""
        return np.asarray(self.directions[..., :2] @ self.optics.m)

    @cached_property
    def h(self) -> Array:
        """The factor h of the module's equation, (..., K, N) or (..., K, 1)."""
        slope, ahead = self.optics.jet.d_s, self.directions[..., 2:]
        return ahead if slope is None else ahead - 2 * slope[..., None, :] * self.aside

    @property
    def nearness(self) -> Array:
        """(..., K, N) 1 / pixels from the middle of a segment to where its direction vanishes."""
        return np.abs(self.h * self.inverse)

    def jacobian(self, free: Free) -> Array:
        """(..., K, 3 + Q, N) derivatives of the residuals in the coordinates of their direction,
        and in the free ones of log f, distortion and principal point."""
        # d(sine) = cosine d(angle), by what is seen across and along.
        cosine = self.seen[..., 1, :, :] * self.inverse
        scale = cosine * self.inverse
        one, other = cosine * scale, self.residual * scale
        vectors = self.optics.vectors
        every = np.empty((*one.shape[:-1], 3 + free.intrinsics, one.shape[-1]))
        turn = every[..., :3, :]
        np.multiply(one[..., None, :], vectors[..., 0, None, :, :], out=turn)
        turn -= other[..., None, :] * vectors[..., 1, None, :, :]
        if free.intrinsics:
            for i, bent in enumerate(self._bent(one, other, turn[..., 2, :], free), start=3):
                every[..., i, :] = bent
        return every

    def _bent(self, one: Array, other: Array, reach: Array, free: Free) -> Iterator[Array]:
        """(..., K, N) each: derivatives in the free ones of log f, distortion and principal point.

        f v = h f m - q f d_xy. one, other (..., K, N): what changes of it across and along segments
        are multiplied by and subtracted to give those of residuals. reach (..., K, N): f m as
        such a change.
        """
        optics, jet, aside, sides = self.optics, self.optics.jet, self.aside, self.optics.sides
        q, slope = optics.q, 0.0 if jet.d_s is None else jet.d_s
        twice = 2 * optics.s
        # -dq/ds.
        stiff = slope if jet.d_ss is None else slope + twice * jet.d_ss
        flat = self.directions[..., None, :, :2] @ sides
        flat = one * flat[..., 0, :, :] - other * flat[..., 1, :, :]
        bulk = aside * reach
        if free.focal:
            yield _for_all(2 * stiff) * bulk - _for_all(q + twice * stiff) * flat
        for i in free.distortion:
            d_slope = jet.d_ks[i]
            yield _for_all(-2 * d_slope) * bulk - _for_all(jet.d_k[i] - twice * d_slope) * flat
        if free.principal_point:
            slope, stiff = _for_all(slope), _for_all(stiff)
            curve = 0.0 if jet.d_ss is None else _for_all(jet.d_ss)
            for axis in (0, 1):
                side = sides[..., axis, None, :]
                side = one * side[..., 0, :, :] - other * side[..., 1, :, :]
                m, d = optics.m[..., axis, None, :], self.directions[..., axis, None]
                dh, dq = 4 * curve * m * aside + 2 * slope * d, 2 * stiff * m
                moved = dh * reach - dq * flat - self.h * side
                yield moved / optics.focal[..., axis, None, None]


def _for_all(values: Array | float) -> Array | float:
    """(..., 1, N) of (..., N), the same for all directions."""
    return values[..., None, :] if isinstance(values, np.ndarray) else values


def align(images: Images, batch: SegmentBatch, directions: Array) -> Alignment:
    """Compare segments of pictures with unit directions (..., K, 3) in their frames."""
    return Optics.create(images, batch).align(directions)


def directions_of(gravity: Array, headings: Array) -> Array:
    """(..., 1 + 2 Y, 3): gravity (..., 3), then each of the headings (..., Y, 3) and, after it,
    the one at a right angle to it."""
    every = np.empty((*gravity.shape[:-1], 1 + 2 * headings.shape[-2], 3))
    every[..., 0, :] = gravity
    every[..., 1::2, :] = headings
    if headings.shape[-2]:
        every[..., 2::2, :] = cross(gravity[..., None, :], headings)
    return every


def moves_of(directions: Array, basis: Array, intrinsics: int) -> Array:
    """(..., K, 3 + Q, P) how the directions, and Q intrinsics, move with P unknowns: gravity along
    each column of a basis (..., 3, a), the intrinsics, and each heading that turns from h towards
    g x h."""
    gravity, level = directions[..., :1, :], directions[..., 1:, :]
    a, headings = basis.shape[-1], level.shape[-2] // 2
    shared = a + intrinsics
    moves = np.zeros((*directions.shape[:-1], 3 + intrinsics, shared + headings))
    moves[..., 0, :3, :a] = basis
    moves[..., 1:, :3, :a] = -gravity[..., None] * (level @ basis)[..., None, :]
    for i in range(intrinsics):
        moves[..., 3 + i, a + i] = 1
    for y in range(headings):
        at = 2 * y + 1
        moves[..., at, :3, shared + y] = directions[..., at + 1, :]
        moves[..., at + 1, :3, shared + y] = -directions[..., at, :]
    return moves
