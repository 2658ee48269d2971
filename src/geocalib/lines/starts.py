"""Where descents start: a grid of focal lengths and headings, or random quadruples of segments.

The grid spans the prior; its highest cells are starts. Where the prior may be far off, two pairs of
segments have a vanishing point each, and the focal length puts these at a right angle: what most
segments follow is a start, however far the network is off.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from geocalib.geometry.fields import Free
from geocalib.geometry.gravity import move, tangent_basis
from geocalib.lines.batched_search import (
    MOST,
    REPEATS,
    Request,
    Search,
    row_slices,
    stack_problems,
)
from geocalib.lines.descent import LineProblem, make_level
from geocalib.lines.prior import at_focal_lengths, log_f_sigma, student_cost, student_weight
from geocalib.lines.residuals import CLUTTER, LEAST_EXPONENT, Optics, densities, noise_model
from geocalib.lines.unknowns import (
    Array,
    Guess,
    Images,
    SegmentBatch,
    compass,
    cross,
    level_frame,
    unit,
)
from geocalib.records import dataclass, replace

FOCALS = 15
"""Number of focal lengths that are tried."""
SPREAD = 3.0
"""Sigmas of the prior on either side that they span."""
BORDER = 0.7
"""Distance of log f from the limits of a fit."""
HEADINGS = 45
"""Headings tried in a quarter turn."""
COARSE = math.radians(1.0)
"""By how much segments may miss their direction while the grid is coarse."""
PLUMB_WIDTHS = (3 * COARSE,) * 3 + (COARSE,) * 2
"""By how much verticals may miss gravity in each of the steps that seek it."""
LONGEST_STEP = 0.2
"""Longest step, radians."""
AT_ONCE = 3
"""Focal lengths whose headings are looked at: what they need fits into a processor's cache."""


@dataclass(frozen=True)
class LikelihoodGrid:
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
        """Return the best heading (3,) for a focal length, in the camera frame."""
        best = int(self.crossed[focal].argmax())
        return np.asarray(compass(2 * HEADINGS)[best] @ self.level[focal])


def search_grid(problem: LineProblem) -> Search[LikelihoodGrid]:
    """Evaluate the grid of one image with its longest segments."""
    return (yield GridRequest(replace(problem, batch=problem.batch.longest(MOST))))


@dataclass(frozen=True)
class GridRequest(Request):
    """A request for the likelihood grid of one image with few segments."""

    @classmethod
    def answered(cls, requests: Sequence[Self]) -> list[LikelihoodGrid]:
        problem, tried = requests[0].problem, [request.tried() for request in requests]
        rows = [len(guess) for guess, _ in tried]
        if len(requests) > 1:
            problem = stack_problems([request.problem for request in requests], rows)
        guess = Guess.concatenate([guess for guess, _ in tried])
        images = problem.layout.images(guess)
        optics = Optics.create(images, problem.batch)
        if problem.layout.free.gravity:
            gravity = _plumb(problem, images, optics)
            guess, images = replace(guess, gravity=gravity), replace(images, gravity=gravity)
        level = level_frame(images.gravity[:, 0])
        directions = np.concatenate([images.gravity, compass(2 * HEADINGS) @ level], 1)
        crossed = _crossed(optics, problem.batch, directions)
        return [
            LikelihoodGrid(guess[own], level[own], crossed[own], penalty)
            for own, (_, penalty) in zip(row_slices(rows), tried, strict=True)
        ]

    def tried(self) -> tuple[Guess, Array]:
        """Return the likeliest guesses for F focal lengths, and half the cost (F,) of the prior
        there."""
        prior, layout = self.problem.prior, self.problem.layout
        mean = prior.mean.log_f[0, :1]
        if not layout.free.focal:
            return at_focal_lengths(prior, mean, layout), np.zeros(1)
        sigma = log_f_sigma(prior)
        reach = SPREAD * sigma
        low = np.maximum(mean - reach, np.minimum(mean, layout.low[:1] + BORDER))
        high = np.minimum(mean + reach, np.maximum(mean, layout.high[:1] - BORDER))
        log_f = np.linspace(low[0], high[0], FOCALS)
        squared = ((log_f - prior.mean.log_f[0]) / sigma) ** 2
        return at_focal_lengths(prior, log_f, layout), 0.5 * student_cost(squared)


def _plumb(problem: LineProblem, images: Images, optics: Optics) -> Array:
    """Return gravity (R, 1, 3) as the vertical segments see it, which the prior holds near its
    mean."""
    batch, gravity = problem.batch, images.gravity
    stiffness, home = problem.prior.stiffness.A, images.basis.mT
    usable = (batch.length > 0)[..., None, :]
    for width in PLUMB_WIDTHS:
        alignment = optics.align(gravity[..., None, :])
        noise = noise_model(
            batch.length, alignment.nearness, batch.noise, usable & alignment.valid, width
        )
        basis = tangent_basis(gravity)
        each = densities(alignment.residual, noise)
        weight = each / (each + CLUTTER) * noise.information / problem.repeats
        jacobian = basis.mT @ alignment.jacobian(Free(True, False))[..., 0, :, :]
        weighted = jacobian * weight
        off, turn = home @ gravity[..., None], home @ basis
        held = stiffness @ off
        pull = student_weight((off * held).sum((-1, -2, -3)))
        pull = pull[:, None, None, None] * turn.mT
        matrix = weighted @ jacobian.mT + pull @ stiffness @ turn
        force = weighted @ alignment.residual.mT + pull @ held
        step = -np.linalg.solve(matrix, force)[..., 0]
        longest = np.maximum(np.sqrt(np.vecdot(step, step)), LONGEST_STEP)[..., None]
        gravity = move(gravity, step * (LONGEST_STEP / longest), basis)
    return gravity


def _crossed(optics: Optics, batch: SegmentBatch, directions: Array) -> Array:
    """(R, H) log likelihood of the vertical and each pair of headings, which directions
    (R, 1 + 2 H, 3) are."""
    found = np.empty((len(directions), HEADINGS))
    for start in range(0, len(directions), AT_ONCE):
        own = slice(start, start + AT_ONCE)
        few = batch[own] if batch.length.ndim == 3 else batch
        ratio = likelihood_ratios(optics.vectors[own], few, directions[own])
        every = ratio[:, 1 : 1 + HEADINGS] + ratio[:, 1 + HEADINGS :]
        every += ratio[:, :1]
        every *= (1 - CLUTTER) / 3
        every += CLUTTER
        found[own] = np.log(every, out=every).sum(-1)
    return found


def likelihood_ratios(
    vectors: Array, batch: SegmentBatch, directions: Array
) -> npt.NDArray[np.float32]:
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
    pixels, long = batch.noise[..., None], batch.length
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


STARTS = 5
"""Focal lengths from which descents start: those that end elsewhere say what else might be."""


def grid_starts(problem: LineProblem, grids: list[LikelihoodGrid]) -> Guess:
    """Guesses at the peaks of what the images of each camera see, one after the other."""
    layout = problem.layout
    profiles = np.stack([grid.crossed.max(1) / REPEATS for grid in grids])
    # All cameras of a component take their first, second, ... choice together.
    choices = []
    for camera in range(len(layout.size)):
        own = np.flatnonzero(layout.camera == camera)
        choices.append(peaks(profiles[own].sum(0) - grids[own[0]].penalty, STARTS))
    every = zip(*choices, strict=False)
    return Guess.concatenate([_start(problem, grids, focals) for focals in every])


def _start(problem: LineProblem, grids: list[LikelihoodGrid], focals: Sequence[int]) -> Guess:
    """A guess where each camera has one of the focal lengths that were tried."""
    layout, mean = problem.layout, problem.prior.mean
    parts = mean.gravity, mean.log_f, mean.distortion, mean.c
    gravity, log_f, distortion, c = (part.copy() for part in parts)
    headings = np.zeros((1, len(grids), 1, 3))
    for image in reversed(range(len(grids))):
        grid, camera = grids[image], layout.camera[image]
        at = focals[camera]
        own = grid.guess.gravity[at, 0]
        if layout.rotation is not None:
            own = layout.rotation[image].T @ own
        gravity[0, layout.time[image]] = own
        log_f[0, camera] = grid.guess.log_f[at, 0]
        distortion[0, camera], c[0, camera] = grid.guess.distortion[at, 0], grid.guess.c[at, 0]
        headings[0, image] = grid.heading(at)
    guess = Guess(gravity, log_f, distortion, c, headings)
    # Where gravity is shared, it is not quite that under which the headings are level.
    return replace(guess, headings=make_level(headings, layout.gravity(guess)))


TRIALS = 2000
"""Quadruples of segments that are drawn."""
SAMPLED_STARTS = 6
"""Best of them that are kept."""
DRAWN = 200
"""Segments to draw from, the longest."""
FOCAL_RANGE = (0.3, 5.0)
"""Focal lengths that are tried, in longer sides."""
SEED = 0
"""The same photo gives the same answer."""


def sample_starts(problem: LineProblem, trials: int = TRIALS, least: float = 0.0) -> Guess | None:
    """Return guesses at the likeliest cameras and directions of one image among those that few
    segments suggest.

    None if these suggest none, or none that raises the log likelihood of all by the least, in units
    of independent segments.
    """
    layout, mean = problem.layout, problem.prior.mean
    count = min(DRAWN, int((problem.batch.length[0] > 0).sum()))
    if count < 4:
        return None
    batch = problem.batch.longest(count)
    drawn = _drawn(batch.length[0], trials)
    # Lines in homogeneous coordinates around the principal point, which every model sees straight
    # enough to start from; in units of the longer side.
    unit_length, aspect = layout.size.max().item(), layout.aspect.item()
    middle = (batch.middle[0] - mean.c[0].T) / unit_length
    x, y = batch.sides[0, 1, 0] / aspect, batch.sides[0, 1, 1]
    line = np.stack([-y, x, y * middle[0] - x * middle[1]], -1)
    a, b, c, d = np.moveaxis(line[drawn], 1, 0)
    first, second = cross(a, b), cross(c, d)
    # At a right angle: x1 x2 + y1 y2 + f^2 w1 w2 = 0.
    infinite = first[:, 2] * second[:, 2] == 0
    product = np.where(infinite, 1.0, first[:, 2] * second[:, 2])
    squared = -(first[:, :2] * second[:, :2]).sum(1) / product
    low, high = FOCAL_RANGE
    kept = ~infinite & (squared > low**2) & (squared < high**2)
    if not kept.any():
        return None
    f, first, second = np.sqrt(squared[kept]), first[kept], second[kept]
    scale = np.stack([np.ones_like(f), np.ones_like(f), f], -1)
    one, two = unit(first * scale), unit(second * scale)
    axes = np.stack([one, two, cross(one, two)], 1)
    # The axis that is nearest to gravity, as far as that is known, is the vertical.
    down = mean.gravity[0, 0]
    row, upright = np.arange(len(axes)), np.abs(axes @ down).argmax(1)
    gravity = axes[row, upright]
    gravity = gravity * np.where(gravity @ down < 0, -1.0, 1.0)[:, None]
    log_f = np.log(f * unit_length)[:, None]
    grown = np.exp((log_f - mean.log_f)[..., None] * layout.powers)
    guess = Guess(
        gravity[:, None],
        log_f,
        mean.distortion * grown,
        np.repeat(mean.c, len(f), 0),
        axes[row, (upright + 1) % 3][:, None, None],
    )
    optics = Optics.create(layout.images(guess), batch)
    ratio = likelihood_ratios(optics.vectors, batch, axes)
    score = np.log(CLUTTER + (1 - CLUTTER) / 3 * ratio.sum(1)).sum(-1)
    if score.max() < least * problem.repeats:
        return None
    return guess[(-score).argsort(kind="stable")[:SAMPLED_STARTS]]


def _drawn(length: Array, trials: int) -> npt.NDArray[np.intp]:
    """(trials, 4) different ones of segments of these lengths (N,), the longer the likelier."""
    # The first to come of waiting times whose rates are the lengths.
    waits = np.random.default_rng(SEED).exponential(size=(trials, len(length))) / length
    return np.argpartition(waits, 3, axis=1)[:, :4]
