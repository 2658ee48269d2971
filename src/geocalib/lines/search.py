"""Where to start: focal lengths within the prior, and the headings that most segments follow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from geocalib.geometry.fields import Free
from geocalib.geometry.gravity import move, tangent_basis
from geocalib.lines.bundle import Bundle
from geocalib.lines.minimise import Problem
from geocalib.lines.mixture import CLUTTER, LEAST_EXPONENT, densities, noise_model
from geocalib.lines.prior import given_log_f, log_f_sigma, student_cost, student_weight
from geocalib.lines.residuals import Optics
from geocalib.lines.together import Request, Search, side_by_side, slices
from geocalib.lines.unknowns import Array, Guess, Images, compass, level_frame
from geocalib.records import dataclass, replace

FOCALS = 15
"""Focal lengths tried."""
SPREAD = 3.0
"""Sigmas of the prior on either side that they span."""
BORDER = 0.7
"""Of log f: they keep off the end of what a fit may answer."""
HEADINGS = 45
"""Headings tried in a quarter turn."""
MOST = 140
"""Segments looked at, the longest."""
COARSE = math.radians(1.0)
"""By how much segments may miss their direction while the grid is coarse."""
PLUMB_WIDTHS = (3 * COARSE,) * 3 + (COARSE,) * 2
"""By how much verticals may miss gravity in each of the steps that seek it."""
LONGEST_STEP = 0.2
"""Radians."""
AT_ONCE = 3
"""Focal lengths whose headings are looked at: what they need fits into a processor's cache."""


@dataclass(frozen=True)
class Landscape:
    """How well the segments of one image fit a grid of F focal lengths and H headings, which span
    a quarter turn."""

    guess: Guess
    """F of them: focal lengths, and the likeliest rest."""
    level: Array
    """(F, 3, 3) rotations to level frames."""
    crossed: Array
    """(F, H) log likelihood of pairs of headings at a right angle, and the vertical."""
    penalty: Array
    """(F,) half the cost of the prior."""

    def heading(self, focal: int) -> Array:
        """(3,) the best one for a focal length, in the camera frame."""
        best = int(self.crossed[focal].argmax())
        return np.asarray(compass(2 * HEADINGS)[best] @ self.level[focal])


def survey(problem: Problem) -> Search[Landscape]:
    """The landscape of one image, whose problem this is."""
    return (yield Survey(replace(problem, bundle=problem.bundle.longest(MOST))))


@dataclass(frozen=True)
class Survey(Request):
    """The landscape of one image with few segments."""

    @classmethod
    def answered(cls, requests: Sequence[Self]) -> list[Landscape]:
        problem, tried = requests[0].problem, [request.tried() for request in requests]
        rows = [len(guess) for guess, _ in tried]
        if len(requests) > 1:
            problem = side_by_side([request.problem for request in requests], rows)
        guess = Guess.concatenate([guess for guess, _ in tried])
        images = problem.layout.images(guess)
        optics = Optics.create(images, problem.bundle)
        if problem.layout.free.gravity:
            gravity = _plumb(problem, images, optics)
            guess, images = replace(guess, gravity=gravity), replace(images, gravity=gravity)
        level = level_frame(images.gravity[:, 0])
        directions = np.concatenate([images.gravity, compass(2 * HEADINGS) @ level], 1)
        crossed = _crossed(optics, problem.bundle, directions)
        return [
            Landscape(guess[own], level[own], crossed[own], penalty)
            for own, (_, penalty) in zip(slices(rows), tried, strict=True)
        ]

    def tried(self) -> tuple[Guess, Array]:
        """The likeliest guesses for F focal lengths, and (F,) half the cost of the prior there."""
        prior, layout = self.problem.prior, self.problem.layout
        mean = prior.mean.log_f[0, :1]
        if not layout.free.focal:
            return given_log_f(prior, mean, layout), np.zeros(1)
        sigma = log_f_sigma(prior)
        reach = SPREAD * sigma
        low = np.maximum(mean - reach, np.minimum(mean, layout.low[:1] + BORDER))
        high = np.minimum(mean + reach, np.maximum(mean, layout.high[:1] - BORDER))
        log_f = np.linspace(low[0], high[0], FOCALS)
        squared = ((log_f - prior.mean.log_f[0]) / sigma) ** 2
        return given_log_f(prior, log_f, layout), 0.5 * student_cost(squared)


def _plumb(problem: Problem, images: Images, optics: Optics) -> Array:
    """(R, 1, 3) where the vertical segments say that gravity is, which its prior holds near the
    mean."""
    bundle, gravity = problem.bundle, images.gravity
    stiffness, home = problem.prior.stiffness.A, images.basis.mT
    usable = (bundle.length > 0)[..., None, :]
    for width in PLUMB_WIDTHS:
        sight = optics.look(gravity[..., None, :])
        noise = noise_model(
            bundle.length, sight.nearness, bundle.noise, usable & sight.valid, width
        )
        basis = tangent_basis(gravity)
        each = densities(sight.residual, noise)
        weight = each / (each + CLUTTER) * noise.information / problem.repeats
        jacobian = basis.mT @ sight.jacobian(Free(True, False))[..., 0, :, :]
        weighted = jacobian * weight
        off, turn = home @ gravity[..., None], home @ basis
        held = stiffness @ off
        pull = student_weight((off * held).sum((-1, -2, -3)))
        pull = pull[:, None, None, None] * turn.mT
        matrix = weighted @ jacobian.mT + pull @ stiffness @ turn
        force = weighted @ sight.residual.mT + pull @ held
        step = -np.linalg.solve(matrix, force)[..., 0]
        longest = np.maximum(np.sqrt(np.vecdot(step, step)), LONGEST_STEP)[..., None]
        gravity = move(gravity, step * (LONGEST_STEP / longest), basis)
    return gravity


def _crossed(optics: Optics, bundle: Bundle, directions: Array) -> Array:
    """(R, H) log likelihood of the vertical and each pair of headings, which directions
    (R, 1 + 2 H, 3) are."""
    found = np.empty((len(directions), HEADINGS))
    for start in range(0, len(directions), AT_ONCE):
        own = slice(start, start + AT_ONCE)
        few = bundle[own] if bundle.length.ndim == 3 else bundle
        ratio = likelihood_ratios(optics.vectors[own], few, directions[own])
        every = ratio[:, 1 : 1 + HEADINGS] + ratio[:, 1 + HEADINGS :]
        every += ratio[:, :1]
        every *= (1 - CLUTTER) / 3
        every += CLUTTER
        found[own] = np.log(every, out=every).sum(-1)
    return found


def likelihood_ratios(vectors: Array, bundle: Bundle, directions: Array) -> npt.NDArray[np.float32]:
    """(F, K, N) likelihood ratio of the segments of one image, whose optics have these vectors,
    against many directions (F, K, 3), in single precision: it only says where to start."""
    across, along = (vectors[:, 0, side].astype(np.float32) for side in (0, 1))
    found = directions.astype(np.float32)
    squared = np.square(found @ across)
    length = np.square(found @ along)
    length += squared
    np.maximum(length, np.float32(1e-12), out=length)
    # The common noise of the ends counts where the vanishing point is near: h / length.
    # Everything times -2, which the exponent wants.
    pixels, long = bundle.noise[..., None], bundle.length
    shift = (-((pixels * found[..., 2:]) ** 2)).astype(np.float32)
    turn = 2 * (pixels / np.maximum(long, 1)) ** 2 + COARSE**2
    variance = (-2 * turn).astype(np.float32) * length
    variance += shift
    ratio = np.divide(squared, variance, out=squared)
    np.maximum(ratio, np.float32(LEAST_EXPONENT), out=ratio)
    np.exp(ratio, out=ratio)
    length /= variance
    length *= -math.pi
    ratio *= np.sqrt(length, out=length)
    if not (long > 0).all():
        ratio *= (long > 0).astype(np.float32)
    return np.asarray(ratio)


def peaks(profile: Array, count: int) -> list[int]:
    """Indices of the highest values (F,), no two of them close to each other."""
    left = profile.copy()
    found: list[int] = []
    while len(found) < count and np.isfinite(left).any():
        at = int(left.argmax())
        found.append(at)
        left[max(0, at - 1) : at + 2] = -np.inf
    return found
