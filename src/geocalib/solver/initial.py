"""Where a fit starts: trivial, heuristic, or a minimal solver inside RANSAC.

The minimal solver finds gravity and focal length of a pinhole camera from two up-vectors and one
latitude. With p the pixel relative to the principal point, up at p is along c p - (a, b) where
(a, b, c) = (g_x, g_y, g_z / f). Each up-vector u thus gives the linear equation
u_perp . (c p - (a, b)) = 0, and two of them give (a, b, c) up to scale as a cross product; the
sense of the up-vectors gives the sign. A latitude at a third point then is a quadratic in
F = f^2:

    sin(lat) sqrt(R + F) sqrt(Q + c^2 F) = -(A + c F),  R = |p|^2, Q = a^2 + b^2, A = p . (a, b).
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from geocalib.arrays import (
    Array,
    as_array,
    cast,
    counting,
    double,
    inverse_root,
    mean_rows,
    namespace,
    unstack,
)
from geocalib.geometry.conventions import TRIVIAL_FOCAL
from geocalib.geometry.fields import Fields
from geocalib.records import dataclass
from geocalib.solver.coupling import Coupling
from geocalib.solver.known import Priors
from geocalib.solver.observations import Observations
from geocalib.solver.state import Frame, State

Initial = Literal["trivial", "heuristic", "ransac"]
"""Where a fit may start."""

LEVEL = (0.0, 1.0, 0.0)
"""Gravity of a level camera."""


HYPOTHESES = 256
UP_TOLERANCE = 0.05
"""An up-vector within this norm of the hypothesis' is an inlier."""
LATITUDE_TOLERANCE = 0.03
"""The same for the sine of the latitude."""
SEED = 0


@dataclass(frozen=True)
class StartGuess:
    """Gravity (B, 3) and focal length (B,), pixels, NaN where there is none."""

    gravity: Array
    f: Array


def initial_state(
    kind: Initial,
    parts: list[Fields],
    observations: Observations,
    frame: Frame,
    coupling: Coupling,
    priors: Priors,
) -> State:
    """The state to start from. What is known beforehand starts at its value."""
    centre = (
        0.5 * frame.size if priors.principal_point.value is None else priors.principal_point.value
    )
    xp = namespace(frame.size)
    size = frame.size[coupling.camera]
    guess = fallback = trivial(size)
    if kind == "heuristic":
        per_image, guesses, at = centre[coupling.camera], [], 0
        for part in parts:
            guesses.append(heuristic(part, per_image[at : at + len(part)]))
            at += len(part)
        guess = StartGuess(
            xp.concat([g.gravity for g in guesses]), xp.concat([g.f for g in guesses])
        )
    elif kind == "ransac":
        guess = ransac(observations, centre[coupling.camera], frame.aspect[coupling.camera])
    if guess is not fallback:
        usable = xp.isfinite(guess.f) & xp.isfinite(guess.gravity).all(1)
        guess = StartGuess(
            xp.where(usable[:, None], guess.gravity, fallback.gravity),
            xp.where(usable, guess.f, fallback.f),
        )
    shared, log_f = guess.gravity, xp.log(guess.f)
    if coupling.rotation is not None:
        shared = (double(coupling.rotation).mT @ shared[..., None])[..., 0]
    if not coupling.separate:
        log_f = mean_rows(log_f, coupling.camera, len(frame.size))
        shared = mean_rows(shared, coupling.time, len(coupling.time_component))
        # Guesses of cameras mounted against each other may cancel; then the rig counts as level.
        length = xp.linalg.vector_norm(shared, axis=1, keepdims=True)
        shared = xp.where(length > 0.1, shared / length, as_array(LEVEL, shared))
    log_f = xp.minimum(xp.maximum(log_f, frame.log_f_low), frame.log_f_high)
    start = as_array(frame.model.start, log_f)
    distortion = xp.broadcast_to(start, (len(log_f), len(start)))
    known = priors
    return State(
        gravity=shared if known.gravity.value is None else known.gravity.value,
        log_f=log_f if known.log_f.value is None else known.log_f.value[:, 0],
        distortion=distortion if known.distortion.value is None else known.distortion.value,
        c=centre,
        log_stretch=xp.zeros_like(log_f),
    )


def trivial(size: Array) -> StartGuess:
    """A level camera with f = 0.7 of the longer side, for images of size (B, 2)."""
    xp = namespace(size)
    level = xp.broadcast_to(as_array(LEVEL, size, xp.float64), (len(size), 3))
    return StartGuess(level, TRIVIAL_FOCAL * double(xp.max(size, axis=1)))


def heuristic(fields: Fields, centre: Array) -> StartGuess:
    """The field read off at the principal point (B, 2) and above and below it.

    At the principal point up is along -(g_x, g_y) and the latitude is -asin(g_z); the
    latitudes at the top and bottom span the vertical field of view.
    """
    width, height = fields.size
    xp = namespace(centre)
    column = cast(centre[:, 0], xp.int64).clip(0, width - 1)
    row = cast(centre[:, 1], xp.int64).clip(0, height - 1)
    images = counting(len(fields), centre)
    latitude = double(fields.latitude[:, 0])
    up = double(fields.up[images, :, row, column])
    up = up / xp.linalg.vector_norm(up, axis=1, keepdims=True)
    middle = latitude[images, row, column]
    gravity = xp.concat([-xp.cos(middle)[:, None] * up, -xp.sin(middle)[:, None]], axis=1)
    span = latitude[images, 0, column] - latitude[images, -1, column]
    # The rows' centres lie half a pixel inside the image at either end.
    return StartGuess(gravity, 0.5 * (height - 1) / xp.tan(0.5 * span.clip(0.05, 3.0)))


def minimal_solver(
    p1: Array, up1: Array, p2: Array, up2: Array, p3: Array, sin_latitude: Array
) -> StartGuess:
    """All cameras that show up1 at p1, up2 at p2 and the latitude at p3.

    Points and up-vectors (..., 2), pixels relative to the principal point (square pixels).
    Returns gravity (..., 2, 3) and f (..., 2): two candidates each, NaN where not real.
    """
    xp = namespace(p1)
    plane = xp.linalg.cross(_equation(p1, up1), _equation(p2, up2))
    sense = (up1 * (plane[..., 2:] * p1 - plane[..., :2])).sum(-1)[..., None]
    plane = plane * xp.where(sense < 0, -1.0, 1.0)
    ab, c = plane[..., :2], plane[..., 2]
    A, Q, R = (p3 * ab).sum(-1), (ab * ab).sum(-1), (p3 * p3).sum(-1)
    S = sin_latitude**2
    F = _quadratic(c * c * (1 - S), 2 * A * c - S * (R * c * c + Q), A * A - S * R * Q)
    f = xp.sqrt(xp.where(F > 0, F, math.nan))
    c, A, sine = c[..., None], A[..., None], sin_latitude[..., None]
    # Squaring admitted the camera with the opposite latitude: drop it.
    right = (A + c * F) * sine <= 1e-12 * (abs(A) + abs(c * F))
    f = xp.where(right, f, math.nan)
    gravity = xp.concat(
        [xp.broadcast_to(ab[..., None, :], (*f.shape, 2)), (c * f)[..., None]], axis=-1
    )
    return StartGuess(gravity / xp.linalg.vector_norm(gravity, axis=-1, keepdims=True), f)


def _equation(p: Array, up: Array) -> Array:
    """Coefficients of (a, b, c) in u_perp . (c p - (a, b)) = 0."""
    xp = namespace(p)
    perpendicular = xp.stack([-up[..., 1], up[..., 0]], axis=-1)
    return xp.concat([-perpendicular, (perpendicular * p).sum(-1)[..., None]], axis=-1)


def _quadratic(a: Array, b: Array, c: Array) -> Array:
    """Both roots (..., 2) of a x^2 + b x + c, stable for small a; NaN where not real."""
    xp = namespace(a)
    root = xp.sqrt(b * b - 4 * a * c)
    q = -0.5 * (b + xp.where(b < 0, -1.0, 1.0) * root)
    return xp.stack([q / a, c / q], axis=-1)


def ransac(observations: Observations, centre: Array, aspect: Array) -> StartGuess:
    """The best of many minimal cameras by confidence-weighted inliers, per image.

    centre (B, 2), aspect (B,). Deterministic: the samples depend on nothing but the seed and
    the confidences.
    """
    o = observations
    batch = len(o)
    xp, generator = namespace(centre), np.random.default_rng(SEED)
    stretch = aspect[:, None]
    scale = xp.stack([1 / aspect, xp.ones_like(aspect)], axis=-1)[:, None]
    up_at = (o.up_places() - centre[:, None]) * scale
    lat_at = (o.latitude_places() - centre[:, None]) * scale
    up = double(xp.stack([o.up_x / stretch, o.up_y], axis=-1))
    up = up / xp.linalg.vector_norm(up, axis=-1, keepdims=True).clip(1e-12)
    sine = double(o.sin_latitude)
    up_weight, lat_weight = double(o.up_weight), double(o.latitude_weight)

    def draw(weight: Array, count: int) -> Array:
        # Inverse transform sampling of the confidences, (B, count).
        mass = xp.cumulative_sum(weight, axis=1)
        ticks = as_array(generator.random((batch, count)), mass) * mass[:, -1:]
        rows = [xp.searchsorted(each, at) for each, at in zip(mass, ticks, strict=True)]
        return xp.stack(rows).clip(max=weight.shape[1] - 1)

    def take(values: Array, index: Array) -> Array:
        index = index if values.ndim == 2 else index[..., None]
        return xp.take_along_axis(values, index, axis=1)

    first, second = draw(up_weight, HYPOTHESES), draw(up_weight, HYPOTHESES)
    third = draw(lat_weight, HYPOTHESES)
    guess = minimal_solver(
        take(up_at, first),
        take(up, first),
        take(up_at, second),
        take(up, second),
        take(lat_at, third),
        take(sine, third),
    )
    gravity, f = guess.gravity.reshape(batch, -1, 3), guess.f.reshape(batch, -1)
    best = StartGuess(xp.full_like(gravity[:, 0], math.nan), xp.full_like(f[:, 0], math.nan))
    best_score = xp.zeros_like(f[:, 0])
    # One hypothesis of every image at a time keeps memory at one field per image.
    for g, focal in zip(unstack(gravity, 1), unstack(f, 1), strict=True):
        score = _score(g, focal, up_at, up, up_weight, lat_at, sine, lat_weight)
        better = score > best_score
        best_score = xp.where(better, score, best_score)
        best = StartGuess(
            xp.where(better[:, None], g, best.gravity), xp.where(better, focal, best.f)
        )
    return best


def _score(
    gravity: Array,
    f: Array,
    up_at: Array,
    up: Array,
    up_weight: Array,
    lat_at: Array,
    sine: Array,
    lat_weight: Array,
) -> Array:
    """Confidence of the inliers of one hypothesis per image, (B,); 0 for NaN."""
    xp = namespace(gravity)
    g_xy, g_z = gravity[:, None, :2], gravity[:, None, 2:]
    m = up_at / f[:, None, None]
    seen = m * g_z - g_xy
    seen = seen / xp.linalg.vector_norm(seen, axis=-1, keepdims=True)
    up_inlier = ((seen - up) ** 2).sum(-1) < UP_TOLERANCE**2
    m = lat_at / f[:, None, None]
    sin_seen = -((m * g_xy).sum(-1) + g_z[..., 0]) * inverse_root(1 + (m * m).sum(-1))
    lat_inlier = abs(sin_seen - sine) < LATITUDE_TOLERANCE
    return (up_inlier * up_weight).sum(1) + (lat_inlier * lat_weight).sum(1)
