"""Starts by random sampling: cameras and directions that a few segments suggest, wherever the prior
is.

Two pairs of segments have a vanishing point each; the focal length puts these at a right angle.
What most segments follow is a start, however far the network is off.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from geocalib.lines.minimise import Problem
from geocalib.lines.mixture import CLUTTER
from geocalib.lines.residuals import Optics
from geocalib.lines.search import likelihood_ratios
from geocalib.lines.unknowns import Array, Guess, cross, powers, unit

TRIALS = 2000
"""Quadruples of segments that are drawn."""
STARTS = 6
"""Best of them that are kept."""
DRAWN = 200
"""Segments to draw from, the longest."""
FOCAL_RANGE = (0.3, 5.0)
"""Of the longer side."""
SEED = 0
"""The same photo gives the same answer."""


def sampled(problem: Problem, trials: int = TRIALS, least: float = 0.0) -> Guess | None:
    """Guesses at the likeliest cameras and directions of one image, whose problem this is, among
    those that few segments suggest; None if these suggest none, or none that raises the log
    likelihood of all by the least, in units of independent segments."""
    layout, mean = problem.layout, problem.prior.mean
    count = min(DRAWN, int((problem.bundle.length[0] > 0).sum()))
    if count < 4:
        return None
    bundle = problem.bundle.longest(count)
    drawn = _drawn(bundle.length[0], trials)
    # Lines in homogeneous coordinates around the principal point, which every model sees straight
    # enough to start from; in units of the longer side.
    unit_length, aspect = layout.size.max().item(), layout.aspect.item()
    middle = (bundle.middle[0] - mean.c[0].T) / unit_length
    x, y = bundle.sides[0, 1, 0] / aspect, bundle.sides[0, 1, 1]
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
    grown = np.exp((log_f - mean.log_f)[..., None] * powers(layout.model))
    guess = Guess(
        gravity[:, None],
        log_f,
        mean.distortion * grown,
        np.repeat(mean.c, len(f), 0),
        axes[row, (upright + 1) % 3][:, None, None],
    )
    optics = Optics.create(layout.images(guess), bundle)
    ratio = likelihood_ratios(optics.vectors, bundle, axes)
    score = np.log(CLUTTER + (1 - CLUTTER) / 3 * ratio.sum(1)).sum(-1)
    if score.max() < least * problem.repeats:
        return None
    return guess[(-score).argsort(kind="stable")[:STARTS]]


def _drawn(length: Array, trials: int) -> npt.NDArray[np.intp]:
    """(trials, 4) different ones of segments of these lengths (N,), the longer the likelier."""
    # The first to come of waiting times whose rates are the lengths.
    waits = np.random.default_rng(SEED).exponential(size=(trials, len(length))) / length
    return np.argpartition(waits, 3, axis=1)[:, :4]
